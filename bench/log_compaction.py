"""How fast is a log compacted?

Two passes: the last offset of every key is put into the map, then what stays is written to a new file, which
is synced. Each record's key is one of half as many keys as there are records, so a bit less than half of the
records stay and hardly a batch is kept as it is. MB are those of the .log file, compressed if it is. The peer
reads the same file from the page cache, once for a pass.
Expected cost of ours: a hash and a look into the map a record in either pass, and once more the bytes that
stay; with lz4 unpacking in both passes and packing in the second.
"""

import random
from collections.abc import Iterator
from pathlib import Path

from barnabas.records.builder import NewRecord, build_batch
from barnabas.records.header import Codec
from barnabas.storage.cleaner.facts import CleaningFacts
from barnabas.storage.cleaner.grouping import Source
from barnabas.storage.cleaner.job import Cleaning
from barnabas.storage.cleaner.swap import discard_cleaned
from barnabas.storage.disk import DiskFileSystem
from barnabas.storage.names import LOG, file_name
from log_turns import CAT, MB, NOW_MS, Aimed, Run, reader_run, take_turns, timed
from report import Options

TOTAL = 64 * MB
QUICK_TOTAL = 8 * MB
BATCH_BYTES = 16384
ROUNDS = 7
QUICK_ROUNDS = 3
MAP_BYTES = 128 * MB
SECRET = bytes(range(16))

MAP, REWRITE, ALL = "map", "rewrite", "all"


def compaction_rows(directory: Path, options: Options) -> Iterator[Aimed]:
    total = QUICK_TOTAL if options.quick else TOTAL
    for codec in (Codec.NONE, Codec.LZ4):
        for size in (100, 1000):
            path = directory / f"compaction-{size}-{codec.name.lower()}"
            facts = dirty_log(path, size, codec, total)
            runs = [reader_run([path / file_name(0, LOG)]), cleaning_run(facts)]
            turns = take_turns(runs, QUICK_ROUNDS if options.quick else ROUNDS)
            for part, passes in ((MAP, 1), (REWRITE, 1), (ALL, 2)):
                question = f"compact {size} B, {codec.name.lower()}: {part}"
                work = facts.sources[0].size
                yield Aimed(turns.rate_row(question, part, CAT, work=work, passes=passes))


def dirty_log(path: Path, size: int, codec: Codec, total: int) -> CleaningFacts:
    """Write a segment of `total` bytes of records before compression, none of which was compacted yet."""
    path.mkdir()
    rng = random.Random(size)
    per_batch = BATCH_BYTES // size
    keys = total // size // 2
    end = 0
    with (path / file_name(0, LOG)).open("wb") as out:
        for _ in range(total // size // per_batch):
            # Half of a value is noise and half repeats, so that a codec has something to do.
            records: list[NewRecord] = [
                (NOW_MS, b"key-%08d" % rng.randrange(keys), rng.randbytes(size // 2) + bytes(size // 2), ())
                for _ in range(per_batch)
            ]
            out.write(build_batch(records, base_offset=end, codec=codec))
            end += per_batch
        written = out.tell()
    source = Source(base_offset=0, size=written, index_size=0, time_index_size=0)
    return CleaningFacts(
        directory=str(path),
        sources=[source],
        dirty_start=0,
        upper_bound=end,
        aborted=[],
        producers={},
        group_bytes=1 << 30,
        index_bytes=10 * MB,
        index_interval_bytes=4096,
        delete_retention_ms=0,
        map_bytes=MAP_BYTES,
        secret=SECRET,
        now_ms=NOW_MS,
    )


def cleaning_run(facts: CleaningFacts) -> Run:
    fs = DiskFileSystem()

    def run() -> dict[str, float]:
        took: dict[str, float] = {}
        cleaning = Cleaning(fs, facts)
        with timed(took, MAP):
            cleaning.fill_map()
        with timed(took, REWRITE):
            cleaning.clean_group(0)
        took[ALL] = took[MAP] + took[REWRITE]
        stats = cleaning.stats
        assert len(cleaning.groups) == 1
        assert 0.4 < stats.records_kept / stats.records_read < 0.5
        discard_cleaned(fs, facts.directory, 0)
        return took

    return run
