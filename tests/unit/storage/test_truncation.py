"""Truncating a log: what stays, what is removed, and the possible states after a power loss."""

import asyncio
from random import Random

import pytest

from barnabas.base.executor import InlineExecutor
from barnabas.sim.disk import PowerLoss
from barnabas.storage.epochs import EpochStart
from barnabas.storage.errors import CorruptLog
from barnabas.storage.files import NotCached
from barnabas.storage.log import Log
from barnabas.storage.removal import retain
from barnabas.storage.segment.txn_index import AbortedTxn
from barnabas.storage.truncation import ChangedMeanwhile, restart_at, truncate
from support.log.logs import (
    NOW,
    CountingExecutor,
    disk_of,
    end_txn,
    files_of,
    fill,
    flushed,
    follow,
    new_disk,
    new_log,
    offsets,
    open_again,
    path_of,
    put,
    read_all,
    send,
    shut,
    value_at,
    wait,
)

pytestmark = pytest.mark.kernel

P, Q = 4000, 5000


def cut(log: Log, offset: int) -> list[str]:
    """Truncate, and check that every recovery point to write is valid at that time."""

    async def lower(to: int) -> None:
        assert to == log.recovery_point <= offset

    return wait(truncate(log, InlineExecutor(), offset, lower, NOW))


def batches_of_three(segment_bytes: int = 1 << 20) -> Log:
    """Offsets 0 to 11 in batches of three records."""
    log = new_log(segment_bytes=segment_bytes, index_interval_bytes=100)
    for first in range(0, 12, 3):
        put(log, *(b"%d" % offset for offset in range(first, first + 3)), time=NOW + first)
    return log


def same_after_a_crash(log: Log) -> Log:
    """Reopen the log after a power loss; it must be unchanged."""
    disk = disk_of(log)
    before = (log.start_offset, log.end_offset, offsets(log), log.epochs.entries(), log.producers.entries())
    disk.crash(Random(3))
    again = open_again(disk, recovery_point=log.recovery_point, start=log.start_offset).log
    after = (again.start_offset, again.end_offset, offsets(again), again.epochs.entries())
    assert (*after, again.producers.entries()) == before
    return again


# The position


@pytest.mark.parametrize("segment_bytes", [1 << 20, 200], ids=["one segment", "two"])
@pytest.mark.parametrize("offset", range(12))
def test_the_batch_that_contains_the_offset_is_truncated(offset: int, segment_bytes: int) -> None:
    log = batches_of_three(segment_bytes)
    end = offset - offset % 3

    cut(log, offset)

    assert (log.end_offset, offsets(log)) == (end, list(range(end)))
    assert [put(log, b"new").base_offset, log.end_offset] == [end, end + 1]
    assert read_all(log)[-1].value == b"new"
    flushed(log)
    same_after_a_crash(log)


@pytest.mark.parametrize("offset", [12, 13, 1000])
def test_nothing_is_truncated_at_or_after_the_end(offset: int) -> None:
    log, executor = batches_of_three(), CountingExecutor()

    async def lower(to: int) -> None:
        raise AssertionError(to)

    assert wait(truncate(log, executor, offset, lower, NOW)) == []
    assert (log.end_offset, executor.runs, log.truncations) == (12, 0, 0)


def test_segments_after_the_cut_are_returned_for_removal() -> None:
    log = new_log(segment_bytes=500)
    fill(log, 8)
    assert log.bases == [0, 2, 4, 6]

    paths = cut(log, 3)

    assert (log.bases, log.end_offset, log.active.base_offset) == ([0, 2], 3, 2)
    assert path_of(4, ".log.deleted") in paths
    assert all(path.endswith(".deleted") for path in paths)
    assert sorted(paths) == [path for path in disk_of(log).tree() if path.endswith(".deleted")]


def test_a_cut_where_a_segment_begins_leaves_it_empty() -> None:
    log = new_log(segment_bytes=500)
    fill(log, 6)

    cut(log, 2)

    assert (log.bases, log.end_offset, log.active.size) == ([0, 2], 2, 0)
    assert put(log).base_offset == 2
    flushed(log)
    same_after_a_crash(log)


