"""All logs of a broker: open, create, find, delete and close."""

import asyncio
from errno import EIO

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.storage.errors import DirectoryOffline, DiskFull, LogClosed, LogExists
from barnabas.storage.loading import Progress
from support.clocks import ManualClock
from support.log.managers import (
    CONFIG,
    T0,
    T1,
    T2,
    TOPIC_ID,
    A,
    B,
    SlowExecutor,
    append,
    copy_tree,
    in_service,
    manager_on,
    new_disk,
    on_a_loop,
    opened,
    with_logs,
    write,
)

pytestmark = pytest.mark.kernel


# Creating and finding


@on_a_loop
async def test_a_log_is_made_found_and_there_again_after_a_clean_stop() -> None:
    disk = new_disk()
    manager = await opened(disk)
    log = await manager.create(T0, TOPIC_ID, CONFIG)
    append(log, 3)
    log.advance_high_watermark(2)
    assert manager.get(T0) is log
    await manager.close()

    report = await (again := manager_on(disk)).open()

    assert (report.loaded, report.findings, report.broken, report.failed) == (1, [], {}, {})
    found = in_service(again, T0)
    assert (found.end_offset, found.high_watermark, found.topic_id) == (3, 2, TOPIC_ID)


@on_a_loop
async def test_a_partition_that_is_not_here_is_none() -> None:
    assert (await opened(new_disk())).get(T0) is None


@on_a_loop
async def test_a_new_log_is_created_in_the_given_or_emptiest_directory() -> None:
    manager = await with_logs(new_disk(), t0=A)

    second = await manager.create(T1, TOPIC_ID, CONFIG)
    third = await manager.create(T2, TOPIC_ID, CONFIG, path=B)

    assert second.directory == f"{B}/t-1"
    assert third.directory == f"{B}/t-2"
    with pytest.raises(DirectoryOffline, match="/mnt/none"):
        await manager.create(TopicPartition("u", 0), TOPIC_ID, CONFIG, path="/mnt/none")


@on_a_loop
async def test_a_log_is_not_made_twice_even_at_the_same_moment() -> None:
    manager = manager_on(new_disk(), executor=SlowExecutor())
    await manager.open()

    both = await asyncio.gather(
        manager.create(T0, TOPIC_ID, CONFIG, path=A),
        manager.create(T0, TOPIC_ID, CONFIG, path=B),
        return_exceptions=True,
    )

    assert manager.get(T0) is both[0]
    assert isinstance(both[1], LogExists)
    assert str(both[1]) == "partition t-0 has a log in /mnt/a and another in /mnt/b"
    assert "/mnt/b/t-0" not in {path.rpartition("/")[0] for path in manager.fs.tree()}  # type: ignore[attr-defined]


@on_a_loop
async def test_listeners_are_called_for_every_log() -> None:
    disk = new_disk()
    manager = await with_logs(disk, t0=A)
    await manager.close()
    again = manager_on(disk)
    seen: list[TopicPartition] = []
    again.on_log.append(lambda log: seen.append(log.tp))

    await again.open()
    await again.create(T1, TOPIC_ID, CONFIG)

    assert seen == [T0, T1]


@on_a_loop
async def test_a_log_that_does_not_fit_on_the_disk_is_not_made_in_part() -> None:
    disk = new_disk()
    manager = await opened(disk)
    disk.capacity = disk.used + 10

    with pytest.raises(DiskFull, match=A):
        await manager.create(T0, TOPIC_ID, CONFIG, path=A)
    disk.capacity = None
    await manager.create(T0, TOPIC_ID, CONFIG, path=B)
    await manager.close()

    # Leftovers in the other directory would be opened as a second log.
    assert in_service(await opened(disk), T0).directory == f"{B}/t-0"


# Loading


@on_a_loop
async def test_many_logs_are_recovered_in_parallel_with_progress_reports() -> None:
    disk = new_disk()
    manager = await opened(disk, A)
    for number in range(150):
        await manager.create(TopicPartition("many", number), TOPIC_ID, CONFIG)
    disk.crash()
    executor = SlowExecutor()
    progress: list[Progress] = []

    report = await manager_on(disk, A, executor=executor, loads_at_once=2).open(progress.append)

    assert report.loaded == 150
    assert executor.most == 2
    assert [one.loaded for one in progress] == [64, 128, 150]
    assert {(one.directory, one.total) for one in progress} == {(A, 150)}


