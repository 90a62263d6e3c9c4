"""A broker whose disks fill up or fail keeps all flushed records, and a failed disk affects no other.

BARNABAS_SEED=17 pytest tests/property/test_log_faults.py             replays one seed
BARNABAS_SEEDS=1000 pytest -n 2 tests/property/test_log_faults.py     runs more seeds
"""

import errno
from collections.abc import Sequence
from contextlib import suppress
from random import Random

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.sim.disk_faults import Kind
from barnabas.storage.errors import DirectoryOffline, DiskFull, StorageError
from support.log.fault_world import T0, U0, V0, A, Broker, play
from support.scale import seeds

pytestmark = pytest.mark.kernel

IN_A = (T0, U0)
STEPS = 60

# Operations that a disk may refuse while logs are in use.
KINDS: Sequence[Kind] = ("open", "create", "read", "write", "truncate", "sync", "rename", "sync_directory")


async def step(broker: Broker, tp: TopicPartition) -> None:
    """Do one random operation of a broker on a log."""
    part, rng = broker.parts[tp], broker.rng
    what = rng.choices(["append", "roll", "flush", "checkpoint", "look"], [8, 1, 2, 1, 1])[0]
    if what == "append":
        broker.append(tp)
    elif what == "roll":
        broker.roll(tp)
    elif what == "flush":
        await broker.flush(tp)
    elif what == "checkpoint":
        await broker.checkpoint(part.path)
    else:
        errors = await broker.look(tp, committed=broker.disk.capacity is None)
        if errors:
            raise errors[0]


# A full disk


async def fill_the_disk(broker: Broker) -> None:
    """Work until the disk is full, then continue. Reads stay correct all the time."""
    await broker.start()
    await broker.fill(steps=20)
    refused = 0
    broker.disk.capacity = broker.disk.used + broker.rng.randrange(3000)
    for _ in range(STEPS):
        tp = broker.rng.choice(sorted(broker.parts))
        try:
            await step(broker, tp)
        except DiskFull as full:
            refused += 1
            broker.tell(f"{tp}: {full}")
            broker.parts[tp].maybe = None
            # Aborted transactions are checked in test_aborted_transactions_are_readable_on_a_full_disk.
            assert await broker.look(tp, committed=False) == []
    assert refused, "the disk was never full"


@pytest.mark.parametrize("seed", seeds(25))
def test_a_full_disk_rejects_writes_until_space_is_freed(seed: int) -> None:
    async def story(broker: Broker) -> None:
        await fill_the_disk(broker)

        broker.disk.capacity = None

        for tp in broker.parts:
            await broker.flush(tp)
        await broker.is_well()
        await broker.stop()
        report = await broker.open()
        assert (report.broken, report.failed) == ({}, {})
        await broker.is_well()

    play(seed, story)


@pytest.mark.parametrize("seed", seeds(25))
def test_flushed_records_survive_a_power_loss_while_the_disk_is_full(seed: int) -> None:
    async def story(broker: Broker) -> None:
        await fill_the_disk(broker)

        broker.crash()
        broker.disk.capacity = None

        report = await broker.open()
        assert (report.broken, report.failed) == ({}, {})
        for tp in broker.parts:
            broker.settle(tp)
        await broker.is_well()

    play(seed, story)


@pytest.mark.parametrize("seed", seeds(25))
def test_a_stop_on_a_full_disk_loses_nothing(seed: int) -> None:
    async def story(broker: Broker) -> None:
        await fill_the_disk(broker)

        await broker.manager.close()
        if broker.rng.random() < 0.5:
            # The disk is still full: opening the log fails with an error, or succeeds.
            with suppress(DirectoryOffline):
                await broker.open()
                await broker.manager.close()
        broker.disk.capacity = None

        report = await broker.open()
        assert (report.broken, report.failed) == ({}, {})
        for tp, part in broker.parts.items():
            # The process did not crash, so everything is in the files.
            broker.settle(tp, floor=part.model.end)
        await broker.is_well()

    play(seed, story)


# Input and output errors


