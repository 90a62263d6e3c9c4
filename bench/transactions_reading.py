"""What does read_committed cost against read_uncommitted?

One partition is filled by ten producers side by side, with transactions of 100 records of which every fourth
is aborted; then it is read from its beginning to its end with both isolation levels, by fetches of a megabyte
(a consumer that catches up) and of 32 kB (one that reads along, for which what a request costs counts more).
The first pass decodes everything, drops what is aborted, counts what is left and notes the offsets at which
the fetches began. The timed passes ask for the same again and look at the sizes alone: what a client does to
drop aborted records is the same for both brokers, and would only hide them.

Expected cost of ours: a fetch is one sendfile in both levels. read_committed adds the look-up of the aborted
transactions within what was read, about 20 of them for a megabyte.
"""

import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import encode_request
from barnabas.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from barnabas.records.columns_read import decode_fetched
from broker_pair import MB, Broker, cpu_seconds, create_topic
from broker_requests import await_leader
from broker_rows import Answer, less_is_better, more_is_better
from support.wire.client import WireClient
from transactions_frames import CLIENT_ID, places_of
from transactions_load import Producer, Shape, run_turn
from transactions_pair import Scene, note

AIM = 1.5
TOPIC = "bench-reading"
SHAPE = Shape(1, 100, 1)
PRODUCERS = 10
ABORT_EVERY = 4
TRANSACTIONS = 4_000
QUICK_TRANSACTIONS = 600
# The last version that names topics.
FETCH_VERSION = 12
LEVELS = {"read_uncommitted": 0, "read_committed": 1}
FETCH_SIZES = {"1 MB": 1 << 20, "32 kB": 32 << 10}
ANSWER_MAX = 4 << 20
WAIT_MS = 500
WRITTEN_WITHIN_S = 30.0
TURN_S = 0.7
QUICK_TURN_S = 0.2
MARKED_OFFSET = 0x7A6B5C4D3E2F1A0B
_OFFSET = Struct(">q")
_SIZE = Struct(">i")


@dataclass(frozen=True, slots=True)
class Filled:
    """What is in the partition."""

    committed: int
    aborted: int

    def seen(self, level: str) -> int:
        return self.committed if level == "read_committed" else self.committed + self.aborted


@dataclass(frozen=True, slots=True)
class Reading:
    """One turn: how fast, how busy the client was, and what a gigabyte cost the broker."""

    mb_per_s: float
    client_share: float
    broker_cpu_s_per_gb: float


def reading_rows(scene: Scene) -> Iterator[Answer]:
    count = QUICK_TRANSACTIONS if scene.quick else TRANSACTIONS
    filled = {broker: fill(broker, count) for broker in (scene.pair.ours, scene.pair.theirs)}
    for name, size in FETCH_SIZES.items():
        yield from rows_of(scene, filled, name, size)


def rows_of(scene: Scene, filled: dict[Broker, Filled], name: str, size: int) -> Iterator[Answer]:
    seconds = QUICK_TURN_S if scene.quick else TURN_S
    passes = {
        (broker, level): Pass(broker, level, size, filled[broker]) for broker in filled for level in LEVELS
    }
    try:
        # Both levels within a turn: what else the machine did then, it did to both.
        ours, theirs = scene.pair.alternate(
            lambda broker: {level: passes[broker, level].repeat(seconds) for level in LEVELS}, scene.rounds
        )
    finally:
        for one in passes.values():
            one.close()
    for level in LEVELS:
        what = f"consume, {level}, {name}"
        mine, others = [turn[level] for turn in ours], [turn[level] for turn in theirs]
        note_load(what, mine, others)
        speeds = [[one.mb_per_s for one in turns] for turns in (mine, others)]
        yield more_is_better(what, speeds[0], speeds[1], "MB/s", AIM)
    costs = [
        [turn["read_uncommitted"].mb_per_s / turn["read_committed"].mb_per_s for turn in turns]
        for turns in (ours, theirs)
    ]
    yield less_is_better(f"time of read_committed over read_uncommitted, {name}", costs[0], costs[1], "x")


def note_load(what: str, ours: list[Reading], theirs: list[Reading]) -> None:
    busy = [100 * max(turn.client_share for turn in turns) for turns in (ours, theirs)]
    cost = [sum(turn.broker_cpu_s_per_gb for turn in turns) / len(turns) for turns in (ours, theirs)]
    note(
        f"{what}: the client was busy {busy[0]:.0f}% and {busy[1]:.0f}%; "
        f"CPU of the broker {cost[0]:.2f} and {cost[1]:.2f} s/GB"
    )


