"""Isolation of failures: a broken log, a failed directory, a full disk."""

from errno import EMFILE, ENFILE, ENOENT, ENOMEM, ENOSPC
from traceback import walk_tb

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.storage.directory.log_directory import DirectoryInUse
from barnabas.storage.directory.meta_properties import WrongDirectory
from barnabas.storage.errors import (
    CorruptFile,
    CorruptLog,
    DirectoryOffline,
    DiskFull,
    LogClosed,
    LogExists,
    LogFailed,
    Shortage,
)
from support.log.managers import (
    CHECKPOINTS,
    CONFIG,
    T0,
    T1,
    T2,
    TOPIC_ID,
    A,
    B,
    append,
    in_service,
    manager_on,
    new_disk,
    on_a_loop,
    opened,
    with_logs,
    write,
)

pytestmark = pytest.mark.kernel


# Broken logs


@on_a_loop
async def test_a_broken_log_is_offline_and_the_others_are_not() -> None:
    disk = new_disk()
    await (await with_logs(disk, t0=A, t1=A, t2=B)).close()
    disk.rot(f"{A}/t-0/00000000000000000000.log", 100, 1 << 4)
    disk.remove(f"{A}/.kafka_cleanshutdown")
    disk.rot(f"{A}/t-0/00000000000000000000.log", 16, 1)

    report = await (manager := manager_on(disk)).open()

    assert (report.loaded, list(report.broken)) == (2, [T0])
    with pytest.raises(CorruptLog, match=r"/mnt/a/t-0/0{20}\.log is damaged at byte 0"):
        manager.get(T0)
    with pytest.raises(LogExists):
        await manager.create(T0, TOPIC_ID, CONFIG)
    for tp in (T1, T2):
        append(in_service(manager, tp))
    await manager.close()


@on_a_loop
async def test_checkpoint_rows_of_a_broken_log_are_kept_for_its_repair() -> None:
    disk = new_disk()
    manager = await with_logs(disk, t0=A, t1=A)
    for tp in (T0, T1):
        in_service(manager, tp).advance_high_watermark(3)
        in_service(manager, tp).advance_start(2)
    await manager.close()
    before = {name: disk.read(f"{A}/{name}") for name in CHECKPOINTS}
    disk.rot(f"{A}/t-0/partition.metadata", 0, 0x80)

    again = await opened(disk)
    with pytest.raises(CorruptFile):
        again.get(T0)
    await again.close()

    for name in CHECKPOINTS:
        assert sorted(disk.read(f"{A}/{name}").split()) == sorted(before[name].split()), name


@pytest.mark.parametrize("name", ["leader-epoch-checkpoint", "partition.metadata", "0" * 20 + ".index"])
@on_a_loop
async def test_a_directory_in_the_place_of_a_logs_file_breaks_that_log_only(name: str) -> None:
    disk = new_disk()
    await (await with_logs(disk, t0=A, t1=A)).close()
    disk.remove(f"{A}/t-0/{name}")
    disk.make_directory(f"{A}/t-0/{name}")

    report = await (manager := manager_on(disk)).open()

    assert report.failed == {}
    assert in_service(manager, T1).end_offset == 3
    with pytest.raises(CorruptFile, match=f"/mnt/a/t-0/{name}"):
        manager.get(T0)


# Directories that fail


@on_a_loop
async def test_a_directory_that_cannot_be_opened_is_left_out() -> None:
    disk = new_disk()
    await (await with_logs(disk, t0=A, t1=B)).close()
    disk.fail(f"{A}/.lock", ["lock"])

    report = await (manager := manager_on(disk)).open()

    assert report.failed == {A: f"[Errno 5] Input/output error: '{A}/.lock'"}
    assert in_service(manager, T1).end_offset == 3


@on_a_loop
async def test_a_directory_with_a_rotten_identity_is_left_out() -> None:
    disk = new_disk()
    await (await with_logs(disk, t0=A, t1=B)).close()
    write(disk, f"{A}/meta.properties", b"version=1\nnode.id=x\ncluster.id=c\n")

    report = await (manager := manager_on(disk)).open()

    assert list(report.failed) == [A]
    assert report.failed[A].startswith(f"{A}/meta.properties: node.id is 'x', expected 0 to 2147483647; ")
    assert in_service(manager, T1).end_offset == 3


