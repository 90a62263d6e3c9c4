"""A quorum of one voter, on a simulated disk."""

import asyncio
import errno
from contextlib import suppress
from random import Random

import pytest

from barnabas.protocol.stored.cluster_topics import PartitionRecord
from barnabas.protocol.stored.framing import Versioned
from barnabas.raft.driver.waiting import UNCOMMITTED_BYTES_MAX
from barnabas.raft.errors import (
    BadSnapshotId,
    MetadataUnreadable,
    NoRoom,
    NotLeader,
    QuorumClosed,
    RecordsTooLarge,
    TooMuchUncommitted,
)
from barnabas.raft.facts import LeaderAndEpoch, OffsetAndEpoch
from barnabas.raft.settings import BATCH_BYTES_MAX, QuorumSettings
from barnabas.sim.disk import SimDisk
from support.clocks import ManualClock
from support.log.managers import SlowExecutor, on_a_loop
from support.quorums import LOG_DIRECTORY, ROOT, Recorder, bulk, config, elected, new_quorum, running


def new_disk() -> SimDisk:
    disk = SimDisk(Random(0))
    disk.make_directory(ROOT)
    return disk


@on_a_loop
async def test_a_new_quorum_of_one_elects_itself_in_epoch_1() -> None:
    listener = Recorder()
    quorum = new_quorum(new_disk(), listener)

    async with running(quorum, listener) as epoch:
        assert epoch == 1
        assert quorum.leader == LeaderAndEpoch(1, 1)
        assert (quorum.log_start_offset, quorum.high_watermark, quorum.end_offset) == (0, 1, 1)

    assert listener.story == ["batch 0-0 epoch 1", "leader 1 epoch 1"]
    assert listener.batches[0].records == ()


@on_a_loop
async def test_an_append_is_one_batch_and_is_delivered_before_its_future_is_done() -> None:
    listener = Recorder()
    quorum = new_quorum(new_disk(), listener)

    async with running(quorum, listener) as epoch:
        done = quorum.append(epoch, [config(1), config(2)])
        assert quorum.end_offset == 3
        assert listener.records == []
        assert await done == 2
        assert listener.records == [config(1), config(2)]

    assert listener.story[-1] == "batch 1-2 epoch 1"
    assert listener.batches[-1].append_time_ms == 1_000


@on_a_loop
async def test_a_restart_delivers_everything_again_before_it_says_that_we_lead() -> None:
    disk = new_disk()
    before = Recorder()
    quorum = new_quorum(disk, before)
    async with running(quorum, before) as epoch:
        await quorum.append(epoch, [config(1)])
        await quorum.append(epoch, [config(2)])

    after = Recorder()
    async with running(new_quorum(disk, after), after) as epoch:
        assert epoch == 2

    assert after.records == [config(1), config(2)]
    assert after.story[-2:] == ["batch 3-3 epoch 2", "leader 1 epoch 2"]


@on_a_loop
async def test_a_record_is_written_in_its_newest_or_the_given_version() -> None:
    listener = Recorder()
    quorum = new_quorum(new_disk(), listener)
    partition = PartitionRecord(partition_id=0, replicas=[1], isr=[1], leader=1)

    async with running(quorum, listener) as epoch:
        await quorum.append(epoch, [partition, Versioned(partition, 0)])

    assert [version for _, version in listener.batches[-1].records] == [2, 0]


@on_a_loop
async def test_only_the_leader_of_the_epoch_may_append() -> None:
    listener = Recorder()
    quorum = new_quorum(new_disk(), listener)
    await quorum.open()

    with pytest.raises(NotLeader, match="does not lead epoch 1; the leader is unknown in epoch 0"):
        quorum.append(1, [config(1)])

    await quorum.close()
    quorum = new_quorum(new_disk(), listener)
    async with running(quorum, listener):
        with pytest.raises(NotLeader, match="epoch 5; the leader is node 1 in epoch 1") as caught:
            quorum.append(5, [config(1)])
        assert (caught.value.leader, caught.value.epoch) == (1, 1)


@on_a_loop
async def test_appends_during_a_sync_share_the_next_one() -> None:
    disk = new_disk()
    listener = Recorder()
    quorum = new_quorum(disk, listener, executor=SlowExecutor())

    async with running(quorum, listener) as epoch:
        syncs = []
        real = disk.faults.changing

        def watched(kind: str, path: str) -> object:
            if kind == "sync":
                syncs.append(path)
            return real(kind, path)  # type: ignore[arg-type]

        disk.faults.changing = watched  # type: ignore[method-assign,assignment]
        first = quorum.append(epoch, [config(0)])
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        others = [quorum.append(epoch, [config(number)]) for number in range(1, 50)]
        await asyncio.gather(first, *others)

        assert syncs == [f"{LOG_DIRECTORY}/00000000000000000000.log"] * 2