@pytest.mark.parametrize("offset", [3, 20, 49, 50])
def test_a_cut_in_a_hole_ends_the_log_with_the_batch_in_front_of_it(offset: int) -> None:
    log = new_log()
    follow(log, 0, b"a", b"b", b"c")
    follow(log, 50, b"d")

    cut(log, offset)

    # As it will be when it is opened again.
    assert (log.end_offset, offsets(log)) == (3, [0, 1, 2])
    same_after_a_crash(log)


@pytest.mark.parametrize(("offset", "end"), [(5, 3), (49, 3), (50, 50)])
def test_a_cut_in_a_hole_between_segments(offset: int, end: int) -> None:
    log = new_log()
    follow(log, 0, b"a", b"b", b"c")
    log.roll(NOW)
    follow(log, 50, b"d")
    assert log.bases == [0, 3]

    cut(log, offset)

    assert (log.end_offset, offsets(log)) == (3, [0, 1, 2])


def test_a_cut_to_the_start_leaves_an_empty_log() -> None:
    log = batches_of_three()
    log.advance_high_watermark(9)
    log.advance_start(6)

    cut(log, 6)

    assert (log.start_offset, log.end_offset, log.high_watermark) == (6, 6, 6)
    assert put(log).base_offset == 6


@pytest.mark.parametrize("offset", [0, 4])
def test_a_cut_before_the_start_restarts_the_log_there(offset: int) -> None:
    log = batches_of_three(segment_bytes=200)
    log.advance_high_watermark(12)
    log.advance_start(8)
    flushed(log)

    paths = cut(log, offset)

    assert (log.start_offset, log.end_offset, log.bases) == (offset, offset, [offset])
    assert (log.high_watermark, log.recovery_point) == (offset, 0)
    assert path_of(0, ".log.deleted") in paths
    assert put(log).base_offset == offset
    flushed(log)
    same_after_a_crash(log)


def test_a_batch_that_holds_the_start_takes_the_whole_log_with_it() -> None:
    log = batches_of_three()
    log.advance_high_watermark(9)
    log.advance_start(7)

    cut(log, 8)

    assert (log.start_offset, log.end_offset, log.bases) == (7, 7, [7])


# Removed state


def test_the_recovery_point_is_lowered_before_the_truncation() -> None:
    log = batches_of_three()
    flushed(log)
    seen: list[tuple[int, int, int]] = []

    async def lower(to: int) -> None:
        seen.append((to, log.recovery_point, log.end_offset))

    wait(truncate(log, InlineExecutor(), 7, lower, NOW))

    assert seen == [(6, 6, 12)]
    assert log.recovery_point == 6


def test_a_recovery_point_below_the_cut_stays() -> None:
    log = new_log()
    put(log)
    flushed(log)
    fill(log, 4)

    async def lower(to: int) -> None:
        raise AssertionError(to)

    wait(truncate(log, InlineExecutor(), 3, lower, NOW))

    assert log.recovery_point == 1


def test_the_high_watermark_is_lowered_with_the_end() -> None:
    log = batches_of_three()
    log.advance_high_watermark(12)

    cut(log, 6)

    assert (log.high_watermark, log.last_stable_offset) == (6, 6)


def test_leader_epochs_are_forgotten_and_written_down() -> None:
    log = new_log()
    for epoch in (1, 1, 4, 4, 6):
        put(log, epoch=epoch)

    cut(log, 3)

    assert log.epochs.entries() == [EpochStart(1, 0), EpochStart(4, 2)]
    assert files_of(disk_of(log))["leader-epoch-checkpoint"] == b"0\n2\n1 0\n4 2\n"
    put(log, epoch=4)
    assert log.epochs.entries() == [EpochStart(1, 0), EpochStart(4, 2)]


def test_producers_are_restored_after_a_truncation() -> None:
    log = new_log()
    send(log, P, 0, b"a", b"b")
    before = log.producers.entries()
    send(log, P, 2, b"c")
    send(log, Q, 0, b"d")

    cut(log, 2)

    assert log.producers.entries() == before
    assert send(log, P, 2, b"again").base_offset == 2
    assert send(log, P, 0, b"a", b"b").duplicate


