"""Small logs for tests: create them on a simulated or real disk, fill them and read them."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from barnabas.base.executor import InlineExecutor
from barnabas.base.ids import TopicPartition
from barnabas.records.builder import build_batch
from barnabas.records.control import ControlType, build_control_batch
from barnabas.records.decode import decode_batch
from barnabas.records.header import Codec, batch_headers, whole_batches
from barnabas.records.record import Record
from barnabas.records.validate import check_batch
from barnabas.sim.disk import SimDisk
from barnabas.storage.config import LogConfig
from barnabas.storage.disk import DiskFileSystem
from barnabas.storage.files import FileSystem
from barnabas.storage.flush import close, flush
from barnabas.storage.log import Appended, Log
from barnabas.storage.names import file_name
from barnabas.storage.producers.table import Origin
from barnabas.storage.recovery import Opened, open_log
from barnabas.storage.warming import warmed

T = TypeVar("T")

TP = TopicPartition("t", 0)
DIRECTORY = "/d/t-0"
NOW = 1_700_000_000_000
# A batch of one record with a value of this many bytes has 200 bytes in all.
FILL = 200 - 61 - 7 - 2


class CountingExecutor(InlineExecutor):
    """Counts its calls."""

    def __init__(self) -> None:
        self.runs = 0

    async def run(self, work: Callable[[], T]) -> T:
        self.runs += 1
        return await super().run(work)


class PausedExecutor(InlineExecutor):
    """Delays all work until `gate` is set."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.waiting = 0

    async def run(self, work: Callable[[], T]) -> T:
        self.waiting += 1
        await self.gate.wait()
        return await super().run(work)


