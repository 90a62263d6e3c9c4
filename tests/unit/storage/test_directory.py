"""A log directory: opened by one broker, formatted once, and consistent after a power loss at any time."""

from collections.abc import Callable, Mapping
from errno import EACCES
from pathlib import Path
from random import Random

import pytest

from barnabas.base.ids import TopicPartition, Uuid, parse_uuid
from barnabas.sim.disk import PowerLoss, SimDisk
from barnabas.storage.directory.clean_shutdown import CleanShutdown
from barnabas.storage.directory.log_directory import Contents, DirectoryInUse, LogDirectory, open_directory
from barnabas.storage.directory.meta_properties import MetaProperties, WrongDirectory
from barnabas.storage.directory.partitions import DirectoryKind, PartitionDirectory, aside_name, classify
from barnabas.storage.disk import DiskFileSystem
from barnabas.storage.errors import CorruptFile, DirectoryOffline
from barnabas.storage.files import FileSystem
from support.kafka.sample import sample_files

ID = Uuid(b"an id of 16 byte")
OTHER_ID = Uuid(b"another 16 bytes")
PATH = "/mnt/disk/data"
SEEDS = range(12)
OLD = {TopicPartition("orders", 0): 5, TopicPartition("orders", 1): 6}
NEW = {TopicPartition("orders", 0): 9, TopicPartition("payments", 0): 1}


def opened(fs: FileSystem, path: str = PATH, *, node_id: int = 1, new_id: Uuid = ID) -> LogDirectory:
    return open_directory(fs, path, cluster_id="cluster", node_id=node_id, new_id=new_id, now_ms=0)


def test_a_new_directory_is_made_and_gets_its_id(tmp_path: Path) -> None:
    path = f"{tmp_path}/not/there/yet"

    directory = opened(DiskFileSystem(), path)

    assert directory.id == ID
    assert directory.meta == MetaProperties(cluster_id="cluster", node_id=1, directory_id=ID)
    assert directory.clean is None
    assert directory.checkpoints.recovery_points == {}
    assert sorted(entry.name for entry in Path(path).iterdir()) == [
        ".lock",
        "meta.properties",
        "recovery-point-offset-checkpoint",
    ]
    directory.close()


def test_the_id_stays_when_it_is_opened_again(tmp_path: Path) -> None:
    opened(DiskFileSystem(), str(tmp_path)).close()

    directory = opened(DiskFileSystem(), str(tmp_path), new_id=OTHER_ID)

    assert directory.id == ID
    directory.close()


def test_a_directory_of_kafka_is_opened(tmp_path: Path) -> None:
    for path, content in sample_files().items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(content)

    directory = open_directory(
        DiskFileSystem(), str(tmp_path), cluster_id="8UFBlDBzRM2WGJual5ztlg", node_id=1, new_id=ID, now_ms=0
    )

    assert directory.id == parse_uuid("evhWL3MMohnNdi6Ihb2JTw")
    assert directory.clean == CleanShutdown(broker_epoch=12)
    assert len(directory.checkpoints.recovery_points) == 13
    assert directory.checkpoints.start_offsets == {TopicPartition("trimmed", 0): 20}
    assert directory.checkpoints.high_watermarks[TopicPartition("rolled", 0)] == 9000
    assert directory.checkpoints.cleaner_offsets == {TopicPartition("compacted", 0): 1213}
    contents = directory.contents()
    assert contents.strangers == ()
    assert [found.name for found in contents.partitions] == sorted(
        {path.split("/")[0] for path in sample_files() if "/" in path}
    )
    assert {found.kind for found in contents.partitions} == {DirectoryKind.LOG}
    directory.close()


def test_only_one_broker_has_a_directory(tmp_path: Path) -> None:
    first = opened(DiskFileSystem(), str(tmp_path))

    with pytest.raises(DirectoryInUse, match=r"is in use: another broker has locked \.lock"):
        opened(DiskFileSystem(), str(tmp_path))

    first.close()
    opened(DiskFileSystem(), str(tmp_path)).close()


def test_a_directory_of_another_node_is_refused_and_not_kept_locked() -> None:
    disk = SimDisk(Random(0))
    opened(disk).close()

    with pytest.raises(WrongDirectory, match="belongs to node 1, not to node 2"):
        opened(disk, node_id=2)

    opened(disk).close()


