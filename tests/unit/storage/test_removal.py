"""Deleting segments: from the log at once, from the disk later, and never unreplicated ones."""

import asyncio
from random import Random
from typing import Any

import pytest

from barnabas.base.executor import InlineExecutor
from barnabas.sim.disk import PowerLoss
from barnabas.storage.errors import OffsetOutOfRange
from barnabas.storage.log import Log
from barnabas.storage.removal import remove_all, retain, retention_facts
from barnabas.storage.segment.txn_index import AbortedTxn
from support.log.logs import (
    DIRECTORY,
    NOW,
    disk_of,
    end_txn,
    files_of,
    fill,
    flushed,
    new_disk,
    new_log,
    offsets,
    open_again,
    path_of,
    put,
    read_all,
    read_bytes,
    send,
    value_at,
    wait,
)

pytestmark = pytest.mark.kernel

P = 4000
SIZE = 201  # of a batch that fill() writes


def segments_of_two(count: int = 8, **values: Any) -> Log:
    """Two batches per segment, a second between batches, all replicated."""
    log = new_log(segment_bytes=500, **values)
    fill(log, count, step=1000)
    log.advance_high_watermark(count)
    return log


def keep(log: Log, now: int = NOW) -> list[str]:
    return wait(retain(log, InlineExecutor(), now))


def test_the_facts_are_those_of_the_segments() -> None:
    facts = retention_facts(segments_of_two(5))

    assert [(one.base_offset, one.end_offset, one.size) for one in facts] == [
        (0, 2, 2 * SIZE),
        (2, 4, 2 * SIZE),
        (4, 5, SIZE),
    ]
    assert [one.largest_timestamp - NOW for one in facts] == [1000, 3000, 4000]


# Reasons


def test_segments_that_are_too_old_are_deleted() -> None:
    log = segments_of_two(retention_ms=10_000)

    assert keep(log, NOW + 11_000) == []
    keep(log, NOW + 13_001)

    assert (log.bases, log.start_offset, offsets(log)) == ([4, 6], 4, [4, 5, 6, 7])


def test_segments_beyond_retention_bytes_are_deleted() -> None:
    log = segments_of_two(retention_bytes=5 * SIZE, retention_ms=-1)

    keep(log)

    assert (log.bases, log.start_offset) == ([2, 4, 6], 2)


def test_segments_below_the_log_start_are_deleted() -> None:
    log = segments_of_two(retention_ms=-1)
    log.advance_start(5)

    keep(log)

    assert (log.bases, log.start_offset) == ([4, 6], 5)


def test_a_log_whose_last_record_is_too_old_is_emptied_and_continues() -> None:
    log = segments_of_two(retention_ms=10_000)

    keep(log, NOW + 1_000_000)

    assert (log.bases, log.start_offset, log.end_offset, log.size) == ([8], 8, 8, 0)
    assert put(log).base_offset == 8


def test_nothing_above_the_high_watermark_is_deleted() -> None:
    log = new_log(segment_bytes=500, retention_ms=0)
    fill(log, 8)
    log.advance_high_watermark(5)

    keep(log, NOW + 1_000_000)

    assert (log.bases, log.start_offset) == ([4, 6], 4)


def test_an_empty_decision_does_nothing() -> None:
    log = segments_of_two(retention_ms=-1)
    before = disk_of(log).operations

    assert keep(log) == []
    assert disk_of(log).operations == before


def test_the_times_of_a_cold_log_are_waited_for_in_the_executor() -> None:
    log = segments_of_two(retention_ms=10_000)
    again = open_again(disk_of(log), recovery_point=flushed(log), segment_bytes=500, retention_ms=10_000).log
    again.set_high_watermark(8)
    disk_of(again).cool()

    keep(again, NOW + 13_001)

    assert again.bases == [4, 6]


def test_records_without_a_time_are_as_old_as_the_last_write() -> None:
    log = new_log(retention_ms=60_000)
    put(log, time=-1, now=NOW)
    put(log, time=-1, now=NOW + 600_000)
    log.advance_high_watermark(2)

    # Kafka uses the modification time of the file.
    keep(log, NOW + 600_001)

    assert offsets(log) == [0, 1]


