"""Peers that speak something else, lie, dawdle or never listen, against our broker.

Each of them gets the right error or a closed connection within a bound. The broker's memory stays flat, its
log says one line about it, and a well-behaved client beside them, who runs all the time, is not harmed.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from random import Random
from struct import Struct, pack
from time import monotonic
from typing import Any, TypeAlias

import pytest

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import decode_response, encode_request
from barnabas.protocol.messages.cluster import ApiVersionsRequest, MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.records.builder import build_batch
from barnabas.records.header import crc32c_of
from support.clients.bad_peer import BadPeer, lines_with, wait_for_line
from support.clients.house import House, house_with
from support.clients.stage import Stage, wait_until
from support.wire.client import WireClient, key_of

MIB = 1 << 20
# Who sends no whole request for so long is closed.
IDLE_MS = 4000
# Twice the idle time and some more for a busy machine.
CLOSED_WITHIN_S = 30.0
LOGGED_WITHIN_S = 30.0
# What a round of the neighbour may take at worst: the machine has other things to do, the broker has not.
NEIGHBOUR_SECONDS_MAX = 2.0
# For a request of a hundred thousand partitions and its answer.
LARGE_SECONDS_MAX = 20.0
GROWTH_BYTES_MAX = 16 * MIB
# A log may roll or an index may be opened meanwhile.
FILES_MORE_MAX = 5
REPEATED = 20
SLOW_PEERS = 100
DEAF_PEERS = 20
# What each of those may make the broker hold: Kafka's socket buffers and one answer are a few hundred kB.
DEAF_PEER_BYTES_MAX = 3 * MIB
# The kernel's buffers take a few megabytes before the broker has to hold anything.
TAKEN_BYTES_MAX = 64 * MIB
MANY = 100_000
_LENGTH = Struct(">i")

Connect: TypeAlias = Callable[..., BadPeer]


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with house_with(tmp_path_factory.mktemp("bad-bytes"), {"connections.max.idle.ms": IDLE_MS}) as house:
        yield house


@pytest.fixture(scope="module")
def patient_house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """With Kafka's own idle time: a request may well take longer to answer than the short one."""
    with house_with(tmp_path_factory.mktemp("large-requests"), {}) as house:
        yield house


@pytest.fixture
def connect(house: House) -> Iterator[Connect]:
    """Makes bad peers, and closes what is left of them."""
    with ExitStack() as peers:

        def one(receive_buffer_bytes: int | None = None) -> BadPeer:
            peer = BadPeer(house.address, receive_buffer_bytes=receive_buffer_bytes)
            peers.callback(peer.close)
            return peer

        yield one


@pytest.fixture
def unharmed(house: House) -> Iterator[None]:
    """The neighbour goes on during the test, and no round of it is slow."""
    mark = house.neighbour.mark()
    yield
    slowest = house.neighbour.slowest_since(mark)
    assert slowest < NEIGHBOUR_SECONDS_MAX, f"a round took {slowest:.3f} s"


def frame(body: bytes) -> bytes:
    return _LENGTH.pack(len(body)) + body


def header(key: int, version: int) -> bytes:
    """Of a request, with correlation id 7 and no client id."""
    return pack(">hhih", key, version, 7, -1)


NONSENSE = {
    "garbage": bytes([0xFF]) + Random(1).randbytes(300),
    "a frame of garbage": frame(b"\x7f" + Random(2).randbytes(300)),
    "a TLS hello": bytes.fromhex("1603010200010001fc0303") + Random(3).randbytes(500),
    "an HTTP request": b"GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: curl/8.5.0\r\n\r\n",
    "a length of 2 GB": _LENGTH.pack(2**31 - 1) + b"x" * 1000,
    "a length just over the limit": _LENGTH.pack(104_857_601),
    "a negative length": _LENGTH.pack(-1),
    "the most negative length": _LENGTH.pack(-(2**31)) + b"x" * 1000,
    "an empty frame": frame(b""),
    "half a header": frame(b"\x00\x03\x00"),
    "an unknown API key": frame(header(9999, 0)),
    "a negative API key": frame(header(-1, 0)),
    "an unknown version": frame(header(ApiKey.METADATA, 99) + b"\x00" * 20),
    "an API of controllers": frame(header(ApiKey.VOTE, 0) + b"\x00" * 20),
    "a body that ends too early": frame(header(ApiKey.METADATA, 4) + pack(">i", 3)),
    "an array of two billion topics": frame(
        header(ApiKey.METADATA, 4) + pack(">i", 2**31 - 1) + b"\x00" * 50
    ),
    "a client id longer than the frame": frame(pack(">hhih", ApiKey.METADATA, 4, 7, 30_000) + b"abc"),
}
each_nonsense = pytest.mark.parametrize("data", NONSENSE.values(), ids=NONSENSE.keys())