@on_a_loop
async def test_no_directory_at_all_is_an_error() -> None:
    disk = new_disk()
    disk.fail("/", ["lock"], count=2)

    with pytest.raises(DirectoryOffline, match="/mnt/a, /mnt/b is offline: no log directory could be opened"):
        await manager_on(disk).open()


@on_a_loop
async def test_a_directory_of_another_node_is_refused_and_none_is_kept_locked() -> None:
    disk = new_disk()
    await (await opened(disk, A)).close()
    other = manager_on(disk, B, node_id=2)
    await other.open()
    await other.close()

    with pytest.raises(WrongDirectory, match="belongs to node 2, not to node 1"):
        await manager_on(disk, A, B).open()

    await (await opened(disk, A)).close()


@on_a_loop
async def test_a_directory_that_another_broker_has_is_refused() -> None:
    disk = new_disk()
    first = await opened(disk, B)

    with pytest.raises(DirectoryInUse, match=B):
        await manager_on(disk, A, B).open()

    await (await opened(disk, A)).close()
    await first.close()


@pytest.mark.parametrize("kind", ["read", "open", "entries"])
@on_a_loop
async def test_a_disk_failure_during_loading_takes_all_its_logs_offline(kind: str) -> None:
    disk = new_disk()
    await (await with_logs(disk, t0=A, t1=A, t2=B)).close()
    disk.fail(f"{A}/t-1", [kind])  # type: ignore[list-item]

    report = await (manager := manager_on(disk)).open()

    assert list(report.failed) == [A]
    for tp in (T0, T1):
        with pytest.raises(DirectoryOffline, match=r"/mnt/a is offline: \[Errno 5\] .*/mnt/a/t-1"):
            manager.get(tp)
        # No empty log may be created elsewhere while the real one is offline.
        with pytest.raises(LogExists):
            await manager.create(tp, TOPIC_ID, CONFIG)
    assert in_service(manager, T2).end_offset == 3
    await manager.close()


@on_a_loop
async def test_a_failed_directory_takes_only_its_own_logs_offline() -> None:
    disk = new_disk()
    manager = await with_logs(disk, t0=A, t1=A, t2=B)
    log = in_service(manager, T0)
    told: list[str] = []
    manager.home(log).on_failure(lambda directory: told.append(directory.path))
    disk.fail(f"{A}/t-0", ["sync"])

    with pytest.raises(DirectoryOffline, match=r"/mnt/a is offline: \[Errno 5\] .*\.log"):
        await manager.flush(log)

    assert told == [A]
    assert log.recovery_point == 0
    for tp in (T0, T1):
        with pytest.raises(DirectoryOffline, match=r"/mnt/a is offline: \[Errno 5\]"):
            manager.get(tp)
    with pytest.raises(DirectoryOffline, match=r"/mnt/a is offline: \[Errno 5\]"):
        append(log)
    append(in_service(manager, T2))
    assert (await manager.create(TopicPartition("u", 0), TOPIC_ID, CONFIG)).directory == f"{B}/u-0"
    with pytest.raises(DirectoryOffline):
        await manager.write_checkpoints(manager.home(log))
    await manager.close()
    assert f"{A}/.kafka_cleanshutdown" not in disk.tree()
    assert f"{B}/.kafka_cleanshutdown" in disk.tree()


@on_a_loop
async def test_a_full_disk_is_not_a_failed_one() -> None:
    disk = new_disk()
    manager = await with_logs(disk, t0=A)
    log = in_service(manager, T0)
    disk.capacity = disk.used

    assert isinstance(manager.failed(log, OSError(ENOSPC, "full")), DiskFull)
    with pytest.raises(DiskFull, match=f"the disk of log directory {A} is full"):
        await manager.write_checkpoints(manager.home(log))

    disk.capacity = None
    assert manager.get(T0) is log
    await manager.flush(log)
    await manager.write_checkpoints(manager.home(log))
    assert disk.read(f"{A}/{CHECKPOINTS[0]}") == b"0\n1\nt 0 3\n"


