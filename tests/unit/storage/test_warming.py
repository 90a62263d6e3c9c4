"""Reads that await the disk in the executor, never on the loop, and rebuild damaged indexes."""

from random import Random

import pytest

from barnabas.base.executor import InlineExecutor
from barnabas.sim.disk import SimDisk
from barnabas.storage.errors import CorruptLog
from barnabas.storage.files import NotCached
from barnabas.storage.log import Log
from barnabas.storage.lookup import latest_record, offset_for_time
from barnabas.storage.segment.index import IndexDamaged
from barnabas.storage.warming import mend_indexes, waiting, warmed
from support.log.logs import (
    NOW,
    CountingExecutor,
    end_txn,
    fill,
    new_disk,
    new_log,
    offsets,
    offsets_in,
    open_again,
    path_of,
    put,
    read_bytes,
    send,
    settings,
    shut,
    wait,
)

pytestmark = pytest.mark.kernel

INTERVAL = 300


def closed_log(disk: SimDisk) -> int:
    """Two segments, each too large to be walked without an index; return the end offset."""
    log = new_log(disk, index_interval_bytes=INTERVAL)
    send(log, 7, 0, txn=True)
    end_txn(log, 7, abort=True)
    fill(log, 400, step=10)
    log.roll(NOW)
    fill(log, 400, time=NOW + 4000, step=10)
    return shut(log)


def reopened(disk: SimDisk, end: int) -> Log:
    return open_again(disk, clean=True, recovery_point=end, index_interval_bytes=INTERVAL).log


@pytest.fixture(scope="module")
def template() -> tuple[SimDisk, int]:
    disk = new_disk()
    return disk, closed_log(disk)


@pytest.fixture
def log(template: tuple[SimDisk, int]) -> Log:
    disk, end = template
    return reopened(disk.branch(Random(1)), end)


def cool(log: Log) -> None:
    assert isinstance(log.fs, SimDisk)
    log.fs.cool()


# Cold


@pytest.mark.parametrize("offset", [0, 150, 401, 402, 700, 801])
def test_a_cold_read_loads_its_pages_in_the_executor(log: Log, offset: int) -> None:
    expected = read_bytes(log, offset, bytes_max=1000)
    cool(log)
    executor = CountingExecutor()

    with pytest.raises(NotCached):
        read_bytes(log, offset, bytes_max=1000)
    read = wait(warmed(log, executor, lambda: log.read(offset, upto=802, bytes_max=1000)))

    # A read may end where the next segment is still cold.
    assert read.size >= 201
    assert expected.startswith(read.read())
    assert 1 <= executor.runs <= 4


def test_everything_that_is_given_is_in_memory(log: Log) -> None:
    cool(log)

    read = wait(warmed(log, CountingExecutor(), lambda: log.read(0, upto=402, bytes_max=60_000)))

    assert read.size == 60_000
    for part in read.ranges:
        log.segments[0].open().need_cached(part.at, part.size)


def test_a_warm_read_asks_no_executor(log: Log) -> None:
    executor = CountingExecutor()

    read = wait(warmed(log, executor, lambda: log.read(300, upto=802, bytes_max=1000)))

    assert (offsets_in(read.read())[0], executor.runs) == ((300, 300), 0)


def test_times_and_aborted_transactions_are_waited_for_as_well(log: Log) -> None:
    cool(log)
    executor = CountingExecutor()

    found = wait(warmed(log, executor, lambda: offset_for_time(log, NOW + 2005)))
    assert found is not None
    assert (found.offset, executor.runs > 0) == (203, True)
    cool(log)
    latest = wait(warmed(log, executor, lambda: latest_record(log)))
    assert latest is not None
    assert latest.offset == 801
    cool(log)
    executor = CountingExecutor()
    assert [txn.producer_id for txn in wait(warmed(log, executor, lambda: log.aborted_in(0, 5)))] == [7]
    assert executor.runs == 1


def test_an_append_never_finds_its_log_cold(log: Log) -> None:
    cool(log)

    done = put(log, b"new", time=NOW + 1_000_000)

    assert done.base_offset == 802