def fill(broker: Broker, transactions: int) -> Filled:
    create_topic(broker, TOPIC)
    await_leader(broker.address, TOPIC)
    producers: list[Producer] = []
    try:
        for number in range(PRODUCERS):
            producers.append(
                Producer(broker.address, f"fill-{number}", TOPIC, SHAPE, abort_every=ABORT_EVERY)
            )
        begun = time.monotonic()
        run_turn(broker, producers, count=transactions)
        note(f"filled with {transactions} transactions in {time.monotonic() - begun:.1f} s")
    finally:
        for one in producers:
            one.close()
    aborted = sum(one.done // ABORT_EVERY for one in producers) * SHAPE.records
    # One record came of await_leader().
    return Filled(transactions * SHAPE.records - aborted + 1, aborted)


@dataclass(frozen=True, slots=True)
class Fetches:
    """Where the fetches of a pass begin, how many records a consumer sees, and the bytes of whole batches."""

    offsets: list[int]
    rows: int
    batch_bytes: int


class Pass:
    """Reads a partition from its beginning to its end, again and again, over one connection."""

    def __init__(self, broker: Broker, level: str, size: int, filled: Filled) -> None:
        self._pid = broker.pid
        found = fetches_of(broker.address, LEVELS[level], size)
        assert found.rows == filled.seen(level), f"{level}: {found.rows} records, not {filled.seen(level)}"
        self._offsets = found.offsets
        self._batch_mb = found.batch_bytes / MB
        request = fetch_request(TOPIC, MARKED_OFFSET, LEVELS[level], size)
        self._frame = bytearray(
            encode_request(request, FETCH_VERSION, key=ApiKey.FETCH, correlation_id=1, client_id=CLIENT_ID)
        )
        (self._at,) = places_of(_OFFSET.pack(MARKED_OFFSET), self._frame)
        self._answer = memoryview(bytearray(ANSWER_MAX))
        host, _, port = broker.address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # Every pass gives as many bytes, or something was left out. They are not what counts: the list of
        # aborted transactions and the half of a batch at the end are of no use to a reader.
        self._bytes = self._once()

    def repeat(self, seconds: float) -> Reading:
        cpu, used, begun = cpu_seconds(self._pid), time.process_time(), time.perf_counter()
        total_mb = 0.0
        while time.perf_counter() - begun < seconds:
            came = self._once()
            assert came == self._bytes, f"{came} bytes came, and {self._bytes} the first time"
            total_mb += self._batch_mb
        took, busy = time.perf_counter() - begun, time.process_time() - used
        cost = (cpu_seconds(self._pid) - cpu) / (total_mb / 1000)
        return Reading(total_mb / took, busy / took, cost)

    def _once(self) -> int:
        sock, frame, at, into = self._socket, self._frame, self._at, self._answer
        total = 0
        for offset in self._offsets:
            _OFFSET.pack_into(frame, at, offset)
            sock.sendall(frame)
            sock.recv_into(into, _SIZE.size, socket.MSG_WAITALL)
            (size,) = _SIZE.unpack_from(into)
            came = sock.recv_into(into, size, socket.MSG_WAITALL)
            assert came == size, f"{came} of {size} bytes came"
            total += size
        return total

    def close(self) -> None:
        self._socket.close()


def fetches_of(address: str, level: int, size: int) -> Fetches:
    offsets: list[int] = []
    offset = rows = batch_bytes = 0
    with WireClient(address) as client:
        end = stable_end(client)
        while offset < end:
            offsets.append(offset)
            place = fetched(client, TOPIC, offset, level, size)
            aborted = [(one.producer_id, one.first_offset) for one in place.aborted_transactions or ()]
            assert place.records is not None
            read = decode_fetched(bytes(place.records), from_offset=offset, aborted=aborted)
            assert read.next_offset is not None, f"nothing came at offset {offset} of {end}"
            rows += read.rows.num_rows
            batch_bytes += read.consumed
            offset = read.next_offset
    return Fetches(offsets, rows, batch_bytes)


def stable_end(client: WireClient, topic: str = TOPIC) -> int:
    """The end of the partition, once no transaction is open in it: the last markers are written late."""
    deadline = time.monotonic() + WRITTEN_WITHIN_S
    while True:
        place = fetched(client, topic, 0, LEVELS["read_committed"], 1)
        if place.last_stable_offset == place.high_watermark:
            return place.high_watermark
        assert time.monotonic() < deadline, f"stable up to {place.last_stable_offset}, not further"
        time.sleep(0.05)


def fetched(client: WireClient, topic: str, offset: int, level: int, size: int) -> PartitionData:
    return place_of(client.ask(fetch_request(topic, offset, level, size), FETCH_VERSION))


def place_of(answer: FetchResponse) -> PartitionData:
    place = answer.responses[0].partitions[0]
    assert place.error_code == 0, ErrorCode(place.error_code).name
    return place


def fetch_request(topic: str, offset: int, level: int, size: int, *, wait_ms: int = WAIT_MS) -> FetchRequest:
    place = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=size)
    return FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=1,
        max_bytes=ANSWER_MAX // 2,
        isolation_level=level,
        topics=[FetchTopic(topic=topic, partitions=[place])],
    )