@on_a_loop
@pytest.mark.parametrize("shortage", [EMFILE, ENFILE, ENOMEM])
async def test_a_lack_of_descriptors_or_memory_is_not_a_failed_disk(shortage: int) -> None:
    disk = new_disk()
    manager = await with_logs(disk, t0=A)
    log = in_service(manager, T0)
    disk.fail(f"{A}/{CHECKPOINTS[0]}", ["create"], errno=shortage)

    assert isinstance(manager.failed(log, OSError(shortage, "none left")), Shortage)
    with pytest.raises(Shortage, match=A):
        await manager.write_checkpoints(manager.home(log))

    assert manager.home(log).offline is None
    await manager.flush(log)
    await manager.write_checkpoints(manager.home(log))
    assert disk.read(f"{A}/{CHECKPOINTS[0]}") == b"0\n1\nt 0 3\n"


@on_a_loop
async def test_a_log_is_created_when_there_are_descriptors_again() -> None:
    disk = new_disk()
    manager = await opened(disk)
    disk.fail(A, ["create"], count=3, errno=EMFILE)

    log = await manager.create(T0, TOPIC_ID, CONFIG, path=A)

    assert manager.get(T0) is log
    assert manager.home(log).offline is None


@on_a_loop
async def test_a_start_without_descriptors_fails_and_blames_no_disk() -> None:
    disk = new_disk()
    await (await with_logs(disk, t0=A)).close()
    disk.fail(f"{A}/t-0", ["open"], errno=EMFILE)

    with pytest.raises(Shortage, match=A):
        await opened(disk)


@on_a_loop
async def test_an_unfinished_truncation_fails_the_directory_even_on_a_full_disk() -> None:
    disk = new_disk()
    manager = await with_logs(disk, t0=A)
    log = in_service(manager, T0)
    disk.fail(f"{A}/t-0/leader-epoch-checkpoint", ["create"], errno=ENOSPC)

    with pytest.raises(DirectoryOffline, match="No space left"):
        await manager.truncate(log, 1)

    # Truncated batches could reappear after new ones.
    with pytest.raises(DirectoryOffline):
        append(log)


@on_a_loop
async def test_an_error_in_files_of_a_deleted_log_is_no_disk_failure() -> None:
    disk = new_disk()
    manager = await with_logs(disk, t0=A)
    old = in_service(manager, T0)
    await manager.delete(T0)

    assert isinstance(manager.failed(old, OSError(ENOENT, "gone")), LogClosed)
    await manager.create(T0, TOPIC_ID, CONFIG, path=A)
    assert isinstance(manager.failed(old, OSError(ENOENT, "gone")), LogClosed)
    with pytest.raises(LogClosed):
        await manager.flush(old)

    assert in_service(manager, T0).end_offset == 0


# Memory


def frames_of(error: BaseException) -> int:
    return sum(1 for _ in walk_tb(error.__traceback__))


@on_a_loop
async def test_an_error_that_is_raised_repeatedly_does_not_grow() -> None:
    """The same error object is raised each time, and must not collect the frames of earlier raises."""
    manager = await with_logs(new_disk(), t0=A, t1=A)
    log = in_service(manager, T0)
    manager.failed(log, FileNotFoundError(ENOENT, "no such file", log.active.path(".log")))

    counts = set()
    for _ in range(50):
        with pytest.raises(LogFailed, match="no such file") as told:
            append(log)
        counts.add(frames_of(told.value))

    assert max(counts) < 20
    append(in_service(manager, T1))


@on_a_loop
async def test_a_deleted_log_is_in_no_reference_cycle() -> None:
    manager = await with_logs(new_disk(), t0=A)
    log = in_service(manager, T0)
    await manager.delete(T0)

    with pytest.raises(LogClosed):
        append(log)

    assert log.closed_by is None
