"""Brokers that listen on IPv6 addresses, and every Python client there."""

import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.client import BrokerUnavailable
from barnabas.client.blocking import Admin, Consumer, Producer
from support.our_client.round_trips import ROUND_TRIPS
from support.process.processes import run_to_end, started


def why_no_ipv6() -> str | None:
    try:
        with socket.socket(socket.AF_INET6) as sock:
            sock.bind(("::1", 0))
    except OSError as error:
        return f"this machine has no IPv6 loopback: {error}"
    return None


pytestmark = pytest.mark.skipif(why_no_ipv6() is not None, reason=str(why_no_ipv6()))


# Nobody else joins the groups of these tests.
AT_ONCE = ["--config", "group.initial.rebalance.delay.ms=0"]


@pytest.fixture(scope="module")
def loopback(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a broker on ::1."""
    words = ["up", "--port", "0", "--host", "::1", *AT_ONCE]
    with started(tmp_path_factory.mktemp("up") / "err", *words) as up:
        [address] = up.ready()
        yield address


@pytest.fixture(scope="module")
def wildcard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The port of a broker on the IPv6 wildcard, which sends its clients to an IPv4 address."""
    advertised = ["--config", "advertised.listeners=PLAINTEXT://127.0.0.1:0"]
    words = ["up", "--port", "0", "--host", "::", *advertised, *AT_ONCE]
    with started(tmp_path_factory.mktemp("up") / "err", *words) as up:
        [address] = up.ready()
        yield address.rpartition(":")[2]


@pytest.mark.parametrize("client", ROUND_TRIPS)
def test_every_client_uses_a_broker_on_the_ipv6_loopback(client: str, loopback: str) -> None:
    topic = f"over-ipv6-{client}"

    value = ROUND_TRIPS[client](loopback, topic)

    assert value == f"from {client}".encode()


def test_brackets_are_part_of_an_address_and_not_of_a_host(loopback: str) -> None:
    with Admin(bootstrap_servers=loopback) as admin:
        [node] = admin.describe_cluster().nodes.values()

    assert loopback == f"[::1]:{node.port}"
    assert node.host == "::1"


def test_an_error_names_an_ipv6_address_as_it_was_given() -> None:
    with socket.socket(socket.AF_INET6) as taken:
        # Bound, and nobody listens.
        taken.bind(("::1", 0))
        address = f"[::1]:{taken.getsockname()[1]}"

        with pytest.raises(BrokerUnavailable, match=re.escape(f"no broker at {address}: Connection refused")):
            Admin(bootstrap_servers=address, default_api_timeout_ms=100)


@pytest.mark.parametrize("host", ["[::1]", "127.0.0.1", "localhost"])
def test_a_broker_on_the_ipv6_wildcard_serves_both_families(host: str, wildcard: str) -> None:
    with Admin(bootstrap_servers=f"{host}:{wildcard}") as admin:
        assert len(admin.describe_cluster().nodes) == 1


def test_the_address_that_up_prints_for_a_wildcard_is_reachable(tmp_path: Path) -> None:
    with started(tmp_path / "err", "up", "--port", "0", "--host", "::", *AT_ONCE) as up:
        [address] = up.ready()

        assert ROUND_TRIPS["barnabas"](address, "orders") == b"from barnabas"
        assert up.stop().code == 0


def test_an_ipv4_client_of_the_ipv6_wildcard_is_known_by_its_ipv4_address(wildcard: str) -> None:
    address = f"127.0.0.1:{wildcard}"
    with Producer(bootstrap_servers=address) as producer:
        producer.send("orders", b"an order")
    with (
        Admin(bootstrap_servers=address) as admin,
        Consumer(bootstrap_servers=address, group_id="readers", auto_offset_reset="earliest") as consumer,
    ):
        consumer.subscribe(["orders"])
        next(consumer)

        [member] = admin.describe_group("readers").members

    assert member.host == "/127.0.0.1"


def test_listeners_of_both_families_may_share_a_port(tmp_path: Path) -> None:
    with socket.socket(socket.AF_INET6) as sock:
        sock.bind(("::", 0))
        port = sock.getsockname()[1]
    config = tmp_path / "server.properties"
    config.write_text(
        "process.roles=broker,controller\nnode.id=1\n"
        f"listeners=FOUR://0.0.0.0:{port},SIX://[::]:{port},CONTROLLER://127.0.0.1:0\n"
        f"advertised.listeners=FOUR://127.0.0.1:{port},SIX://[::1]:{port}\n"
        "listener.security.protocol.map=FOUR:PLAINTEXT,SIX:PLAINTEXT,CONTROLLER:PLAINTEXT\n"
        "inter.broker.listener.name=FOUR\ncontroller.listener.names=CONTROLLER\n"
        f"controller.quorum.voters=1@127.0.0.1:0\nlog.dirs={tmp_path / 'data'}\n"
    )
    cluster_id = "8UFBlDBzRM2WGJual5ztlg"
    formatted = run_to_end(tmp_path / "err", "storage", "format", "-t", cluster_id, "-c", str(config))
    assert formatted.code == 0, formatted.err
    with started(tmp_path / "err", "broker", str(config)) as broker:
        assert broker.ready() == [f"127.0.0.1:{port}", f"[::1]:{port}"]

        for address, host in {f"127.0.0.1:{port}": "127.0.0.1", f"[::1]:{port}": "::1"}.items():
            with Admin(bootstrap_servers=address) as admin:
                assert [node.host for node in admin.describe_cluster().nodes.values()] == [host]
