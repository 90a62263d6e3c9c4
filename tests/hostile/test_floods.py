"""Very many small requests at once from many clients: another client is served in between."""

import selectors
import socket
from pathlib import Path

import pytest

from barnabas.protocol.exchange import encode_request
from barnabas.protocol.messages.cluster import MetadataRequest
from barnabas.protocol.messages.topics import CreateTopicsRequest
from support.hostile.victim import SERVED_WITHIN_S, Victim
from support.scale import scaled
from support.wire.client import WireClient, key_of
from support.wire.requests import TIMEOUT_MS, new_topic

REQUESTS = 100
TOPICS = 30
READ_BYTES = 1 << 20


@pytest.mark.scaled
def test_many_clients_with_many_small_requests_leave_time_for_others(tmp_path: Path) -> None:
    count = scaled("BARNABAS_CONNECTIONS", 400, 900)
    names = [f"topic-{number}" for number in range(TOPICS)]
    body = MetadataRequest(topics=None, allow_auto_topic_creation=False)
    asked = encode_request(body, 12, key=key_of(body), correlation_id=1, client_id="c") * REQUESTS
    with Victim(tmp_path) as victim:
        host, _, port = victim.address.rpartition(":")
        with WireClient(victim.address) as client:
            new = [new_topic(name, 1, {}) for name in names]
            client.ask(CreateTopicsRequest(topics=new, timeout_ms=TIMEOUT_MS), 5)
        clients = [socket.create_connection((host, int(port))) for _ in range(count)]
        with victim.bystander() as bystander:
            exchange(clients, asked)
        for client in clients:
            client.close()
        assert bystander.error is None
        assert bystander.slowest_s < SERVED_WITHIN_S
        victim.check()


def exchange(clients: list[socket.socket], asked: bytes) -> None:
    """Send the same bytes from all clients at once, and read until each has all responses."""
    missing: dict[socket.socket, memoryview] = {}
    with selectors.DefaultSelector() as selector:
        for client in clients:
            client.setblocking(False)
            missing[client] = memoryview(asked)[client.send(asked) :]
            selector.register(client, selectors.EVENT_READ | selectors.EVENT_WRITE)
        answered = dict.fromkeys(clients, 0)
        sizes: set[int] = set()
        while answered:
            for key, events in selector.select(60) or pytest.fail("no response within 60 s"):
                client = key.fileobj
                assert isinstance(client, socket.socket)
                if events & selectors.EVENT_WRITE:
                    rest = missing[client]
                    missing[client] = rest[client.send(rest) :] if rest else rest
                    if not missing[client]:
                        selector.modify(client, selectors.EVENT_READ)
                if events & selectors.EVENT_READ:
                    data = client.recv(READ_BYTES)
                    assert data, "the broker closed a connection"
                    if answered[client] == 0:
                        sizes.add(4 + int.from_bytes(data[:4], "big"))
                    answered[client] += len(data)
                    [size] = sizes
                    if answered[client] == size * REQUESTS:
                        selector.unregister(client)
                        del answered[client]
