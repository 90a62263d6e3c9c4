"""Limits on connections: Kafka 4.3.0 and this broker do the same with clients that come above them."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from barnabas.protocol.messages.cluster import ApiVersionsRequest
from support.kafka.broker import KafkaBroker
from support.kafka.tools import kafka_tools
from support.process.our_broker import OurBroker
from support.wire.client import ConnectionClosed, WireClient

BOTH = pytest.mark.parametrize("kind", ["kafka", "barnabas"])
# Kafka may not have noticed yet that the test's look at its port is over.
SETTLED_S = 2.0


@contextmanager
def broker(kind: str, root: Path, settings: Mapping[str, object]) -> Iterator[str]:
    if kind == "barnabas":
        with OurBroker(root, settings=settings).running() as address:
            yield address
        return
    kafka = KafkaBroker(kafka_tools(), root, settings=settings)
    kafka.format()
    with kafka.running() as address:
        time.sleep(SETTLED_S)
        yield address


def asked(address: str) -> WireClient:
    client = WireClient(address, timeout_s=30)
    client.send(ApiVersionsRequest(), 0)
    return client


def fate(client: WireClient, *, within_s: float) -> str:
    client._socket.settimeout(within_s)
    try:
        client.read_frame()
    except TimeoutError:
        return "waits"
    except ConnectionClosed:
        return "closed"
    return "served"


@BOTH
@pytest.mark.parametrize(
    "settings", [{"max.connections": 5}, {"listener.name.plaintext.max.connections": 5}], ids=["all", "one"]
)
def test_at_the_limit_of_connections_clients_wait(
    kind: str, settings: dict[str, int], tmp_path: Path
) -> None:
    with broker(kind, tmp_path, settings) as address:
        clients = [asked(address) for _ in range(8)]

        assert [fate(client, within_s=1) for client in clients] == ["served"] * 5 + ["waits"] * 3
        clients[0].close()
        assert fate(clients[5], within_s=5) == "served"
        assert [fate(client, within_s=1) for client in clients[6:]] == ["waits"] * 2
        for client in clients:
            client.close()


@BOTH
def test_above_the_limit_of_an_address_clients_are_closed(kind: str, tmp_path: Path) -> None:
    with broker(kind, tmp_path, {"max.connections.per.ip": 5}) as address:
        clients = [asked(address) for _ in range(8)]

        assert [fate(client, within_s=5) for client in clients] == ["served"] * 5 + ["closed"] * 3
        clients[0].close()
        time.sleep(1)
        clients.append(asked(address))
        assert fate(clients[-1], within_s=5) == "served"
        for client in clients:
            client.close()


@BOTH
@pytest.mark.parametrize("prefix", ["", "listener.name.plaintext."], ids=["all", "one"])
def test_above_the_creation_rate_clients_wait(kind: str, prefix: str, tmp_path: Path) -> None:
    with broker(kind, tmp_path, {f"{prefix}max.connection.creation.rate": 4}) as address:
        started, waited = time.monotonic(), []
        for _ in range(46):
            client = asked(address)
            assert fate(client, within_s=30) == "served"
            waited.append(time.monotonic() - started)
            client.close()

        # One or two were used up by looks at the port.
        assert waited[37] < 0.5
        assert [round(after - before) for before, after in zip(waited[-3:], waited[-2:], strict=False)] == [
            1,
            1,
        ]