async def break_a_disk(broker: Broker) -> None:
    """Work until the first disk refuses an operation, then continue with the second one."""
    await broker.start()
    await broker.fill(steps=20)
    kinds = broker.rng.sample(KINDS, broker.rng.randint(1, 3))
    for _ in range(broker.rng.randrange(20)):
        await step(broker, broker.rng.choice(sorted(broker.parts)))
    broker.tell(f"{kinds} fail in {A}")
    broker.disk.fail(A, kinds, count=broker.rng.choice([1, 10**9]))
    points = {tp: broker.log(tp).recovery_point for tp in IN_A}
    for _ in range(STEPS):
        tp = broker.rng.choice(sorted(broker.parts))
        try:
            if tp == V0 or broker.directory(A).offline is None:
                await step(broker, tp)
                points[tp] = broker.log(tp).recovery_point
        except DirectoryOffline as offline:
            broker.tell(f"{tp}: {offline}")
            assert tp in IN_A, "the other directory failed"
            check_offline(broker, points)
    await broker.is_well(V0)


def check_offline(broker: Broker, points: dict[TopicPartition, int]) -> None:
    why = broker.directory(A).offline
    assert why is not None
    assert why.startswith("[Errno 5] Input/output error: '/a"), why
    for tp in IN_A:
        with pytest.raises(DirectoryOffline) as refused:
            broker.manager.get(tp)
        assert str(refused.value) == f"log directory /a is offline: {why}"
        # The recovery point must not advance over records that could not be synced.
        assert broker.manager.logs[tp].recovery_point == points[tp]


@pytest.mark.parametrize("seed", seeds(40))
def test_a_failed_disk_goes_offline_and_the_other_stays_in_use(seed: int) -> None:
    async def story(broker: Broker) -> None:
        await break_a_disk(broker)

        await broker.manager.close()
        # The disk is repaired and the broker restarted. No power was lost, so no unsynced write is lost.
        broker.disk = broker.disk.branch(Random(seed))
        if broker.rng.random() < 0.5:
            broker.crash()

        report = await broker.open()
        assert (report.broken, report.failed) == ({}, {})
        for tp in broker.parts:
            broker.settle(tp)
        await broker.is_well()

    play(seed, story)


@pytest.mark.parametrize("seed", seeds(40))
def test_a_disk_that_fails_at_start_goes_offline_and_loses_nothing(seed: int) -> None:
    async def story(broker: Broker) -> None:
        await broker.start()
        await broker.fill(steps=20)
        if broker.rng.random() < 0.5:
            await broker.stop()
        else:
            broker.crash()
        mended = broker.disk.branch(Random(seed))
        broker.disk.fail(A, broker.rng.sample([*KINDS, "entries", "lock"], 2), count=10**9)

        report = await broker.open()

        if report.failed:
            assert list(report.failed) == [A]
            assert "Input/output error" in report.failed[A]
        broker.settle(V0)
        await broker.is_well(V0)
        for tp in IN_A:
            with suppress(StorageError):
                found = broker.manager.get(tp)
                assert found is None or not report.failed, "a log is in use on a failed disk"
        # This copy lacks what has since been written to the other directory.
        broker.disk = mended
        del broker.parts[V0]
        report = await broker.open()
        assert (report.broken, report.failed) == ({}, {})
        for tp in broker.parts:
            broker.settle(tp)
        await broker.is_well()

    play(seed, story)


def test_a_failed_sync_takes_the_directory_offline_even_on_a_full_disk() -> None:
    async def story(broker: Broker) -> None:
        await broker.start()
        broker.append(T0)
        # Some file systems allocate blocks only at the sync.
        broker.disk.fail(f"{A}/t-0", ["sync"], errno=errno.ENOSPC)

        with pytest.raises(StorageError):
            await broker.flush(T0)

        with pytest.raises(DirectoryOffline):
            # The pages count as clean now, so another sync would succeed.
            await broker.flush(T0)

    play(0, story)


def test_aborted_transactions_are_readable_on_a_full_disk() -> None:
    async def story(broker: Broker) -> None:
        await broker.start()
        broker.append_data(T0, 11, transactional=True)
        broker.end_transaction(T0, 11, aborted=True)
        broker.disk.capacity = broker.disk.used + 20

        with pytest.raises(DiskFull):
            await broker.flush(T0)

        assert await broker.look(T0) == []

    play(0, story)


def test_a_failed_write_leaves_no_bytes_in_a_segment_that_is_rolled_afterwards() -> None:
    async def story(broker: Broker) -> None:
        await broker.start()
        broker.append(T0)
        broker.disk.capacity = broker.disk.used + 70
        with pytest.raises(DiskFull):
            broker.append_one(T0)

        broker.disk.capacity = None
        broker.roll(T0)
        broker.append(T0)
        await broker.stop()
        await broker.open()

        await broker.is_well(T0)

    play(0, story)