# Procedure


def test_files_are_marked_first_and_removed_later() -> None:
    log = segments_of_two(retention_ms=10_000)
    held = log.read(0, upto=2, bytes_max=1000)

    paths = keep(log, NOW + 13_001)

    names = files_of(disk_of(log))
    assert "00000000000000000000.log.deleted" in names
    assert "00000000000000000000.log" not in names
    assert set(paths) == {f"{DIRECTORY}/{name}" for name in names if name.endswith(".deleted")}
    assert [record.value for record in read_all(log)] == [value_at(at) for at in range(4, 8)]
    remove_all(log.fs, paths)
    assert not any(name.endswith(".deleted") for name in files_of(disk_of(log)))
    # A range that is held can still be sent.
    assert len(held.read()) == 2 * SIZE


def test_files_that_are_gone_already_are_no_trouble() -> None:
    log = segments_of_two(retention_ms=10_000)
    paths = keep(log, NOW + 13_001)
    log.fs.remove(paths[0])

    remove_all(log.fs, paths)

    assert not any(name.endswith(".deleted") for name in files_of(disk_of(log)))


def test_a_snapshot_is_removed_with_its_segment() -> None:
    log = segments_of_two(retention_ms=10_000)
    assert log.snapshots == [2, 4, 6]

    paths = keep(log, NOW + 13_001)

    assert log.snapshots == [4, 6]
    assert path_of(2, ".snapshot.deleted") in paths
    assert path_of(4, ".snapshot") in disk_of(log).tree()


def test_deleted_records_cannot_be_read() -> None:
    log = segments_of_two(retention_ms=10_000)
    keep(log, NOW + 13_001)

    with pytest.raises(OffsetOutOfRange):
        read_bytes(log, 3)


def test_aborted_transactions_of_a_segment_go_with_it() -> None:
    log = new_log(retention_ms=10_000)
    send(log, P, 0, txn=True)
    end_txn(log, P, abort=True)
    log.roll(NOW)
    put(log, time=NOW + 50_000)
    log.advance_high_watermark(3)
    assert log.aborted_in(0, 3) == [AbortedTxn(P, 0, 1, 2)]

    paths = keep(log, NOW + 20_000)

    assert path_of(0, ".txnindex.deleted") in paths
    assert log.aborted_in(2, 3) == []


@pytest.mark.parametrize("seed", range(6))
def test_a_power_loss_at_any_moment_leaves_no_gap_and_all_producers(seed: int) -> None:
    finished, moment = False, 0
    while not finished:
        moment += 1
        disk = new_disk(seed)
        log = new_log(disk, segment_bytes=500, retention_ms=10_000)
        send(log, P, 0)
        fill(log, 7, step=1000)
        log.advance_high_watermark(8)
        flushed(log)
        fill(log, 2, time=NOW + 8000)

        disk.crash_after(moment)
        try:
            keep(log, NOW + 13_001)
            finished = True
        except PowerLoss:
            finished = False
        disk.crash(Random(seed))
        again = open_again(disk, recovery_point=8, segment_bytes=500).log

        assert offsets(again)[: 8 - again.start_offset] == list(range(again.start_offset, 8))
        assert [entry.producer_id for entry in again.producers.entries()] == [P]
    assert moment > 4


@pytest.mark.parametrize("seed", range(12))
def test_producer_state_is_synced_before_its_segment_is_deleted(seed: int) -> None:
    log = new_log(disk := new_disk(seed))
    send(log, P, 0)
    log.roll(NOW)
    fill(log, 2)
    log.advance_high_watermark(3)
    log.advance_start(1)

    keep(log)
    disk.crash(Random(seed))

    again = open_again(disk, start=1).log
    assert again.bases == [1]
    assert [entry.producer_id for entry in again.producers.entries()] == [P]


def test_retention_waits_for_the_logs_lock() -> None:
    async def story() -> None:
        log = segments_of_two(retention_ms=10_000)
        async with log.turn():
            task = asyncio.create_task(retain(log, InlineExecutor(), NOW + 13_001))
            for _ in range(5):
                await asyncio.sleep(0)
            assert log.bases[0] == 0
        await task
        assert log.bases[0] == 4

    wait(story())
