"""The memory that clients make a broker use is limited, and freed when they have gone."""

import resource
import socket
import struct
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from barnabas.base.ids import ZERO_UUID
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import encode_request
from barnabas.protocol.messages.classic_groups import FindCoordinatorRequest
from barnabas.protocol.messages.cluster import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.configs import DescribeConfigsRequest, DescribeConfigsResource
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.group_admin import DeleteGroupsRequest
from barnabas.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.protocol.messages.topics import CreateTopicsRequest, DeleteTopicsRequest, DeleteTopicState
from barnabas.server.network.connection import PIPELINED_MAX, UNANSWERED_BYTES_MAX, WAITING_BYTES_MAX
from support.hostile.victim import SERVED_WITHIN_S, Victim
from support.scale import scaled
from support.wire.client import WireClient, key_of
from support.wire.requests import TIMEOUT_MS, batch, fetch_of, new_topic, produce_of, produced

MB = 1 << 20
FRAME = 100_000_000
REQUEST_MAX = 100 * MB
# After this long without a change a broker has read all that it reads.
SETTLED_S = 1.0


@contextmanager
def attacked(victim: Victim) -> Iterator[None]:
    """Check that another client is served throughout the block, and that the memory is freed after it."""
    before_mb = victim.rss_mb
    with victim.bystander() as bystander:
        # The bystander's own topic, and what the broker loads for its first client.
        before_mb = max(before_mb, victim.rss_mb)
        yield
    assert bystander.error is None
    assert bystander.slowest_s < SERVED_WITHIN_S
    victim.memory_returns_to(before_mb, within_s=150)


def settled(victim: Victim) -> float:
    """The memory of a broker that has processed all requests."""
    size = victim.rss_mb
    since = time.monotonic()
    while time.monotonic() - since < SETTLED_S:
        time.sleep(0.1)
        if abs(victim.rss_mb - size) > 1:
            size, since = victim.rss_mb, time.monotonic()
    return size


def header(size: int) -> bytes:
    return struct.pack(">i", size)


def connect(victim: Victim, *, receive_buffer_bytes: int | None = None) -> socket.socket:
    client = socket.socket()
    if receive_buffer_bytes is not None:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
    client.settimeout(60)
    client.connect(("127.0.0.1", victim.port))
    return client


def send_until_refused(client: socket.socket, pieces: Iterable[bytes], *, within_s: float = 0.2) -> None:
    """Send until the broker stops reading, or closes the connection."""
    client.settimeout(within_s)
    with suppress(TimeoutError, ConnectionError):
        for piece in pieces:
            client.sendall(piece)


def request(body: Any, version: int) -> bytes:
    return encode_request(body, version, key=key_of(body), correlation_id=1, client_id="hostile")


