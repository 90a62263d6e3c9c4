"""A broker with two listeners: each client is told the address of the listener that it came by."""

from collections.abc import Iterator

import confluent_kafka.admin
import pytest

from barnabas.client.blocking import Admin
from support.our_client.round_trips import ROUND_TRIPS
from support.process.processes import run_to_end, started

# All of 127.0.0.0/8 is the loopback, so two of its addresses stand for two networks.
INSIDE, OUTSIDE = "localhost", "127.0.0.2"


@pytest.fixture(scope="module")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """What clients are told, by the name of the listener."""
    root = tmp_path_factory.mktemp("broker")
    config = root / "server.properties"
    config.write_text(
        "process.roles=broker,controller\nnode.id=1\n"
        "listeners=INTERNAL://127.0.0.1:0,EXTERNAL://127.0.0.2:0,CONTROLLER://127.0.0.1:0\n"
        f"advertised.listeners=INTERNAL://{INSIDE}:0,EXTERNAL://{OUTSIDE}:0\n"
        "listener.security.protocol.map=INTERNAL:PLAINTEXT,EXTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT\n"
        "inter.broker.listener.name=INTERNAL\ncontroller.listener.names=CONTROLLER\n"
        "controller.quorum.voters=1@127.0.0.1:0\noffsets.topic.replication.factor=1\n"
        "group.initial.rebalance.delay.ms=0\n"
        f"log.dirs={root / 'data'}\n"
    )
    formatted = run_to_end(
        root / "format", "storage", "format", "-t", "8UFBlDBzRM2WGJual5ztlg", "-c", str(config)
    )
    assert formatted.code == 0, formatted.err
    with started(root / "err", "broker", str(config)) as broker:
        internal, external = broker.ready()
        yield {"INTERNAL": internal, "EXTERNAL": external}


def test_each_listener_has_the_name_that_was_advertised_for_it(addresses: dict[str, str]) -> None:
    assert addresses["INTERNAL"].startswith(f"{INSIDE}:")
    assert addresses["EXTERNAL"].startswith(f"{OUTSIDE}:")


@pytest.mark.parametrize("listener", ["INTERNAL", "EXTERNAL"])
def test_metadata_names_the_listener_that_was_asked(listener: str, addresses: dict[str, str]) -> None:
    address = addresses[listener]

    with Admin(bootstrap_servers=address) as admin:
        ours = [f"{node.host}:{node.port}" for node in admin.describe_cluster().nodes.values()]
    other = confluent_kafka.admin.AdminClient({"bootstrap.servers": address})
    theirs = [f"{node.host}:{node.port}" for node in other.list_topics(timeout=30).brokers.values()]

    assert ours == theirs == [address]


@pytest.mark.parametrize("listener", ["INTERNAL", "EXTERNAL"])
@pytest.mark.parametrize("client", ["barnabas", "confluent"])
def test_clients_of_each_listener_write_and_read(
    client: str, listener: str, addresses: dict[str, str]
) -> None:
    topic = f"{client}-{listener}"

    assert ROUND_TRIPS[client](addresses[listener], topic) == f"from {client}".encode()