def test_partitions_of_an_unknown_owner_are_rejected(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()

    with pytest.raises(WrongDirectory, match=r"holds orders-0, but no meta\.properties"):
        opened(DiskFileSystem(), str(tmp_path))

    assert not (tmp_path / "meta.properties").exists()


def test_a_directory_without_an_id_gets_one_and_keeps_the_rest(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=1\ncluster.id=cluster\nnode.id=1\nmore=x\n")

    opened(DiskFileSystem(), str(tmp_path)).close()
    directory = opened(DiskFileSystem(), str(tmp_path), new_id=OTHER_ID)

    assert directory.id == ID
    assert directory.meta.unknown == (("more", "x"),)
    directory.close()


def test_a_rotten_identity_is_refused(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_bytes(b"version=1\nnode.id=x\ncluster.id=cluster\n")

    with pytest.raises(CorruptFile, match=r"meta\.properties"):
        opened(DiskFileSystem(), str(tmp_path))


def test_a_damaged_checkpoint_is_reported_and_ignored(tmp_path: Path) -> None:
    opened(DiskFileSystem(), str(tmp_path)).close()
    (tmp_path / "recovery-point-offset-checkpoint").write_bytes(b"rotten")
    (tmp_path / "log-start-offset-checkpoint").write_bytes(b"0\n1\norders 0 5\n")

    directory = opened(DiskFileSystem(), str(tmp_path))

    assert directory.checkpoints.recovery_points == {}
    assert not directory.checkpoints.recovery_points_known
    assert directory.checkpoints.start_offsets == {TopicPartition("orders", 0): 5}
    assert [problem.path for problem in directory.checkpoints.problems] == [
        f"{tmp_path}/recovery-point-offset-checkpoint"
    ]
    directory.close()


def test_entries_are_classified_by_name(tmp_path: Path) -> None:
    names = ["orders-0", "a-b-12", "orders-1.0123abcd-delete", "orders-2.5-future", "orders-3.6-stray"]
    strange = [
        "lost+found",
        "orders",
        "orders-01",
        "orders-4-delete",
        "orders-5.-delete",
        "orders-4294967296",
    ]
    directory = opened(DiskFileSystem(), str(tmp_path))
    for name in [*names, *strange]:
        (tmp_path / name).mkdir()
    (tmp_path / "orders-9").write_text("a file")
    (tmp_path / "notes.txt").write_text("a file")
    (tmp_path / "meta.properties.tmp").write_text("left by a crash")

    contents = directory.contents()

    assert contents == Contents(
        partitions=(
            PartitionDirectory("a-b-12", TopicPartition("a-b", 12), DirectoryKind.LOG),
            PartitionDirectory("orders-0", TopicPartition("orders", 0), DirectoryKind.LOG),
            PartitionDirectory("orders-1.0123abcd-delete", TopicPartition("orders", 1), DirectoryKind.DELETE),
            PartitionDirectory("orders-2.5-future", TopicPartition("orders", 2), DirectoryKind.FUTURE),
            PartitionDirectory("orders-3.6-stray", TopicPartition("orders", 3), DirectoryKind.STRAY),
        ),
        strangers=tuple(sorted([*strange, "orders-9", "notes.txt"])),
    )
    assert all((tmp_path / name).exists() for name in contents.strangers)
    directory.close()


@pytest.mark.parametrize("kind", [DirectoryKind.DELETE, DirectoryKind.FUTURE, DirectoryKind.STRAY])
def test_a_renamed_directory_can_be_classified(kind: DirectoryKind) -> None:
    name = aside_name(TopicPartition("a.b-c", 7), kind, "0123456789abcdef0123456789abcdef")

    assert name == f"a.b-c-7.0123456789abcdef0123456789abcdef{kind.value}"
    assert classify(name) == PartitionDirectory(name, TopicPartition("a.b-c", 7), kind)


def test_a_name_aside_is_not_longer_than_a_file_system_allows() -> None:
    name = aside_name(TopicPartition("t" * 249, 7), DirectoryKind.DELETE, "0123456789abcdef0123456789abcdef")

    assert len(name) == 255
    found = classify(name)
    assert found is not None
    assert found.tp.partition == 7


def test_a_failed_directory_stays_offline_and_is_reported_once() -> None:
    directory = opened(SimDisk(Random(0)))
    told: list[str | None] = []
    directory.on_failure(lambda failed: told.append(failed.offline))
    directory.check()

    directory.fail(OSError(5, "Input/output error"))
    directory.fail("another reason")

    assert told == ["[Errno 5] Input/output error"]
    with pytest.raises(DirectoryOffline, match=r"/mnt/disk/data is offline: \[Errno 5\]"):
        directory.check()
    with pytest.raises(DirectoryOffline):
        directory.mark_clean(3)


def test_a_late_failure_callback_is_called_at_once() -> None:
    directory = opened(SimDisk(Random(0)))
    directory.fail("why not")
    told: list[str | None] = []

    directory.on_failure(lambda failed: told.append(failed.offline))

    assert told == ["why not"]


def test_a_callback_that_fails_the_directory_again_does_no_harm() -> None:
    directory = opened(SimDisk(Random(0)))
    told: list[str] = []
    directory.on_failure(lambda failed: failed.fail("again"))
    directory.on_failure(lambda failed: told.append("second"))

    directory.fail("first")

    assert directory.offline == "first"
    assert told == ["second"]


def test_an_error_of_the_disk_is_not_hidden() -> None:
    disk = SimDisk(Random(0))
    directory = opened(disk)
    disk.fail(PATH, {"rename"})

    with pytest.raises(OSError, match="error"):
        directory.write_recovery_points(OLD)


class WatchedDisk(SimDisk):
    """Records the synced directories, and the entries of ours at that time."""

    def __init__(self) -> None:
        super().__init__(Random(0))
        self.synced: list[tuple[str, bool]] = []

    def sync_directory(self, path: str) -> None:
        super().sync_directory(path)
        self.synced.append((path, f"{PATH}/meta.properties" in self.tree()))


def test_parents_of_a_new_directory_are_synced_before_it_is_formatted() -> None:
    disk = WatchedDisk()

    opened(disk).close()

    assert disk.synced == [("/mnt/disk", False), ("/mnt", False), ("/", False), (PATH, False), (PATH, True)]


def test_an_unreadable_parent_directory_is_skipped() -> None:
    disk = SimDisk(Random(0))
    disk.fail("/mnt/disk", {"sync_directory"}, errno=EACCES)

    assert opened(disk).id == ID


# Power loss. Every test runs once to count the operations, and then loses power at each of them.


def crash_at_each_operation(
    prepare: Callable[[SimDisk], None],
    work: Callable[[SimDisk], None],
    check: Callable[[SimDisk, bool, str], None],
) -> None:
    """`check` gets the disk after the loss, whether the work was done, and a text to identify the case."""
    trial = SimDisk(Random(0))
    prepare(trial)
    before = trial.operations
    work(trial)
    operations = trial.operations - before
    assert operations > 0
    for at in range(1, operations + 2):
        for seed in SEEDS:
            disk = SimDisk(Random(seed))
            prepare(disk)
            disk.crash_after(at)
            done = True
            try:
                work(disk)
            except PowerLoss:
                done = False
            assert done is (at == operations + 1), f"power loss at {at} of {operations}"
            lost = disk.crash(Random(seed))
            check(disk, done, f"power loss at {at} of {operations}, seed {seed}: {lost}")


def nothing(disk: SimDisk) -> None:
    """The disk is empty."""


def test_formatting_survives_power_loss_at_every_operation() -> None:
    def check(disk: SimDisk, done: bool, case: str) -> None:
        directory = opened(disk, new_id=OTHER_ID)

        assert directory.id == ID if done else directory.id in (ID, OTHER_ID), case
        again = disk.crash()
        assert opened(disk, new_id=Uuid(b"never used, ever")).id == directory.id, f"{case}; {again}"

    crash_at_each_operation(nothing, lambda disk: opened(disk).close(), check)


WRITERS: dict[str, Callable[[LogDirectory, Mapping[TopicPartition, int]], None]] = {
    "recovery_points": LogDirectory.write_recovery_points,
    "start_offsets": LogDirectory.write_start_offsets,
    "high_watermarks": LogDirectory.write_high_watermarks,
    "cleaner_offsets": LogDirectory.write_cleaner_offsets,
}


def write(disk: SimDisk, name: str, offsets: Mapping[TopicPartition, int]) -> None:
    directory = opened(disk)
    WRITERS[name](directory, offsets)
    directory.close()


@pytest.mark.parametrize("name", WRITERS)
def test_a_checkpoint_is_the_old_or_the_new_one_after_power_loss(name: str) -> None:
    def check(disk: SimDisk, done: bool, case: str) -> None:
        checkpoints = opened(disk).checkpoints

        assert checkpoints.problems == (), case
        found = getattr(checkpoints, name)
        assert found == NEW if done else found in (OLD, NEW), case

    crash_at_each_operation(lambda disk: write(disk, name, OLD), lambda disk: write(disk, name, NEW), check)


@pytest.mark.parametrize("name", WRITERS)
def test_a_first_checkpoint_is_complete_or_missing_after_power_loss(name: str) -> None:
    def check(disk: SimDisk, done: bool, case: str) -> None:
        checkpoints = opened(disk).checkpoints

        assert checkpoints.problems == (), case
        found = getattr(checkpoints, name)
        assert found == NEW if done else found in ({}, NEW), case

    crash_at_each_operation(lambda disk: opened(disk).close(), lambda disk: write(disk, name, NEW), check)


def stop_cleanly(disk: SimDisk) -> None:
    directory = opened(disk)
    directory.mark_clean(7)
    directory.close()


def start(disk: SimDisk) -> None:
    directory = opened(disk)
    directory.mark_in_use()
    directory.close()


def test_a_clean_shutdown_survives_a_power_loss() -> None:
    def check(disk: SimDisk, done: bool, case: str) -> None:
        clean = opened(disk).clean

        assert clean == CleanShutdown(7) if done else clean in (None, CleanShutdown(7)), case

    crash_at_each_operation(lambda disk: opened(disk).close(), stop_cleanly, check)


def test_a_started_directory_never_looks_cleanly_stopped() -> None:
    def check(disk: SimDisk, done: bool, case: str) -> None:
        clean = opened(disk).clean

        assert clean is None if done else clean in (None, CleanShutdown(7)), case

    crash_at_each_operation(stop_cleanly, start, check)


def test_a_marker_removed_by_a_crashed_process_stays_removed() -> None:
    for seed in SEEDS:
        disk = SimDisk(Random(seed))
        stop_cleanly(disk)
        disk.remove(f"{PATH}/.kafka_cleanshutdown")

        start(disk)
        lost = disk.crash()

        assert opened(disk).clean is None, lost