@on_a_loop
async def test_nothing_is_committed_before_it_is_synced() -> None:
    disk = new_disk()
    listener = Recorder()
    quorum = new_quorum(disk, listener)
    await quorum.open()
    task = asyncio.get_running_loop().create_task(quorum.run())
    epoch = await elected(listener, task)

    disk.fail(LOG_DIRECTORY, ["sync"])
    done = quorum.append(epoch, [config(1)])

    with pytest.raises(OSError, match=r"data") as caught:
        await task
    assert caught.value.errno == errno.EIO
    with pytest.raises(QuorumClosed):
        await done
    with pytest.raises(QuorumClosed):
        quorum.append(epoch, [config(2)])
    assert listener.records == []
    await quorum.close()


@on_a_loop
async def test_a_full_disk_refuses_records_and_takes_them_when_it_has_room() -> None:
    disk = new_disk()
    listener = Recorder()
    quorum = new_quorum(disk, listener)
    await quorum.open()
    task = asyncio.get_running_loop().create_task(quorum.run())
    epoch = await elected(listener, task)

    disk.fail(LOG_DIRECTORY, ["write"], errno=errno.ENOSPC)

    with pytest.raises(NoRoom, match=r"the disk of .* is full"):
        quorum.append(epoch, [config(1)])
    await quorum.append(epoch, [config(2)])

    assert not task.done()
    assert listener.records[-1] == config(2)
    assert config(1) not in listener.records
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await quorum.close()


@on_a_loop
async def test_an_unwritable_quorum_state_prevents_an_election() -> None:
    disk = new_disk()
    listener = Recorder()
    quorum = new_quorum(disk, listener)
    await quorum.open()

    disk.fail(LOG_DIRECTORY, ["rename"])

    with pytest.raises(OSError, match=r"data"):
        # The timeout fails the test if the quorum continues.
        await asyncio.wait_for(quorum.run(), 10)
    assert listener.story == []
    await quorum.close()


@on_a_loop
async def test_a_listener_that_raises_ends_the_quorum() -> None:
    class Broken(Recorder):
        def leader_changed(self, leader: int | None, epoch: int) -> None:
            raise ValueError("not me")

    quorum = new_quorum(new_disk(), Broken())
    await quorum.open()

    with pytest.raises(ValueError, match="not me"):
        await quorum.run()
    await quorum.close()


@on_a_loop
async def test_a_batch_that_is_too_large_is_refused_and_leaves_no_trace() -> None:
    listener = Recorder()
    quorum = new_quorum(new_disk(), listener)

    async with running(quorum, listener) as epoch:
        with pytest.raises(RecordsTooLarge, match=f"the limit is {BATCH_BYTES_MAX}"):
            quorum.append(epoch, bulk(BATCH_BYTES_MAX + 100_000))
        assert await quorum.append(epoch, [config(2)]) == 1

    assert listener.records == [config(2)]


@on_a_loop
async def test_uncommitted_appends_are_limited() -> None:
    listener = Recorder()
    quorum = new_quorum(new_disk(), listener, executor=SlowExecutor())

    async with running(quorum, listener) as epoch:
        records = bulk(BATCH_BYTES_MAX)
        waiting = [quorum.append(epoch, records) for _ in range(10)]
        with pytest.raises(TooMuchUncommitted, match=f"the limit is {UNCOMMITTED_BYTES_MAX}"):
            quorum.append(epoch, records)
        await asyncio.gather(*waiting)
        await quorum.append(epoch, records)


@on_a_loop
async def test_uncommitted_appends_fail_at_the_stop() -> None:
    listener = Recorder()
    quorum = new_quorum(new_disk(), listener, executor=SlowExecutor())
    await quorum.open()
    task = asyncio.get_running_loop().create_task(quorum.run())
    epoch = await elected(listener, task)

    done = quorum.append(epoch, [config(1)])
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    await quorum.close()

    with pytest.raises(QuorumClosed):
        await done


@on_a_loop
async def test_the_description_has_the_leader_and_its_log() -> None:
    clock = ManualClock(5_000)
    listener = Recorder()
    quorum = new_quorum(new_disk(), listener, clock=clock)

    async with running(quorum, listener) as epoch:
        await quorum.append(epoch, [config(1)])
        clock.advance(10)
        told = quorum.describe()

    assert (told.leader, told.epoch, told.high_watermark, told.observers) == (1, 1, 2, ())
    (voter,) = told.voters
    assert (voter.id, voter.end_offset, voter.last_fetch_ms, voter.last_caught_up_ms) == (1, 2, 5_010, 5_010)


