"""How long does a coordinator take to load a __consumer_offsets with a million commits?

Both brokers get the same segment: a million commits of ten thousand keys, ten to a batch, as ten groups with
a thousand partitions each leave them before they are compacted. Timed is a start, from the process to the
first OffsetFetch that is answered without an error; less what the start of one with no commits takes.

Expected cost of ours: reading 80 MB from the page cache, and a compiled loop over the records that slices
keys and values and keeps the last: about half a second.
"""

import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from struct import Struct

from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.group_offsets import OffsetFetchRequest, OffsetFetchRequestTopic
from barnabas.records.builder import build_batch
from broker_pair import Broker
from broker_rows import Answer, less_is_better
from groups_load import await_coordinator
from groups_pair import Scene, note
from support.wire.client import ConnectionClosed, WireClient

AIM = 1.5
COMMITS = 1_000_000
QUICK_COMMITS = 100_000
GROUPS = 10
PARTITIONS = 1000
BATCH_RECORDS = 10
TOPIC = "bench-load-time"
FETCH_VERSION = 7
TRY_EVERY_S = 0.005
SERVED_WITHIN_S = 180.0
WRITE_BYTES = 1 << 22
SEGMENT = "00000000000000000000.log"
# OffsetCommitKey version 1 ends with the partition. OffsetCommitValue version 3: offset, leader epoch, no
# metadata, time.
_KEY_END = Struct(">i")
_VALUE = Struct(">hqihq")


def load_rows(scene: Scene) -> Iterator[Answer]:
    commits = scene.sized(COMMITS, QUICK_COMMITS)
    segment = scene.directory / SEGMENT
    write_segment(segment, commits)
    note(f"load: {segment.stat().st_size / 1e6:.0f} MB of commits")
    pair = scene.pair("load", offsets_topic_num_partitions=1)
    try:
        for broker in (pair.ours, pair.theirs):
            make_topic(broker)
        empty = pair.alternate(lambda broker: start_time(broker, -1), scene.rounds)
        for broker in (pair.ours, pair.theirs):
            put_segment(segment, broker.logs)
        last = last_offset(commits)
        full = pair.alternate(lambda broker: start_time(broker, last), scene.rounds)
    finally:
        pair.ours.kill()
        pair.theirs.kill()
    for whose, without, with_them in zip(("ours", "Kafka"), empty, full, strict=True):
        note(f"load: {whose} started in {median(without):.2f} s, and in {median(with_them):.2f} s with them")
    ours, theirs = (
        [took - median(without) for took in with_them] for without, with_them in zip(empty, full, strict=True)
    )
    yield less_is_better(f"load {commits:,} commits", ours, theirs, "s", AIM)


def make_topic(broker: Broker) -> None:
    """Started once, so that there is a __consumer_offsets."""
    broker.start()
    await_coordinator(broker.address, group_of(0))
    broker.stop()


def group_of(number: int) -> str:
    return f"bench-load-group-{number}"


def last_offset(commits: int) -> int:
    """What was committed last for every key."""
    return commits // (GROUPS * PARTITIONS) - 1


def write_segment(path: Path, commits: int) -> None:
    now_ms = time.time_ns() // 1_000_000
    keys = [key for number in range(GROUPS) for key in keys_of(group_of(number))]
    waiting = bytearray()
    with path.open("wb") as file:
        offset = 0
        for turn in range(commits // len(keys)):
            value = _VALUE.pack(3, turn, -1, 0, now_ms)
            for first in range(0, len(keys), BATCH_RECORDS):
                some = [(now_ms, key, value, ()) for key in keys[first : first + BATCH_RECORDS]]
                waiting += build_batch(some, base_offset=offset, leader_epoch=0)
                offset += len(some)
                if len(waiting) > WRITE_BYTES:
                    file.write(waiting)
                    waiting.clear()
        file.write(waiting)


def keys_of(group: str) -> list[bytes]:
    start = b"\x00\x01" + _text(group) + _text(TOPIC)
    return [start + _KEY_END.pack(partition) for partition in range(PARTITIONS)]


def _text(text: str) -> bytes:
    return len(text).to_bytes(2) + text.encode()


def put_segment(segment: Path, logs: Path) -> None:
    """In the place of the empty one. What was known of that one is not true any more, and is found out
    anew by the first start."""
    directory = logs / "__consumer_offsets-0"
    for old in directory.iterdir():
        if old.suffix in (".index", ".timeindex", ".log", ".snapshot"):
            old.unlink()
    shutil.copy(segment, directory / SEGMENT)
    for marker in logs.glob(".kafka_cleanshutdown"):
        marker.unlink()


def start_time(broker: Broker, expected: int) -> float:
    """Start it, and return the seconds until it told a committed offset, which must be the expected one."""
    found: list[float] = []
    begun = time.perf_counter()
    prober = threading.Thread(target=lambda: found.append(_first_told(broker, expected)))
    prober.start()
    broker.start()
    prober.join()
    broker.stop()
    assert found, f"no offset was told within {SERVED_WITHIN_S} s"
    return found[0] - begun


def _first_told(broker: Broker, expected: int) -> float:
    place = OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[PARTITIONS - 1])
    asked = OffsetFetchRequest(group_id=group_of(GROUPS - 1), topics=[place])
    deadline = time.perf_counter() + SERVED_WITHIN_S
    while time.perf_counter() < deadline:
        try:
            with WireClient(broker.address) as client:
                while time.perf_counter() < deadline:
                    answer = client.ask(asked, FETCH_VERSION)
                    if answer.error_code == ErrorCode.NONE:
                        told = answer.topics[0].partitions[0].committed_offset
                        assert told == expected, f"{told} where {expected} was committed"
                        return time.perf_counter()
                    time.sleep(TRY_EVERY_S)
        except (OSError, ConnectionClosed):
            # Nobody listens yet.
            time.sleep(TRY_EVERY_S)
    raise TimeoutError(f"{broker.address} told no offset within {SERVED_WITHIN_S} s")