@pytest.mark.parametrize("rolled", [False, True])
def test_a_transaction_that_was_ended_is_open_again(rolled: bool) -> None:
    log = new_log()
    send(log, P, 0, txn=True)
    if rolled:
        log.roll(NOW)
    send(log, P, 1, txn=True)
    end_txn(log, P, abort=True)
    log.advance_high_watermark(3)
    assert log.last_stable_offset == 3

    cut(log, 2)

    assert (log.last_stable_offset, log.aborted_in(0, 2)) == (0, [])
    end_txn(log, P, abort=False)
    log.advance_high_watermark(3)
    assert (log.last_stable_offset, log.aborted_in(0, 3)) == (3, [])
    flushed(log)
    assert same_after_a_crash(log).aborted_in(0, 3) == []


@pytest.mark.parametrize("spilled", [False, True])
def test_aborted_transactions_before_the_cut_stay_known(spilled: bool) -> None:
    log = new_log()
    send(log, P, 0, txn=True)
    end_txn(log, P, abort=True)
    send(log, Q, 0, txn=True)
    end_txn(log, Q, abort=True)
    if spilled:
        flushed(log)

    cut(log, 3)

    assert log.aborted_in(0, 3) == [AbortedTxn(P, 0, 1, 2)]
    flushed(log)
    assert same_after_a_crash(log).aborted_in(0, 3) == [AbortedTxn(P, 0, 1, 2)]


@pytest.mark.parametrize("written", [False, True])
def test_a_new_segment_of_the_same_name_has_no_old_aborted_transactions(written: bool) -> None:
    log = new_log()
    send(log, P, 0, txn=True)
    end_txn(log, P, abort=True)
    put(log)
    if written:
        flushed(log)
        log.aborted_in(0, 3)
    log.advance_high_watermark(3)
    log.advance_start(2)

    cut(log, 0)
    fill(log, 3)

    assert (log.start_offset, log.bases) == (0, [0])
    assert log.aborted_in(0, 3) == []


def test_snapshots_of_truncated_offsets_are_removed() -> None:
    log = new_log(segment_bytes=500)
    fill(log, 8)
    assert log.snapshots == [2, 4, 6]

    cut(log, 5)

    assert log.snapshots == [2, 4]
    assert [name for name in files_of(disk_of(log)) if name.endswith(".snapshot")] == [
        "00000000000000000002.snapshot",
        "00000000000000000004.snapshot",
    ]


def test_the_snapshot_of_a_clean_shutdown_is_removed_too() -> None:
    log = new_log(disk := new_disk())
    fill(log, 8)
    again = open_again(disk, clean=True, recovery_point=shut(log)).log
    assert again.snapshots == [8]

    cut(again, 5)

    assert again.snapshots == []
    assert path_of(8, ".snapshot") not in disk.tree()


def test_an_unreadable_snapshot_is_ignored() -> None:
    log = new_log()
    send(log, P, 0)
    log.roll(NOW)
    send(log, P, 1)
    log.roll(NOW)
    send(log, P, 2)
    disk_of(log).rot(path_of(2, ".snapshot"), 12, 0x01)

    cut(log, 2)

    assert send(log, P, 2, b"again").base_offset == 2


def test_a_restarted_log_has_no_producers() -> None:
    async def lower(_: int) -> None:
        return None

    log = new_log(segment_bytes=500)
    send(log, P, 0, txn=True)
    fill(log, 4)

    wait(restart_at(log, InlineExecutor(), 100, lower, NOW))

    assert (log.start_offset, log.end_offset, log.bases, log.snapshots) == (100, 100, [100], [])
    assert (log.producers.entries(), log.last_stable_offset) == ([], 100)
    assert put(log, epoch=3).base_offset == 100


def test_a_log_restarted_at_a_later_offset_has_no_epochs() -> None:
    async def lower(_: int) -> None:
        return None

    log = new_log()
    fill(log, 4)

    wait(restart_at(log, InlineExecutor(), 100, lower, NOW))

    assert log.epochs.entries() == []
    put(log, epoch=3)
    flushed(log)
    assert same_after_a_crash(log).epochs.entries() == [EpochStart(3, 100)]


def test_an_append_after_a_cut_finds_nothing_cold() -> None:
    log = new_log(disk := new_disk(), segment_bytes=500)
    fill(log, 8)
    again = open_again(disk, clean=True, recovery_point=shut(log), segment_bytes=500).log
    cut(again, 3)
    disk.cool()

    assert put(again, time=NOW + 5).base_offset == 3


