"""Kafka's own dump tool reads what we wrote: batches, indexes, aborted transactions, snapshots, compaction.

Needs Java and Maven, and takes the published jars from Maven's store or the network; `make interop` runs it.
"""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from barnabas.base.executor import InlineExecutor
from barnabas.records.header import Codec
from barnabas.storage.cleaner.clean import clean, dirty_log
from barnabas.storage.cleaner.pick import weigh
from barnabas.storage.flush import flush
from barnabas.storage.log import Log
from barnabas.storage.producers.table import Origin
from barnabas.storage.removal import remove_all
from barnabas.storage.truncation import truncate
from support.kafka.tools import kafka_tools
from support.log.logs import NOW, batch, end_txn, fill, offsets, open_again, put, real_log, send, shut, wait

P, Q = 4000, 5000
SMALL: dict[str, Any] = {"segment_bytes": 20_000, "index_interval_bytes": 1000}
FLAGS = (
    (),
    ("--print-data-log",),
    ("--deep-iteration",),
    ("--index-sanity-check",),
    ("--verify-index-only",),
)


def write_all_kinds(log: Log) -> None:
    """Every codec, null keys and values, idempotent and transactional producers, several epochs."""
    for number, codec in enumerate([*Codec] * 8):
        values = [b"%d of %d" % (at, number) * 20 for at in range(20)]
        put(log, *values, codec=codec, time=NOW + 100 * number, epoch=number // 10)
        put(log, b"no key", key=None, time=NOW + 100 * number, epoch=number // 10)
    for number in range(12):
        producer = (P, Q)[number % 2]
        send(log, producer, number // 2, b"in a transaction", txn=True)
        if number % 3 == 2:
            end_txn(log, producer, abort=number % 2 == 0)
    send(log, P + 1, 0, b"idempotent", b"twice")
    put(log, b"without a time", time=-1, epoch=9)


def files_in(log: Log) -> list[str]:
    """Those that the tool can read: segments with their indexes, and snapshots."""
    found = Path(log.directory).iterdir()
    return sorted(str(path) for path in found if re.fullmatch(r"\d{20}\.[a-z]+", path.name))


def our_dump(*args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "barnabas", "dump-log", *args]
    return subprocess.run(command, capture_output=True, check=False, encoding="utf-8")


def complaints(stderr: str) -> list[str]:
    """What the tool finds wrong. It takes the first offset of every later segment for a gap behind -1."""
    gaps = re.findall(r"Non-consecutive offsets in .*\n  (-?\d+) is followed by (\d+)\n", stderr)
    rest = re.sub(r"Non-consecutive offsets in .*\n(  -?\d+ is followed by \d+\n)+", "", stderr)
    return [rest] * bool(rest) + [f"gap from {last} to {first}" for last, first in gaps if last != "-1"]


def check_with_kafka(log: Log, *, holes: bool = False) -> str:
    """Every file is read without a complaint, and as our own tool reads it. Return the data as dumped."""
    tools = kafka_tools()
    files = ",".join(files_in(log))
    for flags in FLAGS:
        said, ours = tools.dump_log(*flags, "--files", files), our_dump(*flags, "--files", files)
        assert ours.stdout == said.stdout
        # The files come in another order there.
        assert sorted(ours.stderr.splitlines()) == sorted(said.stderr.splitlines())
        assert (said.returncode, ours.returncode) == (0, 0)
        found = complaints(said.stderr)
        assert [line for line in found if not (holes and line.startswith("gap"))] == []
    data = tools.dump_log("--print-data-log", "--files", files).stdout
    batches = re.findall(r"^baseOffset: .*", data, re.MULTILINE)
    assert batches
    assert all("isvalid: true" in line for line in batches)
    return data


def dumped_offsets(data: str) -> list[int]:
    return [int(offset) for offset in re.findall(r"^\| offset: (\d+)", data, re.MULTILINE)]


def test_a_log_that_was_closed_is_read(tmp_path: Path) -> None:
    log = real_log(tmp_path, **SMALL)
    write_all_kinds(log)
    shut(log)

    data = check_with_kafka(log)

    assert len(log.segments) >= 3
    suffixes = {Path(name).suffix for name in files_in(log)}
    assert suffixes == {".log", ".index", ".timeindex", ".txnindex", ".snapshot"}
    assert dumped_offsets(data) == list(range(log.end_offset))
    assert {"none", "gzip", "snappy", "lz4", "zstd"} == set(re.findall(r"compresscodec: (\w+)", data))
    assert "endTxnMarker: ABORT" in data
    assert "endTxnMarker: COMMIT" in data


def test_a_log_that_is_only_flushed_is_read(tmp_path: Path) -> None:
    log = real_log(tmp_path, **SMALL)
    write_all_kinds(log)
    wait(flush(log, InlineExecutor()))

    assert dumped_offsets(check_with_kafka(log)) == list(range(log.end_offset))


def test_a_log_with_its_own_time_is_read(tmp_path: Path) -> None:
    log = real_log(tmp_path, message_timestamp_type="LogAppendTime", **SMALL)
    for number, codec in enumerate([*Codec] * 3):
        put(log, b"a", b"b", codec=codec, time=5, now=NOW + 1000 * number)
    shut(log)

    data = check_with_kafka(log)

    assert set(re.findall(r"LogAppendTime: (\d+)", data)) == {
        str(NOW + 1000 * number) for number in range(15)
    }


def test_a_log_that_was_truncated_and_written_again_is_read(tmp_path: Path) -> None:
    async def lower(_: int) -> None:
        return None

    log = real_log(tmp_path, **SMALL)
    write_all_kinds(log)
    remove_all(log.fs, wait(truncate(log, InlineExecutor(), 300, lower, NOW)))
    end = log.end_offset
    fill(log, 100, time=NOW + 50_000)
    shut(log)

    data = check_with_kafka(log)

    assert end < 300
    assert dumped_offsets(data) == list(range(end + 100))


def test_replicated_logs_with_gaps_are_read(tmp_path: Path) -> None:
    log = real_log(tmp_path, **SMALL)
    for number in range(200):
        log.append_as_follower(batch(b"v" * 200, base_offset=number * 7, leader_epoch=number // 50), NOW)
    shut(log)

    assert dumped_offsets(check_with_kafka(log, holes=True)) == list(range(0, 1400, 7))


def test_a_compacted_log_is_read(tmp_path: Path) -> None:
    log = real_log(
        tmp_path,
        cleanup_policy=("compact",),
        min_cleanable_dirty_ratio=0.0,
        **SMALL,
    )
    for number, codec in enumerate([*Codec] * 20):
        keys = [b"%d" % ((number * 3 + at) % 40) for at in range(10)]
        batches = [batch(b"%d" % number * 50, key=key, codec=codec, time=NOW + number) for key in keys]
        log.append_as_leader(
            b"".join(batches), leader_epoch=number // 30, now_ms=NOW, origin=Origin.COORDINATOR
        )
    send(log, P, 0, b"aborted", txn=True)
    end_txn(log, P, abort=True)
    log.roll(NOW)
    put(log, b"the last")
    log.advance_high_watermark(log.end_offset)
    before = log.end_offset
    wait(flush(log, InlineExecutor()))

    facts = dirty_log(log, checkpoint=None, flushed=log.end_offset)
    result = wait(
        clean(
            log,
            InlineExecutor(),
            weigh(facts, NOW + 10**9),
            map_bytes=1 << 20,
            secret=bytes(16),
            now_ms=NOW + 10**9,
        )
    )
    remove_all(log.fs, result.to_remove)
    left = offsets(log)
    shut(log)
    data = check_with_kafka(log, holes=True)

    assert len(left) < before / 5
    assert [offset for offset in dumped_offsets(data) if offset in left] == left


@pytest.mark.parametrize("clean", [True, False])
def test_a_reopened_and_extended_log_is_read(clean: bool, tmp_path: Path) -> None:
    log = real_log(tmp_path, **SMALL)
    fill(log, 150)
    end = shut(log)
    again = open_again(
        log.fs, clean=clean, recovery_point=end if clean else 0, directory=log.directory, **SMALL
    ).log
    fill(again, 150, time=NOW + 10_000)
    shut(again)

    assert dumped_offsets(check_with_kafka(again)) == list(range(300))