def test_outside_of_the_loop_it_is_simply_waited_for(log: Log) -> None:
    cool(log)

    read = waiting(lambda: log.read(300, upto=802, bytes_max=1000))

    assert offsets_in(read.read())[0] == (300, 300)


def test_pages_that_stay_cold_are_read_in_the_end(log: Log) -> None:
    executor = CountingExecutor()
    tries = 0

    def forgetful() -> int:
        nonlocal tries
        tries += 1
        if tries < 40:
            raise NotCached(log.active.open(), at=0, size=10)
        return 5

    assert wait(warmed(log, executor, forgetful)) == 5
    assert executor.runs < 40


# Damage


WHICH = pytest.mark.parametrize("base", [0, 402], ids=["finished segment", "active segment"])


@WHICH
def test_a_damaged_offset_index_is_rebuilt(log: Log, base: int) -> None:
    assert isinstance(log.fs, SimDisk)
    path = path_of(base, ".index")
    before = log.fs.read(path)
    log.fs.rot(path, 50 * 8 + 7, 0x01)
    offset = base + int.from_bytes(before[50 * 8 : 50 * 8 + 4], "big")

    read = wait(warmed(log, InlineExecutor(), lambda: log.read(offset, upto=802, bytes_max=1)))

    assert offsets_in(read.read()) == [(offset, offset)]
    assert log.fs.read(path) == before
    assert offsets(log) == list(range(802))


@WHICH
def test_a_damaged_time_index_is_rebuilt(log: Log, base: int) -> None:
    assert isinstance(log.fs, SimDisk)
    path = path_of(base, ".timeindex")
    before = log.fs.read(path)
    log.fs.rot(path, 50 * 12 + 7, 0x01)
    timestamp = int.from_bytes(before[50 * 12 : 50 * 12 + 8], "big")

    found = wait(warmed(log, InlineExecutor(), lambda: offset_for_time(log, timestamp + 2)))

    assert found is not None
    assert found.timestamp == timestamp + 10
    assert log.fs.read(path) == before


def test_mending_the_active_segment_finishes_it(log: Log) -> None:
    wait(mend_indexes(log, InlineExecutor(), 402))

    assert log.bases == [0, 402, 802]
    assert put(log).base_offset == 802


def test_a_truncated_index_is_rebuilt(log: Log) -> None:
    log.fs.open(path_of(0, ".index")).truncate(100)

    assert offsets(log) == list(range(802))


def test_a_rebuilt_index_may_have_fewer_entries(log: Log) -> None:
    log.configure(settings(index_interval_bytes=4096))

    wait(mend_indexes(log, InlineExecutor(), 0))

    assert log.segments[0].offset_index().count < 30
    assert offsets(log) == list(range(802))
    assert log.segments[0].latest() == (NOW + 3990, 401)


def test_damage_in_the_log_itself_is_reported(log: Log) -> None:
    assert isinstance(log.fs, SimDisk)
    log.fs.rot(path_of(0, ".log"), 16, 0xFF)

    with pytest.raises(CorruptLog) as damage:
        wait(warmed(log, InlineExecutor(), lambda: log.read(0, upto=802, bytes_max=1000)))

    assert damage.value.path == path_of(0, ".log")
    assert offsets_in(read_bytes(log, 500, bytes_max=1000))[0] == (500, 500)


def test_damage_that_a_rebuild_does_not_repair_is_reported(log: Log) -> None:
    def never_content() -> int:
        raise IndexDamaged(0, "it does not fit")

    with pytest.raises(CorruptLog, match="it does not fit"):
        wait(warmed(log, InlineExecutor(), never_content))


def test_a_segment_that_was_deleted_meanwhile_keeps_its_indexes(log: Log) -> None:
    class Deleting(InlineExecutor):
        async def run(self, work):  # type: ignore[no-untyped-def]
            done = await super().run(work)
            log.drop_first(1)
            return done

    assert isinstance(log.fs, SimDisk)
    log.fs.rot(path_of(0, ".index"), 100, 0xFF)
    before = log.fs.read(path_of(0, ".index"))

    wait(mend_indexes(log, Deleting(), 0))

    assert log.fs.read(path_of(0, ".index")) == before
