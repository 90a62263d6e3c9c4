"""The state of an opened log: its start, producers, transactions and leader epochs."""

import pytest

from barnabas.sim.disk import SimDisk
from barnabas.storage.epochs import EpochStart
from barnabas.storage.errors import CorruptLog
from barnabas.storage.log import Log
from barnabas.storage.recovery import Opened
from barnabas.storage.segment.txn_index import AbortedTxn
from support.log.logs import (
    DIRECTORY,
    NOW,
    end_txn,
    files_of,
    fill,
    new_disk,
    new_log,
    offsets,
    open_again,
    path_of,
    put,
    send,
    shut,
)

pytestmark = pytest.mark.kernel

P, Q = 4000, 5000
EPOCHS = f"{DIRECTORY}/leader-epoch-checkpoint"


def filled(count: int = 6, **values: int) -> tuple[SimDisk, int]:
    """A closed log of three segments with two batches each, and its end offset."""
    disk = new_disk()
    log = new_log(disk, **(values or {"segment_bytes": 500, "index_interval_bytes": 100}))
    fill(log, count, step=10)
    return disk, shut(log)


def reopened(disk: SimDisk, point: int | None = 0, *, clean: bool = False, start: int = 0) -> Opened:
    return open_again(
        disk, clean=clean, recovery_point=point, start=start, segment_bytes=500, index_interval_bytes=100
    )


def add(disk: SimDisk, path: str, data: bytes) -> None:
    """Append bytes to a file."""
    file = disk.open(path, create=True)
    file.write(file.size(), [data])
    file.sync()


# The start


def test_a_log_starts_where_the_checkpoint_says() -> None:
    disk, end = filled()

    log = reopened(disk, end, clean=True, start=3).log

    assert (log.start_offset, log.high_watermark, offsets(log)) == (3, 3, [3, 4, 5])
    assert log.epochs.entries() == [EpochStart(0, 3)]


def test_a_start_before_the_first_segment_is_where_that_begins() -> None:
    disk, end = filled()
    for kind in (".log", ".index", ".timeindex"):
        disk.remove(path_of(0, kind))

    assert reopened(disk, end, clean=True, start=1).log.start_offset == 2


@pytest.mark.parametrize("clean", [False, True])
def test_a_log_that_ends_before_its_start_is_refused(clean: bool) -> None:
    disk, end = filled()

    with pytest.raises(CorruptLog, match="log start offset 50 is above the log end offset 6"):
        reopened(disk, end, clean=clean, start=50)


# Producers, transactions, epochs


def transactional() -> tuple[SimDisk, Log]:
    """Producers and transactions over three segments: one aborted, one committed, one open."""
    disk = new_disk()
    log = new_log(disk)
    send(log, P, 0, b"a", txn=True)
    log.roll(NOW)
    send(log, Q, 0, b"b", b"c", txn=True)
    end_txn(log, P, abort=True)
    log.roll(NOW)
    end_txn(log, Q, abort=False)
    send(log, P, 1, b"d", txn=True)
    return disk, log


@pytest.mark.parametrize("without", [(), (".snapshot",), (".snapshot", ".index", ".timeindex", ".txnindex")])
@pytest.mark.parametrize("point", [0, 3, 6])
def test_producers_and_transactions_are_recovered(point: int, without: tuple[str, ...]) -> None:
    disk, log = transactional()
    shut(log)
    for name in files_of(disk):
        if name.endswith(without) and without:
            disk.remove(f"{DIRECTORY}/{name}")

    again = open_again(disk, recovery_point=point).log
    again.set_high_watermark(6)

    assert again.producers.entries() == log.producers.entries()
    assert again.aborted_in(0, 6) == [AbortedTxn(P, 0, 3, 1)]
    assert (again.last_stable_offset, again.end_offset) == (5, 6)
    assert send(again, P, 1, txn=True).duplicate
    end_txn(again, P, abort=True)
    assert again.aborted_in(4, 7) == [AbortedTxn(P, 5, 6, 7)]


