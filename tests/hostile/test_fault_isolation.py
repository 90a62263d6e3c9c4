"""A fault in one partition, group or client does not affect the others.

The faults are real: files that are damaged under a running broker, and memory that runs out.
"""

import os
import random
import resource
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.offsets import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from barnabas.protocol.messages.topics import CreatableTopic, CreateTopicsRequest
from support.hostile.victim import SERVED_WITHIN_S, Victim
from support.wire.client import ConnectionClosed, WireClient
from support.wire.requests import (
    TIMEOUT_MS,
    batch,
    fetch_of,
    fetched,
    new_topic,
    produce_of,
    produced,
    records_of,
)

CHORES = {
    # The records of these tests are old.
    "log.retention.ms": -1,
    "log.retention.check.interval.ms": 200,
    "log.flush.offset.checkpoint.interval.ms": 200,
    "log.cleaner.backoff.ms": 200,
    "log.initial.task.delay.ms": 100,
    "log.flush.scheduler.interval.ms": 200,
    "producer.id.expiration.check.interval.ms": 200,
}
# Every ten batches a segment, by the time of their records.
TOPIC = {"segment.ms": "9500", "retention.ms": "-1", "min.cleanable.dirty.ratio": "0", "flush.ms": "100"}
BATCHES = 60
TIME = 1_767_225_600_000


def zeros(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def garbage(path: Path) -> None:
    path.write_bytes(random.Random(7).randbytes(path.stat().st_size))


def half(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def nothing(path: Path) -> None:
    os.truncate(path, 0)


def bits(path: Path) -> None:
    content = bytearray(path.read_bytes())
    dice = random.Random(7)
    for _ in range(10):
        if content:
            content[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
    path.write_bytes(content)


DAMAGES = [zeros, garbage, half, nothing, bits]
EVERY = [
    pytest.param(damage, policy, marks=pytest.mark.soak)
    for damage in DAMAGES
    for policy in ("delete", "compact")
    if (damage, policy) not in ((half, "delete"), (garbage, "compact"))
]


@pytest.mark.parametrize(("damage", "policy"), [(half, "delete"), (garbage, "compact"), *EVERY])
def test_files_damaged_under_a_running_broker_fail_only_their_partition(
    damage: Callable[[Path], None], policy: str, tmp_path: Path
) -> None:
    with Victim(tmp_path, settings=CHORES) as victim, victim.bystander() as bystander:
        with WireClient(victim.address) as client:
            topic = new_topic("orders", 1, {**TOPIC, "cleanup.policy": policy})
            create(client, topic)
            for number in range(BATCHES):
                one = batch(b"x" * 100, key=b"k%d" % (number % 7), time=TIME + 1000 * number)
                client.ask(produce_of("orders", 0, one, acks=1), 9)
        for path in sorted((victim.logs / "orders-0").iterdir()):
            if path.suffix in (".log", ".index", ".timeindex", ".snapshot", ".txnindex"):
                try:
                    damage(path)
                except FileNotFoundError:
                    # Compacted meanwhile.
                    continue
        use(victim.address)
        time.sleep(1)
        use(victim.address)
        assert victim.is_running, victim.log[-3000:]
    assert bystander.error is None
    assert bystander.slowest_s < SERVED_WITHIN_S
    assert "Traceback" not in victim.log, victim.log[victim.log.index("Traceback") - 1000 :][:4000]


def create(client: WireClient, topic: CreatableTopic) -> None:
    [made] = client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=TIMEOUT_MS), 5).topics
    assert ErrorCode(made.error_code) == ErrorCode.NONE, made.error_message


def use(address: str) -> None:
    """Send every request that reads or changes the log of a partition. Error responses are allowed."""
    for offset in range(0, BATCHES, 7):
        for level in (0, 1):
            request = fetch_of("orders", {0: offset})
            request.isolation_level = level
            ask(address, request, 12)
    for when in (-1, -2, -3, TIME, TIME + 500 * BATCHES, TIME + 1000 * BATCHES):
        wanted = [ListOffsetsPartition(partition_index=0, timestamp=when)]
        ask(
            address,
            ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="orders", partitions=wanted)]),
            7,
        )
    epochs = [OffsetForLeaderPartition(partition=0, leader_epoch=0)]
    ask(
        address,
        OffsetForLeaderEpochRequest(
            replica_id=-1, topics=[OffsetForLeaderTopic(topic="orders", partitions=epochs)]
        ),
        4,
    )
    ask(address, produce_of("orders", 0, batch(b"y", key=b"k"), acks=1), 9)
    before = [DeleteRecordsPartition(partition_index=0, offset=BATCHES // 3)]
    ask(
        address,
        DeleteRecordsRequest(topics=[DeleteRecordsTopic(name="orders", partitions=before)], timeout_ms=1000),
        2,
    )


def ask(address: str, request: object, version: int) -> None:
    with WireClient(address, timeout_s=10) as client:
        try:
            client.ask(request, version)
        except ConnectionClosed:
            # Bytes that were promised to the client are not there any more.
            return


def test_a_memory_shortage_affects_only_the_requests_that_need_memory(tmp_path: Path) -> None:
    with Victim(tmp_path, settings=CHORES) as victim, victim.bystander() as bystander:
        status = Path(f"/proc/{victim.pid}/status").read_text()
        used = int(status.split("VmSize:")[1].split()[0]) * 1024
        resource.prlimit(victim.pid, resource.RLIMIT_AS, (used + (4 << 20), resource.RLIM_INFINITY))
        for _ in range(10):
            with WireClient(victim.address) as greedy:
                # Half of a request of 90 MB.
                greedy.send_raw((90 << 20).to_bytes(4, "big") + b"\0\0\0\x09" + bytes(45 << 20))
                greedy.is_closed(within_s=0.1)
        with WireClient(victim.address) as client:
            # Made at the same time by many threads, and the system has no memory for another thread.
            create(client, new_topic("orders", 32, {}))
        resource.prlimit(victim.pid, resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        with WireClient(victim.address) as client:
            large = produced(client.ask(produce_of("orders", 0, batch(b"x" * 900_000), acks=1), 9))
            assert ErrorCode(large.error_code) == ErrorCode.NONE
            assert len(records_of(fetched(client.ask(fetch_of("orders", {0: 0}), 12)))) == 1
    assert bystander.error is None
    assert bystander.slowest_s < SERVED_WITHIN_S