def wait(story: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(story)


# Making and opening


def settings(**values: Any) -> LogConfig:
    """Settings without validation, which forbids segments as small as those of tests."""
    return replace(LogConfig.parse({}), **values)


def new_disk(seed: int = 1) -> SimDisk:
    disk = SimDisk(Random(seed))
    disk.make_directory(DIRECTORY)
    disk.sync_directory("/d")
    disk.sync_directory("/")
    return disk


def open_again(
    fs: FileSystem,
    *,
    clean: bool = False,
    recovery_point: int | None = 0,
    start: int = 0,
    directory: str = DIRECTORY,
    config: LogConfig | None = None,
    **values: Any,
) -> Opened:
    return open_log(
        fs,
        TP,
        directory,
        config or settings(**values),
        clean=clean,
        recovery_point=recovery_point,
        start_offset=start,
        now_ms=NOW,
    )


def new_log(disk: SimDisk | None = None, **values: Any) -> Log:
    """An empty log on the given simulated disk, or on a new one."""
    return open_again(disk or new_disk(), **values).log


def real_log(path: Path, **values: Any) -> Log:
    """An empty log in a real directory."""
    directory = path / "t-0"
    directory.mkdir()
    return open_again(DiskFileSystem(), directory=str(directory), **values).log


def disk_of(log: Log) -> SimDisk:
    assert isinstance(log.fs, SimDisk)
    return log.fs


def path_of(base: int, kind: str) -> str:
    return f"{DIRECTORY}/{file_name(base, kind)}"


def files_of(disk: SimDisk) -> dict[str, bytes]:
    """Names and contents of the files in the log's directory."""
    return {entry.name: disk.read(f"{DIRECTORY}/{entry.name}") for entry in disk.entries(DIRECTORY)}


def shut(log: Log) -> int:
    """Close a log; return its end offset, which is its recovery point."""
    wait(close(log, InlineExecutor()))
    return log.end_offset


def flushed(log: Log) -> int:
    wait(flush(log, InlineExecutor()))
    return log.recovery_point


# Writing


def batch(*values: bytes, time: int = NOW, key: bytes | None = b"k", **fields: Any) -> bytes:
    """One batch, with a record of the same key and time for each value."""
    return build_batch([(time, key, value, ()) for value in values], **fields)


def put(
    log: Log,
    *values: bytes,
    time: int = NOW,
    now: int = NOW,
    epoch: int = 0,
    origin: Origin = Origin.CLIENT,
    **fields: Any,
) -> Appended:
    """Append one batch as a leader does."""
    data = batch(*(values or (b"v",)), time=time, **fields)
    return log.append_as_leader(data, leader_epoch=epoch, now_ms=now, origin=origin)


def fill(log: Log, count: int, *, time: int = NOW, step: int = 1, codec: Codec = Codec.NONE) -> None:
    """Append batches of one record and 200 bytes each, with increasing timestamps."""
    for number in range(count):
        put(log, value_at(log.end_offset), time=time + number * step, codec=codec)


def value_at(offset: int) -> bytes:
    """The value that fill() writes at an offset."""
    return (b"%d " % offset).ljust(FILL, b".")


def follow(log: Log, base: int, *values: bytes, epoch: int = 0, time: int = NOW, **fields: Any) -> None:
    """Append one batch as a follower does."""
    data = batch(*(values or (b"v",)), time=time, base_offset=base, leader_epoch=epoch, **fields)
    log.append_as_follower(data, NOW)


def send(
    log: Log, producer: int, sequence: int, *values: bytes, epoch: int = 0, txn: bool = False
) -> Appended:
    """Append a batch of an idempotent or transactional producer."""
    return put(
        log,
        *(values or (b"p%d" % producer,)),
        producer_id=producer,
        producer_epoch=epoch,
        base_sequence=sequence,
        transactional=txn,
    )


def marker(producer: int, *, abort: bool, epoch: int = 0, coordinator: int = 7, time: int = NOW) -> bytes:
    return build_control_batch(
        ControlType.ABORT if abort else ControlType.COMMIT,
        b"\0\0" + coordinator.to_bytes(4, "big"),
        timestamp=time,
        leader_epoch=0,
        producer_id=producer,
        producer_epoch=epoch,
    )


def end_txn(log: Log, producer: int, *, abort: bool, epoch: int = 0, coordinator: int = 7) -> Appended:
    data = marker(producer, abort=abort, epoch=epoch, coordinator=coordinator)
    return log.append_as_leader(data, leader_epoch=0, now_ms=NOW, origin=Origin.COORDINATOR)


# Reading


def read_bytes(
    log: Log, offset: int = 0, upto: int | None = None, *, bytes_max: int = 1 << 30, whole_batch: bool = True
) -> bytes:
    """The data of one read, without waiting."""
    upto = log.end_offset if upto is None else upto
    read = log.read(offset, upto=upto, bytes_max=bytes_max, whole_batch=whole_batch)
    data = read.read()
    assert len(data) == read.size
    return data


def offsets_in(data: bytes) -> list[tuple[int, int]]:
    """First and last offset of every complete batch."""
    whole = data[: whole_batches(data).size]
    return [(header.base_offset, header.last_offset) for _, header in batch_headers(whole)]


def records_in(data: bytes) -> list[Record]:
    """Check complete batches and return their records."""
    found = []
    for at, _ in batch_headers(data):
        check_batch(data, at)
        found += decode_batch(data, at)
    return found


def read_all(log: Log, start: int | None = None, upto: int | None = None) -> list[Record]:
    """All records, read in several reads as a consumer does."""
    offset = log.start_offset if start is None else start
    upto = log.end_offset if upto is None else upto
    found: list[Record] = []
    while offset < upto:
        at = offset
        read = wait(warmed(log, InlineExecutor(), lambda at=at: log.read(at, upto=upto, bytes_max=4000)))  # type: ignore[misc]
        data = read.read()
        data = data[: whole_batches(data).size]
        if not data:
            break
        found += [record for record in records_in(data) if record.offset >= offset]
        offset = offsets_in(data)[-1][1] + 1
    return found


def offsets(log: Log) -> list[int]:
    return [record.offset for record in read_all(log)]