@pytest.mark.parametrize("clean", [False, True])
@pytest.mark.parametrize("offset", [3, 6])
def test_an_implausible_snapshot_is_ignored(offset: int, clean: bool) -> None:
    disk, log = transactional()
    end = shut(log)
    names = [at for at in log.snapshots if at >= offset]
    disk.rot(path_of(names[0], ".snapshot"), 12, 0x01)

    again = open_again(disk, clean=clean, recovery_point=end).log

    assert again.producers.entries() == log.producers.entries()


def test_snapshots_of_recovered_segments_are_rewritten() -> None:
    disk, log = transactional()
    shut(log)
    before = files_of(disk)
    disk.rot(path_of(4, ".snapshot"), 12, 0x01)

    shut(open_again(disk, recovery_point=0).log)

    assert files_of(disk) == before


def test_an_implausible_aborted_index_is_rebuilt() -> None:
    disk, log = transactional()
    end = shut(log)
    before = files_of(disk)
    disk.rot(path_of(1, ".txnindex"), 1, 0x01)

    opened = open_again(disk, clean=True, recovery_point=end)

    assert opened.log.aborted_in(0, 6) == [AbortedTxn(P, 0, 3, 1)]
    assert any("rebuilt" in finding for finding in opened.findings)
    assert files_of(disk)["00000000000000000001.txnindex"] == before["00000000000000000001.txnindex"]


def test_a_snapshot_of_truncated_batches_is_removed() -> None:
    disk, log = transactional()
    shut(log)
    disk.rot(path_of(4, ".log"), 30, 0x01)

    again = open_again(disk, recovery_point=4).log

    assert again.end_offset == 4
    assert path_of(6, ".snapshot") not in disk.tree()
    assert again.snapshots == [1, 4]


def with_epochs() -> tuple[SimDisk, int]:
    """Epoch 1 at offset 0, epoch 2 from offset 2 on over two segments, epoch 5 at offset 6."""
    disk = new_disk()
    log = new_log(disk)
    for number, epoch in enumerate([1, 1, 2, 2, 2, 2, 5]):
        if number == 4:
            log.roll(NOW)
        put(log, epoch=epoch)
    return disk, shut(log)


@pytest.mark.parametrize("content", [None, b"garbage", b"0\n1\n", b"7\n0\n"])
def test_epochs_are_read_from_the_batches_if_the_file_is_damaged(content: bytes | None) -> None:
    disk, end = with_epochs()
    disk.remove(EPOCHS)
    if content is not None:
        add(disk, EPOCHS, content)

    log = open_again(disk, clean=True, recovery_point=end).log

    assert log.epochs.entries() == [EpochStart(1, 0), EpochStart(2, 2), EpochStart(5, 6)]
    assert disk.read(EPOCHS) == b"0\n3\n1 0\n2 2\n5 6\n"


def test_an_empty_file_of_epochs_is_good() -> None:
    disk, end = with_epochs()
    disk.open(EPOCHS).truncate(0)

    # Kafka creates the file before the first epoch.
    assert open_again(disk, clean=True, recovery_point=end).log.epochs.entries() == []


@pytest.mark.parametrize("point", [5, 7])
def test_recovery_does_not_forget_where_an_epoch_began(point: int) -> None:
    disk, _ = with_epochs()

    log = open_again(disk, recovery_point=point).log

    assert log.epochs.entries() == [EpochStart(1, 0), EpochStart(2, 2), EpochStart(5, 6)]


def test_epochs_of_truncated_batches_are_removed() -> None:
    disk, _ = with_epochs()
    size = disk.tree()[path_of(4, ".log")]
    disk.open(path_of(4, ".log")).truncate(size - 1)

    log = open_again(disk, recovery_point=4).log

    assert log.end_offset == 6
    assert log.epochs.latest == 2