# Snapshots


@on_a_loop
async def test_a_restart_loads_the_newest_snapshot_and_later_records() -> None:
    disk = new_disk()
    before = Recorder()
    quorum = new_quorum(disk, before)
    async with running(quorum, before) as epoch:
        await quorum.append(epoch, [config(1)])
        await quorum.write_snapshot(quorum.delivered, [config(1)])
        await quorum.append(epoch, [config(2)])

    after = Recorder()
    async with running(new_quorum(disk, after), after):
        pass

    assert after.story == [
        "snapshot 2-1: 1",
        "batch 2-2 epoch 1",
        "batch 3-3 epoch 2",
        "leader 1 epoch 2",
    ]
    assert after.records == [config(1), config(2)]


@on_a_loop
async def test_a_snapshot_of_uncommitted_offsets_or_another_epoch_is_rejected() -> None:
    listener = Recorder()
    quorum = new_quorum(new_disk(), listener)

    async with running(quorum, listener) as epoch:
        await quorum.append(epoch, [config(1)])
        with pytest.raises(BadSnapshotId, match="committed up to 2"):
            await quorum.write_snapshot(OffsetAndEpoch(3, 1), [])
        with pytest.raises(BadSnapshotId, match="has epoch 1"):
            await quorum.write_snapshot(OffsetAndEpoch(2, 7), [])


@on_a_loop
async def test_bytes_since_the_last_snapshot_are_counted() -> None:
    clock = ManualClock(0)
    listener = Recorder()
    quorum = new_quorum(new_disk(), listener, clock=clock)

    async with running(quorum, listener) as epoch:
        await quorum.append(epoch, [config(1)])
        clock.advance(700)
        assert quorum.bytes_since_snapshot == sum(batch.size for batch in listener.batches)
        assert quorum.ms_since_snapshot == 700
        await quorum.write_snapshot(quorum.delivered, [config(1)])
        assert (quorum.bytes_since_snapshot, quorum.ms_since_snapshot) == (0, 0)


SMALL = QuorumSettings(log_segment_bytes=1024 * 1024, max_retention_bytes=2 * 1024 * 1024)


@on_a_loop
async def test_old_snapshots_and_earlier_log_segments_are_deleted_above_the_limit() -> None:
    disk = new_disk()
    listener = Recorder()
    quorum = new_quorum(disk, listener, settings=SMALL)

    async with running(quorum, listener) as epoch:
        for number in range(8):
            await quorum.append(epoch, bulk(400_000))
            await quorum.write_snapshot(quorum.delivered, [config(number)])
        assert quorum.log_start_offset > 0
        kept = [name for name in disk.tree() if name.endswith(".checkpoint")]
        assert 1 < len(kept) < 8
    assert disk.used < 4 * 1024 * 1024

    after = Recorder()
    async with running(new_quorum(disk, after, settings=SMALL), after):
        pass
    assert after.records == [config(7)]


# Damage on the disk


@on_a_loop
async def test_damage_in_flushed_data_is_not_truncated() -> None:
    disk = new_disk()
    listener = Recorder()
    quorum = new_quorum(disk, listener)
    async with running(quorum, listener) as epoch:
        for number in range(3):
            await quorum.append(epoch, [config(number)])

    # The length of the second batch.
    disk.rot(f"{LOG_DIRECTORY}/00000000000000000000.log", at=91 + 10, mask=0x40)

    with pytest.raises(MetadataUnreadable, match=r"0\.log is damaged at byte 91: .*restore"):
        await new_quorum(disk, Recorder()).open()


@on_a_loop
async def test_an_unflushed_torn_batch_before_a_whole_one_is_truncated() -> None:
    disk = new_disk()
    listener = Recorder()
    quorum = new_quorum(disk, listener)
    await quorum.open()
    task = asyncio.get_running_loop().create_task(quorum.run())
    epoch = await elected(listener, task)
    await asyncio.gather(quorum.append(epoch, [config(1)]), quorum.append(epoch, [config(2)]))
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task

    # Inside the first batch after the leader change. The log was not closed, so this may be a torn write.
    disk.rot(f"{LOG_DIRECTORY}/00000000000000000000.log", at=91 + 65, mask=0x40)

    after = Recorder()
    async with running(new_quorum(disk, after), after) as epoch:
        assert epoch == 2
    assert after.records == []


@on_a_loop
async def test_a_quorum_that_was_never_opened_can_be_closed() -> None:
    await new_quorum(new_disk(), Recorder()).close()