@each_nonsense
@pytest.mark.usefixtures("unharmed")
def test_nonsense_closes_the_connection_with_one_line_in_the_log(
    data: bytes, house: House, connect: Connect
) -> None:
    peer = connect()

    peer.send(data)

    assert peer.read_to_end(within_s=CLOSED_WITHIN_S) == b""
    line = wait_for_line(house.broker.output, peer.name)
    assert "reason=" in line
    # It is known to be nonsense at once, and not by waiting for the rest of it.
    assert "idle" not in line


@pytest.mark.usefixtures("unharmed")
def test_memory_stays_flat_under_nonsense(house: House, connect: Connect) -> None:
    def everything() -> None:
        for data in NONSENSE.values():
            peer = connect()
            peer.send(data)
            peer.read_to_end(within_s=CLOSED_WITHIN_S)
            peer.close()

    everything()
    before, files_before = house.memory(), house.files()

    for _ in range(REPEATED):
        everything()

    assert house.memory() - before < GROWTH_BYTES_MAX
    assert house.files() - files_before <= FILES_MORE_MAX


@pytest.mark.usefixtures("unharmed")
def test_requests_before_invalid_bytes_are_still_answered(house: House, connect: Connect) -> None:
    asked = encode_request(
        ApiVersionsRequest(client_software_name="a", client_software_version="1"),
        3,
        key=ApiKey.API_VERSIONS,
        correlation_id=5,
        client_id=None,
    )
    peer = connect()

    peer.send(asked + NONSENSE["a negative length"])

    received = peer.read_to_end(within_s=CLOSED_WITHIN_S)
    correlation_id, answer = decode_response(received[4:], 3, key=ApiKey.API_VERSIONS)
    assert (correlation_id, answer.error_code) == (5, ErrorCode.NONE)
    wait_for_line(house.broker.output, peer.name)


@pytest.mark.usefixtures("unharmed")
def test_a_newer_api_versions_is_answered_in_version_0_and_may_ask_again(house: House) -> None:
    with WireClient(house.address) as wire:
        wire.send_frame(header(ApiKey.API_VERSIONS, 99) + b"\x00\x01\x02\x03")
        _, refused = wire.receive(ApiKey.API_VERSIONS, 0)
        again = wire.ask(ApiVersionsRequest(), 0)

    assert refused.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [row.api_key for row in refused.api_keys] == [ApiKey.API_VERSIONS]
    assert again.error_code == ErrorCode.NONE


@pytest.mark.parametrize("whole", [b"", frame(header(ApiKey.METADATA, 4) + pack(">i?", 0, False))])
@pytest.mark.usefixtures("unharmed")
def test_half_a_frame_is_waited_for_but_not_for_ever(whole: bytes, house: House, connect: Connect) -> None:
    peer = connect()
    started = monotonic()

    peer.send(whole + _LENGTH.pack(50_000_000) + b"x" * 1000)

    peer.read_to_end(within_s=CLOSED_WITHIN_S)
    assert monotonic() - started > IDLE_MS / 1000 * 0.9
    assert "idle" in wait_for_line(house.broker.output, peer.name)


@pytest.mark.usefixtures("unharmed")
def test_a_large_length_takes_no_memory_before_the_bytes_are_there(house: House, connect: Connect) -> None:
    before = house.memory()

    peers = [connect() for _ in range(REPEATED)]
    for peer in peers:
        peer.send(_LENGTH.pack(100_000_000) + b"x")
    house.neighbour.wait_for_rounds(10)
    held = house.memory() - before
    for peer in peers:
        peer.close()

    assert held < GROWTH_BYTES_MAX


@pytest.mark.usefixtures("unharmed")
def test_many_clients_that_send_byte_by_byte_are_closed_one_by_one(house: House, connect: Connect) -> None:
    # Enough bytes that at this pace nobody gets through within the idle time.
    data = frame(header(ApiKey.METADATA, 4) + pack(">i", 10_000) + b"\x00\x01a" * 10_000)
    before = house.memory()
    waiting = {peer.name: peer for peer in (connect() for _ in range(SLOW_PEERS))}
    closed: list[BadPeer] = []
    deadline = monotonic() + CLOSED_WITHIN_S
    at = 0

    while waiting:
        assert monotonic() < deadline, f"{len(waiting)} of {SLOW_PEERS} are still connected"
        for name, peer in list(waiting.items()):
            if not peer.send(data[at : at + 1]):
                closed.append(waiting.pop(name))
        house.neighbour.wait_for_rounds(1)
        at += 1

    assert house.memory() - before < GROWTH_BYTES_MAX
    for peer in closed:
        assert "idle" in wait_for_line(house.broker.output, peer.name)


def batch(*, count: int, last_offset_delta: int) -> bytes:
    """Two records, and a header that says otherwise; its checksum is right."""
    data = bytearray(build_batch([(1000, None, b"a", ()), (1000, None, b"b", ())]))
    data[23:27] = pack(">i", last_offset_delta)
    data[57:61] = pack(">i", count)
    data[17:21] = pack(">I", crc32c_of(bytes(data), 21, len(data)))
    return bytes(data)


