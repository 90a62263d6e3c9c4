from functools import cache
from random import Random

import pytest

from barnabas.records.control import ControlType
from barnabas.records.decode import decode_batch
from barnabas.records.header import batch_headers
from barnabas.sim.disk import PowerLoss, SimDisk
from barnabas.storage.cleaner.job import Cleaning
from barnabas.storage.cleaner.swap import finish_swaps, publish, retire, settle
from barnabas.storage.errors import CorruptLog
from barnabas.storage.names import CLEANED, DELETED, LOG, SEGMENT_FILES, SWAP, file_name
from barnabas.storage.segment.txn_index import AbortedTxn
from support.log.compaction import (
    DIRECTORY,
    Setup,
    bases,
    marker,
    new_disk,
    simple_batch,
    swap_in,
    write_segment,
)

pytestmark = pytest.mark.kernel

SEEDS = range(24)
TXN = AbortedTxn(7, 0, 3, 4)


def path(base_offset: int, kind: str = LOG) -> str:
    return f"{DIRECTORY}/{file_name(base_offset, kind)}"


def make_log(seed: int = 0) -> SimDisk:
    """Two groups of two segments, the second one without remaining records, and one more segment."""
    disk = new_disk(seed)
    abort = marker(ControlType.ABORT, base_offset=3, producer_id=7)
    write_segment(disk, 0, [simple_batch(0, (b"a", b"0"), (b"b", b"1"))])
    write_segment(disk, 2, [simple_batch(2, (b"c", b"2")), abort], [TXN])
    write_segment(disk, 4, [simple_batch(4, (b"b", b"4"), (b"x", b"5"))])
    write_segment(disk, 6, [simple_batch(6, (b"y", b"6"), (b"y", b"7"))])
    write_segment(
        disk,
        8,
        [simple_batch(8, (b"a", b"8" * 200), (b"c", b"9"), (b"x", b"10"), (b"x", b"11"), (b"y", b"12"))],
    )
    return disk


def cleaning_of(disk: SimDisk) -> Cleaning:
    cleaning = Cleaning(disk, Setup(upper_bound=13, aborted=[TXN], group_bytes=300).facts(disk))
    cleaning.fill_map()
    assert [[one.base_offset for one in group] for group in cleaning.groups] == [[0, 2], [4, 6], [8]]
    return cleaning


def run(disk: SimDisk) -> None:
    cleaning = cleaning_of(disk)
    for number in range(2):
        group = cleaning.clean_group(number)
        swap_in(disk, group)


def contents(disk: SimDisk) -> dict[str, bytes]:
    return {name: disk.read(name) for name in disk.tree() if not name.endswith(DELETED)}


@cache
def states() -> list[dict[str, bytes]]:
    """The possible states: before the run, and after each group."""
    disk = make_log()
    found = [contents(disk)]
    cleaning = cleaning_of(disk)
    for number in range(2):
        group = cleaning.clean_group(number)
        swap_in(disk, group)
        found.append(contents(disk))
    return found


def test_old_segments_are_replaced_by_the_new_one() -> None:
    disk = make_log()
    group = cleaning_of(disk).clean_group(0)

    left = swap_in(disk, group)

    assert bases(disk) == [0, 4, 6, 8]
    assert all(name.endswith(DELETED) for name in left)
    assert sorted(left) == [name for name in disk.tree() if name.endswith(DELETED)]
    assert path(2) + DELETED in left
    # The aborted transaction has no data any more, so readers need not know of it.
    assert not [name for name in disk.tree() if "txnindex" in name and not name.endswith(DELETED)]


def test_a_swap_that_is_done_leaves_nothing_to_finish_but_old_files() -> None:
    disk = make_log()
    run(disk)
    after = contents(disk)

    assert finish_swaps(disk, DIRECTORY) == []

    assert contents(disk) == after
    assert not [name for name in disk.tree() if name.endswith(DELETED)]


def test_an_unpublished_swap_is_undone() -> None:
    disk = make_log()
    cleaning_of(disk).clean_group(0)

    said = finish_swaps(disk, DIRECTORY)

    assert contents(disk) == states()[0]
    assert said[0] == f"{path(0, '.index')}{CLEANED}: removed, compaction was interrupted"


def test_a_published_swap_is_finished() -> None:
    disk = make_log()
    cleaning_of(disk).clean_group(0)
    publish(disk, DIRECTORY, 0)

    said = finish_swaps(disk, DIRECTORY)

    assert contents(disk) == states()[1]
    assert f"{path(2)}: removed, replaced by compaction" in said
    assert said[-1] == f"{path(0)}: interrupted compaction completed"


