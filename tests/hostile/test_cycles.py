"""Reference counting frees everything that a closed connection used, without the garbage collector.

The broker runs in this process, on real sockets, with the collector switched off.
"""

import gc
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.exchange import encode_request
from barnabas.protocol.messages.classic_groups import (
    FindCoordinatorRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
)
from barnabas.protocol.messages.cluster import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.configs import DescribeConfigsRequest, DescribeConfigsResource
from barnabas.protocol.messages.group_admin import DescribeGroupsRequest
from barnabas.protocol.messages.topics import CreateTopicsRequest
from barnabas.protocol.wire import ITEMS_MAX
from barnabas.server.broker import Broker as ServerBroker
from barnabas.server.network.connection import PIPELINED_MAX, Connection
from barnabas.server.network.pending import OTHER_REQUEST_BYTES_MAX
from barnabas.testing import Broker
from support.hostile.cycles import left_in_cycles
from support.wire.client import ConnectionClosed, WireClient, key_of
from support.wire.requests import TIMEOUT_MS, batch, fetch_of, new_topic, produce_of

pytestmark = pytest.mark.kernel

GONE_WITHIN_S = 20.0
IDLE_MS = 1_500
PER_HOST_MAX = 40
LARGE = 8 << 20
NAMES = [f"nothing-{number}" for number in range(3_000)]
_RESET = struct.pack("ii", 1, 0)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    settings = {"connections.max.idle.ms": IDLE_MS, "max.connections.per.ip": PER_HOST_MAX}
    with Broker(settings, topics=["t"], storage="disk") as broker:
        with WireClient(broker.bootstrap) as client:
            # Coordinators exist, and what is made once is there.
            client.ask(FindCoordinatorRequest(key="g", key_type=0), 3)
            client.ask(produce_of("t", 0, batch(b"hello"), acks=1), 9)
            client.ask(fetch_of("t", {0: 0}), 12)
        yield broker


def connections_in_memory() -> int:
    """Open connections, and those that a leaked reference keeps. Compiled objects have no weak references."""
    return sum(type(one) is Connection for one in gc.get_objects())


def all_gone(broker: Broker) -> None:
    """Wait until no connection is open and no request is in progress."""

    async def under_way(server: ServerBroker) -> int:
        return sum(len(one.pool) + len(one.pool.tasks._running) for one in server.listeners)

    assert broker._node is not None
    deadline = time.monotonic() + GONE_WITHIN_S
    while broker._node.call(under_way).result(GONE_WITHIN_S):
        assert time.monotonic() < deadline, "a connection stays open"
        time.sleep(0.01)


def request(body: Any, version: int, *, acks: object = None) -> bytes:
    return encode_request(body, version, key=key_of(body), correlation_id=1, client_id="c")


def frame(size: int, sent: int) -> bytes:
    return struct.pack(">i", size) + bytes(sent)


def metadata(count: int = 0) -> bytes:
    topics = [MetadataRequestTopic(name=name) for name in NAMES[:count]]
    return request(MetadataRequest(topics=topics, allow_auto_topic_creation=False), 12)


# How a connection is left: what the client sends, and how it leaves.


def close(client: socket.socket) -> None:
    client.close()


def reset(client: socket.socket) -> None:
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    client.close()


def half_close(client: socket.socket) -> None:
    client.shutdown(socket.SHUT_WR)
    drain(client)


def drain(client: socket.socket) -> None:
    """Read until the broker closes the connection."""
    with suppress(ConnectionResetError):
        while client.recv(1 << 16):
            pass
    client.close()


