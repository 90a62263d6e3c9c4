"""The log directory of a real Kafka 4.3 broker, taken over: opened, read as consumers do, closed again.

Three times: as Kafka left it; without its clean-shutdown marker and without anything that can be made anew
from the .log files; and without the checkpoints as well.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path, PurePath
from typing import Any

import pytest

from barnabas.base.clock import SystemClock
from barnabas.base.executor import InlineExecutor
from barnabas.base.ids import TopicPartition, Uuid
from barnabas.records.control import ControlType, read_control_type
from barnabas.records.decode import decode_batch
from barnabas.records.header import BatchHeader, TimestampType, batch_headers, whole_batches
from barnabas.records.record import Record
from barnabas.records.validate import check_batch
from barnabas.storage.config import LogConfig
from barnabas.storage.directory.meta_properties import read_meta_properties
from barnabas.storage.disk import DiskFileSystem
from barnabas.storage.log import Log
from barnabas.storage.manager import LogManager
from barnabas.storage.names import OFFSET_INDEX, SNAPSHOT, TIME_INDEX, TXN_INDEX
from barnabas.storage.segment.txn_index import AbortedTxn
from barnabas.storage.warming import warmed
from support.kafka.sample import expected_reads, sample_files

pytestmark = pytest.mark.kernel

EXPECTED = expected_reads()
PARTITIONS = sorted(key.split()[0] for key in EXPECTED if key.endswith("read_uncommitted"))
QUORUM = "__cluster_metadata-0"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
CAN_BE_MADE_ANEW = (OFFSET_INDEX, TIME_INDEX, TXN_INDEX, SNAPSHOT)
CHECKPOINTS = (
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
    "log-start-offset-checkpoint",
    "cleaner-offset-checkpoint",
)
# Only every 500th record of this partition was written down.
SAMPLED = {"rolled-0": 500}
# A consumer's numbers for the two timestamp types start at 1; 0 is "not available".
TIMESTAMP_TYPE = {TimestampType.CREATE_TIME: 1, TimestampType.LOG_APPEND_TIME: 2}
READ_BYTES = 20_000

Left = Callable[[PurePath], bool]


def everything(path: PurePath) -> bool:
    return True


def logs_and_checkpoints(path: PurePath) -> bool:
    return path.suffix not in CAN_BE_MADE_ANEW and path.name != CLEAN_SHUTDOWN


def logs_only(path: PurePath) -> bool:
    return logs_and_checkpoints(path) and path.name not in CHECKPOINTS


STATES = {"clean": everything, "crashed": logs_and_checkpoints, "without checkpoints": logs_only}


def lay_out(root: Path, is_left: Left) -> None:
    for name, data in sample_files().items():
        if is_left(PurePath(name)):
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


def manager_of(root: Path) -> LogManager:
    fs = DiskFileSystem()
    meta = read_meta_properties(fs, str(root))
    assert meta is not None
    return LogManager(
        fs,
        SystemClock(),
        InlineExecutor(),
        paths=[str(root)],
        cluster_id=meta.cluster_id,
        node_id=meta.node_id,
        configs=lambda _: LogConfig.parse({}),
        new_id=lambda: Uuid(b"not used so far."),
    )


async def opened(root: Path, state: str) -> LogManager:
    lay_out(root, STATES[state])
    manager = manager_of(root)
    report = await manager.open()
    assert (report.broken, report.failed, report.findings) == ({}, {}, [])
    return manager


def log_of(manager: LogManager, partition: str) -> Log:
    topic, _, number = partition.rpartition("-")
    log = manager.get(TopicPartition(topic, int(number)))
    assert log is not None
    return log


def shown(record: Record, header: BatchHeader) -> list[Any]:
    def text(data: bytes | None) -> str | None:
        return None if data is None else data.decode()

    headers = [[name, text(value)] for name, value in record.headers]
    kind = TIMESTAMP_TYPE[header.timestamp_type]
    return [record.offset, kind, record.timestamp, text(record.key), text(record.value), headers]


async def consume(log: Log, offset: int, upto: int, *, committed_only: bool) -> list[list[Any]]:
    """Read a log from fetch to fetch, and leave out what a client leaves out."""
    executor = InlineExecutor()
    records: list[list[Any]] = []
    while offset < upto:
        at = offset
        read = await warmed(log, executor, lambda at=at: log.read(at, upto=upto, bytes_max=READ_BYTES))  # type: ignore[misc]
        data = read.read()
        data = data[: whole_batches(data).size]
        assert data, f"nothing at offset {offset}, and the log goes on to {upto}"
        *_, (_, last) = batch_headers(data)
        end = last.next_offset
        aborted = await warmed(log, executor, lambda at=at, end=end: log.aborted_in(at, end))  # type: ignore[misc]
        kept = committed(data, aborted) if committed_only else list(batch_headers(data))
        for position, header in kept:
            check_batch(data, position)
            if not header.is_control:
                records += [shown(r, header) for r in decode_batch(data, position) if r.offset >= offset]
        offset = end
    return records


def committed(data: bytes, aborted: list[AbortedTxn]) -> list[tuple[int, BatchHeader]]:
    """The batches of one fetch that are of no aborted transaction, told as a client tells it."""
    waiting = sorted(aborted, key=lambda txn: txn.first_offset)
    aborting: set[int] = set()
    kept = []
    for position, header in batch_headers(data):
        while waiting and waiting[0].first_offset <= header.last_offset:
            aborting.add(waiting.pop(0).producer_id)
        if header.is_control:
            if read_control_type(decode_batch(data, position)[0].key) is ControlType.ABORT:
                aborting.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in aborting):
            kept.append((position, header))
    return kept


def changed_files(root: Path) -> list[str]:
    """The files of logs that are not there, or not byte for byte as Kafka left them."""
    return [
        name
        for name, data in sample_files().items()
        if PurePath(name).parent.name not in ("", QUORUM)
        and (not (root / name).exists() or (root / name).read_bytes() != data)
    ]


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("state", STATES)
def test_every_log_reads_as_it_did_from_kafka(state: str, isolation: str, tmp_path: Path) -> None:
    async def story() -> None:
        manager = await opened(tmp_path, state)
        for partition in PARTITIONS:
            log, expected = log_of(manager, partition), EXPECTED[f"{partition} {isolation}"]
            records = await consume(
                log, expected["low"], expected["high"], committed_only=isolation == "read_committed"
            )
            assert records[:: SAMPLED.get(partition, 1)] == expected["records"], partition
            assert log.end_offset == expected["high"], partition

    asyncio.run(story())


@pytest.mark.parametrize("state", ["clean", "crashed"])
def test_high_watermarks_equal_those_of_kafka(state: str, tmp_path: Path) -> None:
    async def story() -> None:
        manager = await opened(tmp_path, state)
        for partition in PARTITIONS:
            log, expected = log_of(manager, partition), EXPECTED[f"{partition} read_committed"]
            # Nothing was open when Kafka stopped.
            found = (log.start_offset, log.high_watermark, log.last_stable_offset)
            assert found == (expected["low"], expected["high"], expected["high"]), partition

    asyncio.run(story())


def test_without_checkpoints_watermark_and_log_start_have_defaults(tmp_path: Path) -> None:
    async def story() -> None:
        manager = await opened(tmp_path, "without checkpoints")
        trimmed = log_of(manager, "trimmed-0")
        assert (trimmed.start_offset, trimmed.high_watermark, trimmed.end_offset) == (0, 0, 50)

    asyncio.run(story())


def test_opening_a_clean_directory_of_kafka_changes_no_file(tmp_path: Path) -> None:
    asyncio.run(opened(tmp_path, "clean"))

    assert changed_files(tmp_path) == []


def test_rebuilt_indexes_and_snapshots_equal_those_of_kafka(tmp_path: Path) -> None:
    async def story() -> None:
        manager = await opened(tmp_path, "crashed")
        assert [name for name in changed_files(tmp_path) if not name.endswith(SNAPSHOT)] == []
        # The last snapshot of a log is taken when it is closed.
        await manager.close()

    asyncio.run(story())

    assert changed_files(tmp_path) == []


def test_a_directory_that_was_closed_again_opens_clean(tmp_path: Path) -> None:
    async def story() -> None:
        manager = await opened(tmp_path, "crashed")
        await manager.close()
        again = manager_of(tmp_path)
        report = await again.open()
        assert again.directories[0].clean is not None
        assert (report.broken, report.findings) == ({}, [])
        for partition in PARTITIONS:
            log, expected = log_of(again, partition), EXPECTED[f"{partition} read_committed"]
            assert (log.start_offset, log.high_watermark) == (expected["low"], expected["high"]), partition

    asyncio.run(story())


def test_the_log_of_the_quorum_is_left_to_the_quorum(tmp_path: Path) -> None:
    manager = asyncio.run(opened(tmp_path, "clean"))

    assert manager.get(TopicPartition("__cluster_metadata", 0)) is None
    kept = {PurePath(name).name for name in sample_files() if PurePath(name).parent.name == QUORUM}
    assert {path.name for path in (tmp_path / QUORUM).iterdir()} == kept