def test_uncached_aborted_transactions_do_not_block_the_loop() -> None:
    log = new_log(disk := new_disk())
    for sequence in (0, 1):
        send(log, 7, sequence, b"v", txn=True)
        end_txn(log, 7, abort=True)
    again = open_again(disk, clean=True, recovery_point=shut(log)).log
    disk.cool(path_of(0, ".txnindex"))

    with pytest.raises(NotCached) as missed:
        again.aborted.cut(again.active, 2)
    missed.value.warm()
    again.aborted.cut(again.active, 2)

    assert [txn.last_offset for txn in again.aborted.entries(again.active)] == [1]


# Failures


def test_damage_before_the_cut_is_reported_and_nothing_is_truncated() -> None:
    log = batches_of_three()
    disk_of(log).rot(path_of(0, ".log"), 16, 0xFF)

    with pytest.raises(CorruptLog) as damage:
        cut(log, 7)

    assert (damage.value.path, damage.value.position) == (path_of(0, ".log"), 0)
    assert log.end_offset == 12


def test_an_append_during_a_truncation_is_an_error() -> None:
    log = batches_of_three()
    flushed(log)

    async def lower(_: int) -> None:
        put(log)

    with pytest.raises(ChangedMeanwhile):
        wait(truncate(log, InlineExecutor(), 7, lower, NOW))

    assert log.end_offset == 13


@pytest.mark.parametrize("seed", range(8))
def test_a_power_loss_at_any_moment_leaves_the_log_before_or_after_the_cut(seed: int) -> None:
    finished, moment = False, 0
    while not finished:
        moment += 1
        disk = new_disk(seed)
        log = new_log(disk, segment_bytes=500, index_interval_bytes=100)
        fill(log, 7)
        flushed(log)
        written = [7]

        async def lower(to: int, written: list[int] = written) -> None:
            written.append(to)

        disk.crash_after(moment)
        try:
            wait(truncate(log, InlineExecutor(), 3, lower, NOW))
            finished = True
        except PowerLoss:
            finished = False
        disk.crash(Random(seed))

        again = open_again(disk, recovery_point=written[-1], segment_bytes=500).log
        assert again.end_offset >= 3
        # What is back of it is what it was.
        assert [record.value for record in read_all(again)] == [
            value_at(at) for at in range(again.end_offset)
        ]
        if finished:
            assert again.end_offset == 3
    assert moment > 10


def test_records_without_a_time_are_kept_after_a_restart_of_the_log() -> None:
    async def lower(_: int) -> None:
        return None

    log = new_log(retention_ms=60_000)
    fill(log, 3)
    wait(restart_at(log, InlineExecutor(), 100, lower, NOW))
    follow(log, 100, b"a", time=-1)
    log.advance_high_watermark(101)

    assert wait(retain(log, InlineExecutor(), NOW + 1)) == []
    assert offsets(log) == [100]


@pytest.mark.parametrize("at", [4, 5, 6, 7])
def test_a_wrong_position_in_an_index_does_not_spoil_a_cut(at: int) -> None:
    log = new_log(disk := new_disk(), index_interval_bytes=100)
    fill(log, 10, step=10)
    end = shut(log)

    for entry in range(disk.tree()[path_of(0, ".index")] // 8):
        for bit in range(8):
            other = disk.branch(Random(1))
            other.rot(path_of(0, ".index"), 8 * entry + at, 1 << bit)
            again = open_again(other, clean=True, recovery_point=end, index_interval_bytes=100).log
            cut(again, 6)
            assert again.active.latest() == (NOW + 50, 5), (entry, bit)
            assert offsets(again) == list(range(6))


def test_truncation_waits_for_the_logs_lock() -> None:
    async def story() -> None:
        log = batches_of_three()

        async def lower(_: int) -> None:
            return None

        async with log.turn():
            task = asyncio.create_task(truncate(log, InlineExecutor(), 3, lower, NOW))
            for _ in range(5):
                await asyncio.sleep(0)
            assert log.end_offset == 12
        await task
        assert log.end_offset == 3

    wait(story())