# The error is what Kafka 4.3 answers.
LIES = {
    "more records than there are": (batch(count=1000, last_offset_delta=999), ErrorCode.INVALID_RECORD),
    "fewer records than there are": (batch(count=1, last_offset_delta=0), ErrorCode.INVALID_RECORD),
    "two billion records": (batch(count=2**31 - 1, last_offset_delta=2**31 - 2), ErrorCode.INVALID_RECORD),
    "another number of offsets": (batch(count=2, last_offset_delta=5), ErrorCode.INVALID_RECORD),
    "a negative number": (batch(count=-1, last_offset_delta=1), ErrorCode.INVALID_RECORD),
}


@pytest.mark.parametrize(("data", "error"), LIES.values(), ids=LIES.keys())
@pytest.mark.usefixtures("unharmed")
def test_a_batch_that_lies_about_its_count_is_refused(data: bytes, error: ErrorCode, house: House) -> None:
    stage = Stage(house.broker, "liar")
    topic = stage.topic()
    lines_before = len(lines_with(house.broker.output, topic))
    part = PartitionProduceData(index=0, records=data)
    asked = ProduceRequest(
        acks=-1, timeout_ms=5000, topic_data=[TopicProduceData(name=topic, partition_data=[part])]
    )
    before = house.memory()

    with WireClient(house.address) as wire:
        [answer] = wire.ask(asked, 9).responses[0].partition_responses

    assert ErrorCode(answer.error_code) is error
    assert stage.end(topic) == 0
    assert house.memory() - before < GROWTH_BYTES_MAX
    wait_until(
        lambda: len(lines_with(house.broker.output, topic)) == lines_before + 1,
        f"one line about {topic}",
        within_s=LOGGED_WITHIN_S,
    )


def check_large(house: House, asked: object, version: int) -> Any:
    """The answer to a large request. Asked again and again, it takes no more memory; and since it is read and
    answered in one go, the neighbour waits for that, but for no more than that."""
    mark = house.neighbour.mark()
    slowest, memory, answer = 0.0, [], None

    for _ in range(4):
        with WireClient(house.address, timeout_s=LARGE_SECONDS_MAX) as wire:
            wire.send(asked, version)
            started = monotonic()
            answer = wire.read_frame()
            slowest = max(slowest, monotonic() - started)
        memory.append(house.memory())

    assert slowest < LARGE_SECONDS_MAX
    assert memory[-1] - memory[0] < GROWTH_BYTES_MAX
    assert house.neighbour.slowest_since(mark) < slowest + NEIGHBOUR_SECONDS_MAX
    assert answer is not None
    return decode_response(answer, version, key=key_of(asked))[1]


def test_metadata_of_very_many_topics_that_do_not_exist_is_answered(patient_house: House) -> None:
    names = [f"no-such-topic-{number}" for number in range(MANY)]
    asked = MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in names], allow_auto_topic_creation=False
    )

    answer = check_large(patient_house, asked, 4)

    found = {topic.name: topic.error_code for topic in answer.topics}
    assert len(answer.topics) == MANY
    assert found == dict.fromkeys(names, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def test_a_fetch_of_very_many_partitions_that_do_not_exist_is_answered(patient_house: House) -> None:
    places = [
        FetchPartition(partition=number, fetch_offset=0, partition_max_bytes=1000)
        for number in range(1, MANY + 1)
    ]
    topic = FetchTopic(topic=patient_house.topic, partitions=places)

    answer = check_large(patient_house, FetchRequest(max_wait_ms=100, min_bytes=1, topics=[topic]), 11)

    [found] = answer.responses
    assert len(found.partitions) == MANY
    assert {each.partition_index for each in found.partitions} == {place.partition for place in places}
    assert {each.error_code for each in found.partitions} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


@pytest.mark.usefixtures("unharmed")
def test_a_client_that_never_reads_responses_is_throttled_and_closed(house: House, connect: Connect) -> None:
    # A short question with a long answer: what the broker can do, which it tells everybody.
    asked = frame(header(ApiKey.API_VERSIONS, 0)) * 1000
    before, files_before = house.memory(), house.files()
    peers = [connect(4096) for _ in range(DEAF_PEERS)]

    taken = [peer.send_until_stuck(asked, bytes_max=TAKEN_BYTES_MAX, stuck_after_s=0.3) for peer in peers]
    held = house.memory() - before

    assert max(taken) < TAKEN_BYTES_MAX
    assert held < DEAF_PEERS * DEAF_PEER_BYTES_MAX
    # Nobody reads meanwhile: waiting for them to take their answers would be waiting for ever.
    wait_until(
        lambda: house.files() - files_before <= FILES_MORE_MAX,
        "their connections are closed",
        within_s=CLOSED_WITHIN_S,
    )
    for peer in peers:
        wait_for_line(house.broker.output, peer.name)
