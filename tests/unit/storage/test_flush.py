"""The durable state after a flush, and after a close."""

import asyncio
import errno
from random import Random

import pytest

from barnabas.base.executor import InlineExecutor
from barnabas.storage.epochs import EpochStart
from barnabas.storage.flush import begin_flush, close, finish_flush, flush
from barnabas.storage.removal import retain
from barnabas.storage.segment.txn_index import AbortedTxn
from barnabas.storage.truncation import truncate
from barnabas.storage.warming import mend_indexes
from support.log.logs import (
    DIRECTORY,
    NOW,
    CountingExecutor,
    PausedExecutor,
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
    send,
    shut,
    wait,
)

pytestmark = pytest.mark.kernel

P = 4000
# The loss of a power failure is random, so test this many seeds.
CRASHES = range(12)


async def nothing_to_lower(_: int) -> None:
    return None


# The recovery point


def test_the_recovery_point_moves_when_the_sync_is_done_and_not_before() -> None:
    async def story() -> None:
        log, executor = new_log(), PausedExecutor()
        fill(log, 3)

        task = asyncio.create_task(flush(log, executor))
        await asyncio.sleep(0)
        assert (executor.waiting, log.recovery_point) == (1, 0)
        fill(log, 2)
        executor.gate.set()
        await task

        # Batches appended meanwhile may or may not be synced.
        assert (log.recovery_point, log.end_offset) == (3, 5)

    wait(story())


def test_a_sync_that_fails_moves_nothing() -> None:
    log = new_log()
    fill(log, 3)
    disk_of(log).fail(DIRECTORY, ["sync"], errno=errno.EIO)

    with pytest.raises(OSError, match="Input/output"):
        flushed(log)

    assert log.recovery_point == 0


@pytest.mark.parametrize("kind", ["sync_directory", "rename"])
def test_names_that_cannot_be_synced_move_nothing(kind: str) -> None:
    log = new_log()
    fill(log, 3)
    disk_of(log).fail(DIRECTORY, [kind])  # type: ignore[list-item]

    with pytest.raises(OSError, match="Input/output"):
        flushed(log)

    assert (log.recovery_point, log.epochs_changed) == (0, True)


def test_a_flush_that_began_before_a_truncation_promises_nothing() -> None:
    log = new_log()
    fill(log, 5)
    job = begin_flush(log)
    job.run()
    wait(truncate(log, InlineExecutor(), 2, nothing_to_lower, NOW))
    fill(log, 4)

    finish_flush(log, job)

    assert log.recovery_point == 0


def test_flushes_that_overlap_do_not_take_the_recovery_point_back() -> None:
    log = new_log()
    fill(log, 3)
    first = begin_flush(log)
    fill(log, 2)
    second = begin_flush(log)
    for job in (second, first):
        job.run()
        finish_flush(log, job)

    assert log.recovery_point == 5


# Durability


@pytest.mark.parametrize("seed", CRASHES)
def test_flushed_records_survive_a_power_loss(seed: int) -> None:
    log = new_log(disk := new_disk(seed), segment_bytes=700)
    fill(log, 8)
    send(log, P, 0, txn=True)
    end_txn(log, P, abort=True)
    log.roll(NOW)
    put(log, epoch=6)
    end = flushed(log)
    put(log, epoch=6)

    disk.crash(Random(seed))
    again = open_again(disk, recovery_point=end, segment_bytes=700).log

    assert offsets(again)[:end] == list(range(11))
    assert again.epochs.entries() == [EpochStart(0, 0), EpochStart(6, 10)]
    assert again.aborted_in(0, end) == [AbortedTxn(P, 8, 9, 10)]
    assert [entry.producer_id for entry in again.producers.entries()] == [P]


@pytest.mark.parametrize("seed", CRASHES)
def test_the_names_of_a_new_segment_are_safe_as_well(seed: int) -> None:
    log = new_log(disk := new_disk(seed))
    fill(log, 2)
    flushed(log)
    log.roll(NOW)
    fill(log, 2)
    end = flushed(log)

    disk.crash(Random(seed))

    assert offsets(open_again(disk, recovery_point=end).log) == [0, 1, 2, 3]


def test_a_flush_of_nothing_new_writes_nothing() -> None:
    log = new_log()
    fill(log, 3)
    flushed(log)
    before = disk_of(log).operations

    flushed(log)

    assert disk_of(log).operations == before


def test_a_flush_syncs_only_the_segments_that_have_changed() -> None:
    log = new_log(segment_bytes=500)
    fill(log, 5)
    flushed(log)
    fill(log, 1)

    job = begin_flush(log)

    assert log.bases == [0, 2, 4]
    assert [file.path for file in job.files] == [path_of(4, ".log")]


def test_all_of_it_is_one_job() -> None:
    log, executor = new_log(segment_bytes=500), CountingExecutor()
    fill(log, 9)

    wait(flush(log, executor))

    assert executor.runs == 1


# Closing