@pytest.mark.scaled
def test_large_requests_that_are_never_completed_leave_nothing(tmp_path: Path) -> None:
    times, size = scaled("BARNABAS_FRAMES", 8, 60), FRAME * 99 // 100
    with Victim(tmp_path) as victim:
        with attacked(victim):
            piece = bytes(MB)
            highest_mb = 0.0
            for _ in range(times):
                with connect(victim) as client:
                    client.sendall(header(FRAME))
                    for _ in range(size // MB):
                        client.sendall(piece)
                highest_mb = max(highest_mb, victim.rss_mb)
            # Never two at once.
            assert highest_mb < 300
        victim.check()


@pytest.mark.scaled
def test_a_frame_length_alone_allocates_no_memory(tmp_path: Path) -> None:
    count = scaled("BARNABAS_CONNECTIONS", 200, 3_000)
    allow_descriptors(2 * count)
    with Victim(tmp_path) as victim, ExitStack() as clients:
        with attacked(victim):
            before_mb = settled(victim)
            for _ in range(count):
                clients.enter_context(connect(victim)).sendall(header(FRAME))
            # What a connection takes at all.
            assert settled(victim) - before_mb < 10 + count * 0.03
            clients.close()
        victim.check()


@pytest.mark.scaled
def test_very_many_connections_at_once_leave_nothing(tmp_path: Path) -> None:
    count = scaled("BARNABAS_CONNECTIONS", 2_000, 18_000)
    # A process each, and the broker keeps some for its logs.
    allow_descriptors(count + 1_500)
    with Victim(tmp_path) as victim, ExitStack() as clients:
        with attacked(victim):
            for _ in range(count):
                clients.enter_context(connect(victim))
            # All of them are accepted.
            settled(victim)
            clients.close()
        victim.check()


@pytest.mark.scaled
def test_closed_connections_leave_no_memory_behind(tmp_path: Path) -> None:
    count = scaled("BARNABAS_CONNECTIONS", 500, 10_000)
    with Victim(tmp_path) as victim:
        with attacked(victim):
            for _ in range(count // 50):
                clients = [WireClient(victim.address) for _ in range(50)]
                for number, client in enumerate(clients):
                    if number % 2:
                        client.ask(MetadataRequest(topics=[]), 12)
                    else:
                        client.send_raw(header(1000) + bytes(500))
                for client in clients:
                    client.close()
        victim.check()


@pytest.mark.scaled
def test_topics_that_are_deleted_leave_nothing(tmp_path: Path) -> None:
    count = scaled("BARNABAS_TOPICS", 300, 20_000)
    with Victim(tmp_path) as victim, WireClient(victim.address, timeout_s=120) as client:
        # What grows with the first topics and is used again by later ones.
        create_and_delete(client, [f"first-{number}" for number in range(count // 10)])
        with attacked(victim):
            for at in range(0, count, 500):
                create_and_delete(client, [f"t-{number}" for number in range(at, min(count, at + 500))])
        victim.check()


def create_and_delete(client: WireClient, names: list[str]) -> None:
    for at in range(0, len(names), 50):
        some = names[at : at + 50]
        create = CreateTopicsRequest(topics=[new_topic(name, 1, {}) for name in some], timeout_ms=TIMEOUT_MS)
        assert {one.error_code for one in client.ask(create, 5).topics} == {0}
        for name in some[::10]:
            assert produced(client.ask(produce_of(name, 0, batch(b"x"), acks=1), 9)).error_code == 0
    for at in range(0, len(names), 50):
        some = names[at : at + 50]
        states = [DeleteTopicState(name=name, topic_id=ZERO_UUID) for name in some]
        delete = DeleteTopicsRequest(topics=states, timeout_ms=TIMEOUT_MS)
        assert {one.error_code for one in client.ask(delete, 6).responses} == {0}


@pytest.mark.scaled
def test_groups_that_are_deleted_leave_nothing(tmp_path: Path) -> None:
    count = scaled("BARNABAS_GROUPS", 20_000, 100_000)
    with Victim(tmp_path) as victim, WireClient(victim.address, timeout_s=120) as client:
        client.ask(CreateTopicsRequest(topics=[new_topic("t", 1, {})], timeout_ms=TIMEOUT_MS), 5)
        client.ask(FindCoordinatorRequest(key="g", key_type=0), 3)
        for burst in ("first", "second"):
            names = [f"{burst}-{number}" for number in range(count)]
            with attacked(victim):
                commit(client, names)
                delete_groups(client, names)
        victim.check()


def commit(client: WireClient, names: list[str]) -> None:
    deadline = time.monotonic() + 30
    for at in range(0, len(names), PIPELINED_MAX):
        some = names[at : at + PIPELINED_MAX]
        for name in some:
            client.send(committed(name), 8)
        for _ in some:
            _, answer = client.receive(ApiKey.OFFSET_COMMIT, 8)
            code = answer.topics[0].partitions[0].error_code
            if code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                assert time.monotonic() < deadline
                continue
            assert code == 0


def delete_groups(client: WireClient, names: list[str]) -> None:
    for at in range(0, len(names), 500):
        results = client.ask(DeleteGroupsRequest(groups_names=names[at : at + 500]), 2).results
        assert {one.error_code for one in results} <= {0, ErrorCode.GROUP_ID_NOT_FOUND}


def committed(group: str) -> OffsetCommitRequest:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="m")
    return OffsetCommitRequest(
        group_id=group, topics=[OffsetCommitRequestTopic(name="t", partitions=[partition])]
    )


def test_a_client_that_reads_no_responses_is_no_longer_read(tmp_path: Path) -> None:
    """A small request whose response is large, again and again."""
    with Victim(tmp_path) as victim, WireClient(victim.address) as client:
        client.ask(CreateTopicsRequest(topics=[new_topic("t", 1, {})], timeout_ms=TIMEOUT_MS), 5)
        for _ in range(20):
            assert (
                produced(client.ask(produce_of("t", 0, batch(bytes(1_000_000)), acks=1), 9)).error_code == 0
            )
        resource_of_topic = DescribeConfigsResource(resource_type=2, resource_name="t")
        configs = DescribeConfigsRequest(resources=[resource_of_topic] * 100)
        size = len(client_bytes(client, configs, 4))
        fetch = fetch_of("t", {0: 0}, max_bytes=50 * MB, partition_max_bytes=50 * MB)
        with attacked(victim):
            before_mb = settled(victim)
            slow = [connect(victim, receive_buffer_bytes=4096) for _ in range(20)]
            for number, one in enumerate(slow):
                asked = request(configs, 4) if number % 2 else request(fetch, 12)
                send_until_refused(one, [asked] * (2 * PIPELINED_MAX))
            grown_mb = settled(victim) - before_mb
            # Of each connection: responses up to the limit and one more, and requests that were read.
            assert grown_mb * MB < len(slow) * (WAITING_BYTES_MAX + 2 * size + MB)
            for one in slow:
                one.close()
        victim.check()


def client_bytes(client: WireClient, body: Any, version: int) -> bytes:
    client.send(body, version)
    return client.read_frame()


def test_a_client_with_very_many_waiting_fetches_is_no_longer_read(tmp_path: Path) -> None:
    partitions = [FetchPartition(partition=index, fetch_offset=0) for index in range(900)]
    waiting = FetchRequest(
        max_wait_ms=2**31 - 1,
        min_bytes=2**30,
        max_bytes=2**30,
        session_epoch=-1,
        topics=[FetchTopic(topic="t", partitions=partitions)],
    )
    # A connection that is not read does not tell that its client has gone: it is closed when it is idle.
    settings = {"connections.max.idle.ms": 2_000}
    with Victim(tmp_path, settings=settings) as victim, WireClient(victim.address) as client:
        client.ask(CreateTopicsRequest(topics=[new_topic("t", 900, {})], timeout_ms=TIMEOUT_MS), 5)
        # Python keeps a block of 1 MB for small objects as long as one of them is in use, so the first attack
        # leaves some. A second one must not add to it.
        ask_very_often(victim, request(waiting, 12))
        with attacked(victim):
            ask_very_often(victim, request(waiting, 12))
        victim.check()


def ask_very_often(victim: Victim, asked: bytes) -> None:
    before_mb = settled(victim)
    with connect(victim) as client:
        send_until_refused(client, [asked] * (3 * PIPELINED_MAX))
        # Requests that have no response yet count 16 times their size.
        assert settled(victim) - before_mb < 2 * UNANSWERED_BYTES_MAX / MB
    waiting = 'reason="request waited too long for its response"'
    victim.eventually(lambda: waiting in victim.log, "the connection is closed when it is idle")


@pytest.mark.scaled
def test_half_sent_requests_of_many_clients_stay_within_the_limit(tmp_path: Path) -> None:
    count = scaled("BARNABAS_CONNECTIONS", 12, 200)
    limit_mb = 100
    settings = {"queued.max.request.bytes": REQUEST_MAX}
    with Victim(tmp_path, settings=settings) as victim, ExitStack() as clients:
        with WireClient(victim.address, timeout_s=60) as honest, attacked(victim):
            honest.ask(
                CreateTopicsRequest(
                    topics=[new_topic("large", 1, {"max.message.bytes": "50000000"})], timeout_ms=TIMEOUT_MS
                ),
                5,
            )
            before_mb = settled(victim)
            highest_mb = 0.0
            for _ in range(count):
                client = clients.enter_context(connect(victim))
                client.sendall(header(FRAME))
                send_until_refused(client, [bytes(MB)] * 20)
                highest_mb = max(highest_mb, victim.rss_mb)
            # One connection may go past the limit, and others by what is read at once.
            assert highest_mb - before_mb < limit_mb * 1.3 + 100 + count

            # A client with a large request gets its turn, although all others stall.
            value = bytes(20 * MB)
            answer = honest.ask(produce_of("large", 0, batch(value), acks=1), 9)
            assert produced(answer).error_code == 0
            clients.close()
        assert "request arrives too slowly" in victim.log
        victim.check()


def test_small_requests_are_read_while_the_limit_is_reached(tmp_path: Path) -> None:
    settings = {"queued.max.request.bytes": REQUEST_MAX}
    with Victim(tmp_path, settings=settings) as victim, ExitStack() as clients:
        with attacked(victim):
            for _ in range(8):
                client = clients.enter_context(connect(victim))
                client.sendall(header(FRAME))
                send_until_refused(client, [bytes(MB)] * 20)
            with WireClient(victim.address) as client:
                started = time.monotonic()
                for _ in range(20):
                    client.ask(
                        MetadataRequest(
                            topics=[MetadataRequestTopic(name="x")], allow_auto_topic_creation=False
                        ),
                        12,
                    )
                assert time.monotonic() - started < SERVED_WITHIN_S
            clients.close()
        victim.check()


def allow_descriptors(count: int) -> None:
    """Raise the descriptor limit of this process and of the broker that it starts."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < count + 500:
        pytest.skip(f"RLIMIT_NOFILE is {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