@on_a_loop
async def test_two_directories_with_a_log_of_one_partition_are_refused() -> None:
    for broken in ((), (A,), (B,), (A, B)):
        disk = new_disk()
        await (await with_logs(disk, t0=A)).close()
        copy_tree(disk, f"{A}/t-0", f"{B}/t-0")
        for path in broken:
            disk.rot(f"{path}/t-0/partition.metadata", 0, 0x80)

        with pytest.raises(LogExists, match=r"t-0 has a log in /mnt/a and another in /mnt/b"):
            await manager_on(disk).open()


@on_a_loop
async def test_unknown_entries_are_reported_and_left_untouched() -> None:
    disk = new_disk()
    await (await with_logs(disk, t0=A)).close()
    write(disk, f"{A}/notes.txt", b"mine")
    disk.make_directory(f"{A}/lost+found")

    report = await manager_on(disk).open()

    assert report.findings == [
        f"{A}/{name}: unknown entry, left untouched" for name in ("lost+found", "notes.txt")
    ]
    assert disk.read(f"{A}/notes.txt") == b"mine"


# Checkpoints, stopping and starting


@on_a_loop
async def test_checkpoints_are_written_and_read_back_after_a_power_loss() -> None:
    disk = new_disk()
    manager = await with_logs(disk, t0=A)
    log = in_service(manager, T0)
    await manager.flush(log)
    log.advance_high_watermark(3)
    log.advance_start(1)
    append(log)
    await manager.write_checkpoints(manager.home(log))
    disk.crash()

    again = await opened(disk)

    known = again.directories[0].checkpoints
    assert known.recovery_points == {T0: 3}
    assert known.start_offsets == {T0: 1}
    assert known.high_watermarks == {T0: 3}
    found = in_service(again, T0)
    assert (found.start_offset, found.high_watermark) == (1, 3)
    assert found.end_offset in (3, 4)


@pytest.mark.parametrize(
    "crashes_before", [False, True], ids=["deleted in this life", "deleted before a crash"]
)
@on_a_loop
async def test_a_recreated_log_has_nothing_of_the_deleted_one(crashes_before: bool) -> None:
    disk = new_disk()
    manager = await with_logs(disk, t0=A)
    old = in_service(manager, T0)
    await manager.flush(old)
    old.advance_high_watermark(3)
    old.advance_start(2)
    manager.clean_offsets[T0] = 2
    await manager.write_checkpoints(manager.home(old))
    await manager.write_clean_offsets(manager.home(old))
    await manager.delete(T0)
    if crashes_before:
        disk.crash()
        manager = await opened(disk)
    new = await manager.create(T0, TOPIC_ID, CONFIG)
    append(new)
    await manager.flush(new)
    disk.crash()

    again = await opened(disk)

    known = again.directories[0].checkpoints
    assert not any(
        T0 in rows
        for rows in (
            known.recovery_points,
            known.start_offsets,
            known.high_watermarks,
            known.cleaner_offsets,
        )
    )
    found = in_service(again, T0)
    assert (found.start_offset, found.end_offset) == (0, 1)


@on_a_loop
async def test_only_a_clean_stop_counts_as_one_and_only_once() -> None:
    disk = new_disk()
    manager = await with_logs(disk, t0=A)
    await manager.close(broker_epoch=7)

    second = await opened(disk)
    disk.crash()
    third = await opened(disk)

    clean = second.directories[0].clean
    assert clean is not None
    assert clean.broker_epoch == 7
    assert third.directories[0].clean is None
    assert in_service(third, T0).end_offset == 3


@on_a_loop
async def test_a_stop_that_could_not_write_everything_is_not_a_clean_one() -> None:
    disk = new_disk()
    manager = await with_logs(disk, t0=A, t1=B)
    disk.capacity = disk.used

    await manager.close()

    disk.capacity = None
    again = await opened(disk)
    assert [directory.clean for directory in again.directories] == [None, None]
    assert in_service(again, T0).end_offset == 3