def test_a_closed_log_is_opened_without_a_look_at_its_batches() -> None:
    log = new_log(disk := new_disk(), segment_bytes=700, index_interval_bytes=100)
    fill(log, 8)
    send(log, P, 0)
    end = shut(log)
    # Damage that any check of the batches would detect.
    disk.rot(path_of(0, ".log"), 100, 0xFF)

    opened = open_again(disk, clean=True, recovery_point=end, segment_bytes=700)

    assert opened.findings == []
    assert (opened.log.end_offset, opened.log.recovery_point) == (9, 9)
    assert [entry.producer_id for entry in opened.log.producers.entries()] == [P]


def test_a_closed_log_has_complete_indexes_and_a_snapshot_at_its_end() -> None:
    log = new_log(disk := new_disk(), index_interval_bytes=300)
    fill(log, 4)

    shut(log)

    files = files_of(disk)
    assert "00000000000000000004.snapshot" in files
    # The last batch was not due for an index entry yet, but its timestamp must be indexed.
    assert len(files["00000000000000000000.index"]) == 8
    assert files["00000000000000000000.timeindex"][-12:] == (NOW + 3).to_bytes(8, "big") + bytes([0, 0, 0, 3])
    assert files["leader-epoch-checkpoint"] == b"0\n1\n0 0\n"


@pytest.mark.parametrize("seed", CRASHES)
def test_a_closed_log_is_safe(seed: int) -> None:
    log = new_log(disk := new_disk(seed), segment_bytes=700, index_interval_bytes=100)
    fill(log, 8)
    send(log, P, 0)
    end = shut(log)
    before = files_of(disk)

    disk.crash(Random(seed))

    assert files_of(disk) == before
    assert open_again(disk, clean=True, recovery_point=end).findings == []


def test_a_failed_write_leaves_nothing_behind() -> None:
    log = new_log(disk := new_disk())
    fill(log, 3)
    disk.fail(path_of(0, ".log"), ["write"], errno=errno.ENOSPC)

    with pytest.raises(OSError, match="No space left"):
        fill(log, 1)

    assert disk.tree()[path_of(0, ".log")] == log.size


def test_closing_truncates_leftovers_of_a_failed_write() -> None:
    log = new_log(disk := new_disk())
    fill(log, 3)
    disk.fail(path_of(0, ".log"), ["write"], errno=errno.ENOSPC)
    disk.fail(path_of(0, ".log"), ["truncate"])
    with pytest.raises(OSError, match="No space left"):
        fill(log, 1)
    assert disk.tree()[path_of(0, ".log")] > log.size

    shut(log)

    assert disk.tree()[path_of(0, ".log")] == log.size


def test_a_close_that_fails_says_so() -> None:
    log = new_log()
    fill(log, 3)
    disk_of(log).fail(DIRECTORY, ["sync"])

    with pytest.raises(OSError, match="Input/output"):
        wait(close(log, InlineExecutor()))

    assert log.recovery_point == 0


# Concurrency with other operations on files


def test_segments_are_not_deleted_while_they_are_flushed() -> None:
    async def story() -> None:
        log, executor = new_log(segment_bytes=500, retention_bytes=0), PausedExecutor()
        fill(log, 6)
        log.advance_high_watermark(6)
        flushing = asyncio.create_task(flush(log, executor))
        await asyncio.sleep(0)
        deleting = asyncio.create_task(retain(log, InlineExecutor(), NOW))
        await asyncio.sleep(0)
        assert log.bases[0] == 0

        executor.gate.set()
        await asyncio.gather(flushing, deleting)

        assert (log.recovery_point, log.start_offset, log.bases) == (6, 6, [6])

    wait(story())


def test_segments_are_not_truncated_while_they_are_flushed() -> None:
    async def story() -> None:
        log, executor = new_log(segment_bytes=500), PausedExecutor()
        fill(log, 6)
        flushing = asyncio.create_task(flush(log, executor))
        await asyncio.sleep(0)
        cutting = asyncio.create_task(truncate(log, InlineExecutor(), 1, nothing_to_lower, NOW))
        await asyncio.sleep(0)
        assert log.end_offset == 6

        executor.gate.set()
        await asyncio.gather(flushing, cutting)

        assert (log.recovery_point, log.end_offset, log.bases) == (1, 1, [0])

    wait(story())


def test_indexes_are_not_replaced_while_they_are_flushed() -> None:
    async def story() -> None:
        log, executor = new_log(index_interval_bytes=100), PausedExecutor()
        fill(log, 6)
        log.roll(NOW)
        flushing = asyncio.create_task(flush(log, executor))
        await asyncio.sleep(0)

        disk_of(log).rot(path_of(0, ".index"), 7, 0xFF)
        mending = asyncio.create_task(mend_indexes(log, InlineExecutor(), 0))
        for _ in range(5):
            await asyncio.sleep(0)
        executor.gate.set()
        await asyncio.gather(flushing, mending)

        assert log.recovery_point == 6

    wait(story())
