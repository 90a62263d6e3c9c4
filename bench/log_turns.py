"""What the files of bench/log.py share: batches of an exact size, turns on fresh files, and rows with an aim.

Files grow, are written back and are unlinked while others are measured, so nothing here is repeated the way
report.interleave() does it. A run sets up what it needs, times only what the question is about, and tidies up
before it returns. All runs of a question take their turns in every round, in an order that alternates.
"""

import gc
import os
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from barnabas.base.ids import TopicPartition
from barnabas.records.builder import NewRecord, build_batch
from barnabas.records.header import ATTRIBUTES_AT, HEADER_SIZE, crc32c_of, pack_header, read_header
from barnabas.storage.config import LogConfig
from barnabas.storage.files import FileSystem
from barnabas.storage.flush import begin_flush, finish_flush
from barnabas.storage.log import Log
from barnabas.storage.recovery import open_log
from report import Row

TP = TopicPartition("bench", 0)
NOW_MS = 1_700_000_000_000
MB = 1 << 20
RECORD_BYTES = 1000
LEADER_EPOCH = 3
UNIT = "MB/s"

# A run returns the seconds that each of its parts took, by the part's name.
Run = Callable[[], Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class Aimed:
    """A row, and what the design asks for; "" where it asks for nothing."""

    row: Row
    aim: str = ""

    def shown(self) -> Row:
        """The row with its aim beside the ratio's peer."""
        return replace(self.row, peer=f"{self.row.peer}; aim {self.aim}") if self.aim else self.row


class Turns:
    """The seconds that every part of every run took, round by round."""

    def __init__(self, seconds: Mapping[str, Sequence[float]]) -> None:
        self._seconds = seconds

    def rate_row(self, question: str, ours: str, peer: str, *, work: float, passes: int = 1) -> Row:
        """A row of megabytes a second; the peer did its part `passes` times less often than we."""
        return self._row(question, ours, peer, UNIT, passes, lambda took: work / 1e6 / took)

    def seconds_row(self, question: str, ours: str, peer: str, *, work: float = 1) -> Row:
        """A row of seconds for each unit of work."""
        return self._row(question, ours, peer, "s", 1, lambda took: took / work)

    def _row(
        self, question: str, ours: str, peer: str, unit: str, passes: int, value: Callable[[float], float]
    ) -> Row:
        mine, theirs = self._seconds[ours], [passes * took for took in self._seconds[peer]]
        # Round by round: whatever else the machine did in a round, it did to both.
        ratio = median(other / own for own, other in zip(mine, theirs, strict=True))
        spread = 100 * (max(mine) / median(mine) - 1)
        return Row(question, value(median(mine)), value(median(theirs)), peer, unit, ratio, spread)


def take_turns(runs: Sequence[Run], rounds: int) -> Turns:
    """Let the runs take turns for so many rounds, after one that does not count."""
    seconds: dict[str, list[float]] = {}
    order = list(runs)
    for number in range(rounds + 1):
        for run in order:
            # The collector has its moment here, so that it needs none in a turn.
            gc.collect()
            gc.disable()
            try:
                found = run()
            finally:
                gc.enable()
            for name, took in found.items() if number else ():
                seconds.setdefault(name, []).append(took)
        order.reverse()
    return Turns(seconds)


@contextmanager
def timed(into: dict[str, float], name: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    into[name] = time.perf_counter() - start


def sized_batch(size: int) -> bytes:
    """A batch of exactly `size` bytes, of records of about RECORD_BYTES."""
    rng = random.Random(size)
    count = max(1, size // (RECORD_BYTES + 100))
    values = [rng.randbytes(RECORD_BYTES) for _ in range(count - 1)]
    last = size // count
    for _ in range(8):
        records: list[NewRecord] = [(NOW_MS, None, value, ()) for value in [*values, rng.randbytes(last)]]
        batch = build_batch(records)
        if len(batch) == size:
            return batch
        last += size - len(batch)
    raise AssertionError(f"no batch of {size} bytes can be made like this")


def in_sequence(batch: bytes, count: int) -> list[bytes]:
    """The batch as one idempotent producer would have sent it `count` times, as different batches."""
    made = []
    header = read_header(batch)
    for number in range(count):
        mine = header._replace(producer_id=7, producer_epoch=0, base_sequence=number * header.count)
        whole = pack_header(mine) + batch[HEADER_SIZE:]
        crc = crc32c_of(whole, ATTRIBUTES_AT, len(whole))
        made.append(pack_header(mine._replace(crc=crc)) + batch[HEADER_SIZE:])
    return made


def open_bench_log(fs: FileSystem, directory: Path, *, clean_end: int | None = None) -> Log:
    """The log in a directory: checked from its start, or believed to end where a clean stop left it."""
    opened = open_log(
        fs,
        TP,
        str(directory),
        LogConfig.parse({}),
        clean=clean_end is not None,
        recovery_point=clean_end or 0,
        start_offset=0,
        now_ms=NOW_MS,
    )
    # As in a broker, where somebody always wants to know what is to be flushed.
    opened.log.on_flush_due = lambda log: None
    return opened.log


def fill_log(fs: FileSystem, directory: Path, batch: bytes, count: int) -> int:
    """Write a log of one batch, `count` times, as a clean stop would leave it. Return its end."""
    directory.mkdir()
    log = open_bench_log(fs, directory)
    for _ in range(count):
        log.append_as_leader(batch, leader_epoch=LEADER_EPOCH, now_ms=NOW_MS)
    close_log(log)
    return log.end_offset


def close_log(log: Log) -> None:
    """What flush.close() does, without an event loop."""
    log.active.finish()
    log.take_snapshot()
    job = begin_flush(log)
    job.run()
    finish_flush(log, job)
    for segment in log.segments:
        segment.close()


def read_through(paths: Sequence[Path]) -> None:
    """What cat does, in pieces of 1 MB and without the pipe."""
    buffer = bytearray(MB)
    for path in paths:
        number = os.open(path, os.O_RDONLY)
        while os.readv(number, [buffer]):
            pass
        os.close(number)


def reader_run(paths: Sequence[Path]) -> Run:
    def run() -> dict[str, float]:
        took: dict[str, float] = {}
        with timed(took, CAT):
            read_through(paths)
        return took

    return run


CAT = "read loop, 1 MB"