@on_a_loop
async def test_a_log_is_closed_when_its_broker_is() -> None:
    manager = await with_logs(new_disk(), t0=A)
    log = in_service(manager, T0)
    await manager.close()

    with pytest.raises(LogClosed):
        append(log)
    assert manager.get(T0) is None


# Deleting


@on_a_loop
async def test_a_deleted_log_is_gone_at_once_and_its_files_after_a_while() -> None:
    disk = new_disk()
    manager = await with_logs(disk, t0=A, t1=A)
    log = in_service(manager, T0)
    held = log.read(0, upto=3, bytes_max=1000)

    await manager.delete(T0)

    assert manager.get(T0) is None
    assert len(held.read()) == held.size
    with pytest.raises(LogClosed):
        append(log)
    fresh = await manager.create(T0, TOPIC_ID, CONFIG, path=A)
    assert fresh.end_offset == 0
    aside = [entry.name for entry in disk.entries(A) if entry.name.endswith("-delete")]
    assert len(aside) == 1
    await manager.remove_doomed()
    assert disk.entries(f"{A}/{aside[0]}")
    assert isinstance(manager.clock, ManualClock)
    manager.clock.advance(60_000)
    await manager.remove_doomed()
    assert [entry.name for entry in disk.entries(A) if entry.is_directory] == ["t-0", "t-1"]


@on_a_loop
async def test_an_interrupted_deletion_is_finished_by_the_next_start() -> None:
    disk = new_disk()
    manager = await with_logs(disk, t0=A)
    await manager.delete(T0)
    disk.crash()

    again = await opened(disk)
    await again.remove_doomed()

    assert again.get(T0) is None
    assert [entry.name for entry in disk.entries(A) if entry.is_directory] == []


@on_a_loop
async def test_a_log_is_not_recreated_before_the_old_one_is_renamed() -> None:
    disk = new_disk()
    manager = manager_on(disk, A, executor=SlowExecutor())
    await manager.open()
    append(await manager.create(T0, TOPIC_ID, CONFIG), 3)

    deletion = asyncio.create_task(manager.delete(T0))
    await asyncio.sleep(0)
    with pytest.raises(LogExists):
        await manager.create(T0, TOPIC_ID, CONFIG)
    assert manager.get(T0) is None
    await deletion

    assert (await manager.create(T0, TOPIC_ID, CONFIG)).end_offset == 0


@on_a_loop
async def test_a_deletion_waits_for_a_flush_that_has_begun() -> None:
    disk = new_disk()
    executor = SlowExecutor()
    manager = manager_on(disk, A, executor=executor)
    await manager.open()
    log = await manager.create(T0, TOPIC_ID, CONFIG)
    append(log, 3)

    executor.turns = 50
    flushing = asyncio.create_task(manager.flush(log))
    await asyncio.sleep(0)
    executor.turns = 5
    await manager.delete(T0)
    await flushing

    assert manager.directories[0].offline is None
    assert not [path for path in disk.tree() if path.startswith(f"{A}/t-0/")]


@on_a_loop
async def test_a_broken_log_can_be_deleted_and_recreated() -> None:
    disk = new_disk()
    await (await with_logs(disk, t0=A)).close()
    disk.rot(f"{A}/t-0/partition.metadata", 0, 0x80)
    manager = await opened(disk)

    await manager.delete(T0)

    assert (await manager.create(T0, TOPIC_ID, CONFIG)).end_offset == 0


@on_a_loop
async def test_a_deletion_that_the_disk_refuses_fails_the_directory() -> None:
    disk = new_disk()
    manager = await with_logs(disk, t0=A, t1=A)
    disk.fail(A, ["rename"], errno=EIO)

    with pytest.raises(DirectoryOffline, match=A):
        await manager.delete(T0)

    with pytest.raises(DirectoryOffline):
        manager.get(T1)


@on_a_loop
async def test_a_log_that_was_never_written_to_opens_without_findings() -> None:
    disk = new_disk()
    manager = await opened(disk, A)
    await manager.create(T0, TOPIC_ID, CONFIG)
    await manager.close()

    report = await manager_on(disk, A).open()

    assert (report.loaded, report.findings) == (1, [])
