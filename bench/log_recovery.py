"""How long does it take to open a log after a crash?

All of the log is checked: headers, offsets, CRCs; its indexes are made anew and synced. The bytes themselves
were synced before and are in the page cache. The peer reads the same files from the page cache in pieces of
1 MB into one buffer, in this process, and looks at nothing.
Expected cost of ours: one copy and one CRC pass over all bytes, and a few objects a batch.
"""

from collections.abc import Iterator
from pathlib import Path

from barnabas.storage.disk import DiskFileSystem
from barnabas.storage.names import LOG
from log_turns import (
    CAT,
    MB,
    Aimed,
    Run,
    fill_log,
    open_bench_log,
    reader_run,
    sized_batch,
    take_turns,
    timed,
)
from report import Options

TOTAL = 1024 * MB
QUICK_TOTAL = 64 * MB
ROUNDS = 7
QUICK_ROUNDS = 3
GB = 1e9


def recovery_rows(directory: Path, options: Options) -> Iterator[Aimed]:
    total = QUICK_TOTAL if options.quick else TOTAL
    rounds = QUICK_ROUNDS if options.quick else ROUNDS
    for name, size in (("16 kB", 16384), ("1 MB", MB)):
        path = directory / f"recovery-{size}"
        end = fill_log(DiskFileSystem(), path, sized_batch(size), total // size)
        files = sorted(path.glob(f"*{LOG}"))
        turns = take_turns([reader_run(files), recovery_run(path, end)], rounds)
        yield Aimed(turns.seconds_row(f"recover 1 GB of {name} batches", "ours", CAT, work=total / GB))


def recovery_run(path: Path, end: int) -> Run:
    def run() -> dict[str, float]:
        took: dict[str, float] = {}
        with timed(took, "ours"):
            log = open_bench_log(DiskFileSystem(), path)
        assert log.end_offset == end
        return took

    return run