def test_indexes_that_are_left_over_get_their_names() -> None:
    disk = make_log()
    group = cleaning_of(disk).clean_group(0)
    publish(disk, DIRECTORY, 0)
    retire(disk, DIRECTORY, 0, group.replaces)
    disk.rename(path(0) + SWAP, path(0))

    finish_swaps(disk, DIRECTORY)

    assert contents(disk) == states()[1]


def test_a_published_swap_before_an_unpublished_one_is_finished() -> None:
    disk = make_log()
    cleaning = cleaning_of(disk)
    cleaning.clean_group(0)
    cleaning.clean_group(1)
    publish(disk, DIRECTORY, 0)

    finish_swaps(disk, DIRECTORY)

    assert contents(disk) == states()[1]


def test_a_damaged_published_log_is_reported() -> None:
    disk = make_log()
    cleaning_of(disk).clean_group(0)
    publish(disk, DIRECTORY, 0)
    disk.rot(path(0) + SWAP, 16, 1)

    with pytest.raises(CorruptLog, match=r"log\.swap is damaged at byte 0"):
        finish_swaps(disk, DIRECTORY)

    assert bases(disk) == [0, 2, 4, 6, 8]


def test_unknown_files_are_left_untouched() -> None:
    disk = make_log()
    strangers = ["notes.swap", "00000000000000000000-0000000001.checkpoint.deleted", "partition.metadata"]
    for name in strangers:
        disk.open(f"{DIRECTORY}/{name}", create=True).close()

    assert finish_swaps(disk, DIRECTORY) == []

    assert set(strangers) <= {entry.name for entry in disk.entries(DIRECTORY)}


def test_a_snapshot_is_removed_with_its_segment() -> None:
    for step in ("live", "opening"):
        disk = make_log()
        for base in (0, 2, 4):
            disk.open(path(base, ".snapshot"), create=True).close()
        group = cleaning_of(disk).clean_group(0)
        publish(disk, DIRECTORY, 0)
        if step == "live":
            retire(disk, DIRECTORY, 0, group.replaces)
            settle(disk, DIRECTORY, 0)
        finish_swaps(disk, DIRECTORY)

        left = [name for name in disk.tree() if "snapshot" in name]
        assert left == [path(0, ".snapshot"), path(4, ".snapshot")], step


# Power loss


def operations(disk: SimDisk) -> int:
    before = disk.operations
    run(disk)
    return disk.operations - before


def is_sound(disk: SimDisk) -> None:
    found = contents(disk)
    assert found in states(), f"{sorted(found)} is neither before nor after a group"
    assert all(name.endswith(SEGMENT_FILES) for name in disk.tree())


def cut_off(cut: int) -> SimDisk:
    """The disk of a run that lost power at the nth operation, before the crash() that decides the loss."""
    disk = make_log(cut)
    disk.crash_after(cut)
    with pytest.raises(PowerLoss):
        run(disk)
    return disk


def crashed(disk: SimDisk, seed: int) -> SimDisk:
    other = disk.branch(Random(seed))
    other.crash()
    return other


CUTS = range(1, operations(make_log()) + 1)


@pytest.mark.parametrize("cut", CUTS)
def test_power_lost_at_any_operation_leaves_all_old_or_all_new(cut: int) -> None:
    disk = cut_off(cut)
    for seed in SEEDS:
        opened = crashed(disk, seed)

        finish_swaps(opened, DIRECTORY)

        is_sound(opened)
        # Finished groups stay finished.
        after = contents(opened)
        opened.crash()
        finish_swaps(opened, DIRECTORY)
        assert contents(opened) == after


@pytest.mark.parametrize("cut", CUTS)
def test_power_lost_again_while_finishing_changes_nothing(cut: int) -> None:
    disk = cut_off(cut)
    for seed in range(3):
        opened = crashed(disk, seed)
        for again in range(1, finishing_operations(opened) + 1):
            finishing = opened.branch(Random(again))
            finishing.crash_after(again)
            with pytest.raises(PowerLoss):
                finish_swaps(finishing, DIRECTORY)
            for twice in range(3):
                other = crashed(finishing, 1000 * cut + 10 * again + twice)

                finish_swaps(other, DIRECTORY)

                is_sound(other)


def finishing_operations(disk: SimDisk) -> int:
    other = disk.branch(Random(0))
    finish_swaps(other, DIRECTORY)
    return other.operations


def test_the_compared_states_differ() -> None:
    """There is one more state than groups, and all have the same last values."""
    assert len({repr(sorted(state.items())) for state in states()}) == len(states()) == 3
    for state in states():
        last: dict[bytes | None, bytes | None] = {}
        for name in sorted(state):
            if not name.endswith(LOG):
                continue
            for at, header in batch_headers(state[name]):
                if not header.is_control:
                    last.update((record.key, record.value) for record in decode_batch(state[name], at))
        assert last == {b"a": b"8" * 200, b"b": b"4", b"c": b"9", b"x": b"11", b"y": b"12"}
