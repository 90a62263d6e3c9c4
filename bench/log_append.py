"""How fast does a log take batches in, next to writing the same bytes to a file?

Both write to a fresh file of the same size in every turn, few enough bytes to stay below the kernel's limit
for dirty pages, and unlink it outside of the timing. The peer is one os.writev() a batch. Without a producer
id one batch is sent again and again, so it lies in the processor's cache as one does that has just come from
a socket; an idempotent producer's batches are all different and come from memory, for both sides.
Expected cost of ours: one CRC pass over the batch, one pwritev(), about two microseconds of bookkeeping. A
megabyte takes 38 us to check and 212 to write, so with the CRC before the write 0.84 is all there can be; a
broker with a thread to spare has the CRC computed meanwhile.
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from barnabas.base.checksum import Checksums, ThreadChecksums
from barnabas.storage.disk import DiskFileSystem
from barnabas.storage.intake import OVERLAP_BYTES
from log_turns import (
    LEADER_EPOCH,
    MB,
    NOW_MS,
    Aimed,
    Run,
    in_sequence,
    open_bench_log,
    sized_batch,
    take_turns,
    timed,
)
from report import Options

RAW = "os.writev"
# Size of a batch, bytes of a turn, and the aim.
CASES = (("1 MB", MB, 64 * MB, "0.90"), ("16 kB", 16384, 64 * MB, "0.60"), ("1 kB", 1024, 16 * MB, ""))
QUICK_BYTES = 8 * MB
ROUNDS = 51
QUICK_ROUNDS = 3


def append_rows(directory: Path, options: Options) -> Iterator[Aimed]:
    rounds = QUICK_ROUNDS if options.quick else ROUNDS
    for name, size, total, aim in CASES:
        total = QUICK_BYTES if options.quick else total
        batch, count = sized_batch(size), total // size
        for who, batches in (("", [batch] * count), (", idempotent", in_sequence(batch, count))):
            views = [memoryview(one) for one in batches]
            runs = [raw_run(directory, views), log_run(directory, views, None)]
            turns = take_turns(runs, rounds)
            yield Aimed(turns.rate_row(f"append {name} batches{who}", "ours", RAW, work=total), aim)
            if size >= OVERLAP_BYTES:
                checksums = ThreadChecksums()
                turns = take_turns([raw_run(directory, views), log_run(directory, views, checksums)], rounds)
                checksums.close()
                question = f"append {name} batches{who}, CRC in a thread"
                yield Aimed(turns.rate_row(question, "ours", RAW, work=total), aim)


def raw_run(directory: Path, batches: Sequence[memoryview]) -> Run:
    path = directory / "raw"

    def run() -> dict[str, float]:
        took: dict[str, float] = {}
        number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        write = os.writev
        with timed(took, RAW):
            for batch in batches:
                write(number, [batch])
        assert os.fstat(number).st_size == sum(map(len, batches))
        os.close(number)
        path.unlink()
        return took

    return run


def log_run(directory: Path, batches: Sequence[memoryview], checksums: Checksums | None) -> Run:
    path = directory / "append-0"

    def run() -> dict[str, float]:
        took: dict[str, float] = {}
        path.mkdir()
        log = open_bench_log(DiskFileSystem(), path)
        with timed(took, "ours"):
            for batch in batches:
                log.append_as_leader(batch, leader_epoch=LEADER_EPOCH, now_ms=NOW_MS, checksums=checksums)
        assert log.size == sum(map(len, batches)), "some were taken for duplicates"
        for segment in log.segments:
            segment.close()
        shutil.rmtree(path)
        return took

    return run