FRAMES = {
    "nothing": b"",
    "half a length": b"\x00\x00",
    "only a length": frame(1000, 0),
    "half a small frame": frame(1000, 500),
    "a request and half of the next": metadata() + frame(1000, 500),
    "half a large frame": frame(LARGE, LARGE // 2),
    "almost all of a large frame": frame(LARGE, LARGE - 1),
    "only the length of the largest frame": frame(100 << 20, 0),
    "a large request and half of the next": request(produce_of("t", 0, batch(bytes(1 << 20)), acks=1), 9)
    + frame(LARGE, LARGE // 2),
}
LEAVING: dict[str, Callable[[socket.socket], None]] = {
    "close": close,
    "reset": reset,
    "half close": half_close,
}
IN_PROGRESS = {
    "a waiting fetch": request(fetch_of("t", {0: 1}, max_wait_ms=60_000), 12),
    "many waiting fetches": request(fetch_of("t", {0: 1}, max_wait_ms=60_000), 12) * (PIPELINED_MAX + 5),
    "a fetch of an unknown partition": request(fetch_of("t", {7: 0}, max_wait_ms=60_000), 12),
    "a member that waits for others": request(
        JoinGroupRequest(
            group_id="g",
            session_timeout_ms=6000,
            rebalance_timeout_ms=6000,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
        ),
        3,
    ),
    "a request in slices": metadata(3_000),
    "many requests in slices": metadata(3_000) * 20,
    "a topic that is being created": request(
        CreateTopicsRequest(topics=[new_topic("t", 1, {})], timeout_ms=TIMEOUT_MS), 5
    ),
    "responses that are not taken": request(
        DescribeConfigsRequest(resources=[DescribeConfigsResource(resource_type=2, resource_name="t")] * 300),
        4,
    )
    * 20,
}
REFUSED = {
    "a negative length": struct.pack(">i", -5),
    "a length over the limit": struct.pack(">i", 2**31 - 1),
    "a request and then a negative length": metadata() + struct.pack(">i", -5),
    "garbage": frame(50, 50),
    "random text": b"GET / HTTP/1.1\r\n\r\n",
    "an unknown api": struct.pack(">ihhi", 8, 9999, 0, 1),
    "an unknown version": struct.pack(">ihhi", 8, ApiKey.METADATA, 999, 1),
    "a request cut short": struct.pack(">i", 20) + metadata()[4:24],
    "a large request of garbage": struct.pack(">ihhi", 100_008, ApiKey.METADATA, 12, 1) + b"\xff" * 100_000,
    "too large without records": struct.pack(">ihhi", OTHER_REQUEST_BYTES_MAX + 9, ApiKey.METADATA, 12, 1)
    + bytes(OTHER_REQUEST_BYTES_MAX + 1),
    "too many items": request(
        DescribeGroupsRequest(groups=[f"{number:x}" for number in range(ITEMS_MAX + 1)]), 6
    ),
    "a produce that fails and wants no answer": request(
        produce_of("no such topic", 0, batch(b"x"), acks=0), 9
    ),
}


def checked(broker: Broker, story: Callable[[], None]) -> None:
    all_gone(broker)
    with left_in_cycles() as left:
        story()
        all_gone(broker)
    assert not left, "\n".join(left)


def connect(broker: Broker) -> socket.socket:
    host, _, port = broker.bootstrap.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=GONE_WITHIN_S)


def send(client: socket.socket, data: bytes) -> None:
    # The broker may close the connection before it has read everything.
    with suppress(ConnectionResetError, BrokenPipeError):
        client.sendall(data)


@pytest.mark.parametrize("leaving", LEAVING)
@pytest.mark.parametrize("sent", FRAMES)
def test_a_client_that_leaves_with_half_a_frame_leaves_nothing(
    broker: Broker, sent: str, leaving: str
) -> None:
    def story() -> None:
        client = connect(broker)
        send(client, FRAMES[sent])
        LEAVING[leaving](client)

    checked(broker, story)


@pytest.mark.parametrize("leaving", ["close", "reset"])
@pytest.mark.parametrize("sent", IN_PROGRESS)
def test_a_client_that_leaves_before_its_answer_leaves_nothing(
    broker: Broker, sent: str, leaving: str
) -> None:
    def story() -> None:
        client = connect(broker)
        send(client, IN_PROGRESS[sent])
        time.sleep(0.1)
        LEAVING[leaving](client)

    checked(broker, story)


@pytest.mark.parametrize("sent", REFUSED)
def test_a_connection_that_the_broker_closes_leaves_nothing(broker: Broker, sent: str) -> None:
    def story() -> None:
        client = connect(broker)
        send(client, REFUSED[sent])
        drain(client)

    checked(broker, story)


def test_connections_that_are_refused_leave_nothing(broker: Broker) -> None:
    def story() -> None:
        clients = [connect(broker) for _ in range(PER_HOST_MAX + 20)]
        for client in clients:
            client.close()

    checked(broker, story)


@pytest.mark.parametrize("sent", ["nothing", "half a small frame", "half a large frame"])
def test_a_connection_that_is_idle_for_too_long_leaves_nothing(broker: Broker, sent: str) -> None:
    def story() -> None:
        client = connect(broker)
        send(client, FRAMES[sent])
        drain(client)

    checked(broker, story)


def test_a_client_that_reads_nothing_for_too_long_leaves_nothing(broker: Broker) -> None:
    def story() -> None:
        client = connect(broker)
        send(client, IN_PROGRESS["responses that are not taken"])
        time.sleep(0.1)
        all_gone(broker)
        client.close()

    checked(broker, story)


def test_connections_are_freed_at_once_when_they_end(broker: Broker) -> None:
    all_gone(broker)
    with left_in_cycles() as left:
        before = connections_in_memory()
        client = connect(broker)
        send(client, metadata() + FRAMES["half a large frame"])
        # The answer: the connection is there.
        assert client.recv(1)
        assert connections_in_memory() == before + 1

        client.close()
        all_gone(broker)
        deadline = time.monotonic() + GONE_WITHIN_S
        while connections_in_memory() > before and time.monotonic() < deadline:
            time.sleep(0.01)

        assert connections_in_memory() == before
    assert left == []


def test_a_broker_that_stops_leaves_no_connection() -> None:
    with (
        Broker(topics=["t"]) as broker,
        left_in_cycles() as left,
        WireClient(broker.bootstrap) as client,
        WireClient(broker.bootstrap) as other,
    ):
        client.send_raw(FRAMES["half a large frame"])
        other.send(fetch_of("t", {0: 0}, max_wait_ms=60_000), 12)
        with broker.down(), pytest.raises(ConnectionClosed):
            client.read_frame()
    of_connections = (
        "Connection",
        "PendingRequest",
        "LargeFrames",
        "Backlog",
        "SocketOutlet",
        "FrameDecoder",
    )
    assert [one for one in left if one.endswith(tuple(f".{name}" for name in of_connections))] == []
