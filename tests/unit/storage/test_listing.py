"""Listing a log's directory by file names."""

import pytest

from barnabas.storage.listing import SegmentFiles, list_log
from support.log.logs import DIRECTORY, new_disk, path_of

KINDS = (".log", ".index", ".timeindex")


def test_an_empty_directory_has_nothing() -> None:
    found = list_log(new_disk(), DIRECTORY)

    assert (found.segments, found.snapshots, found.orphans, found.others) == ({}, [], [], [])
    assert not found.unfinished


def test_segments_are_sorted_by_offset() -> None:
    disk = new_disk()
    for base in (100, 7, 30):
        for kind, size in zip(KINDS, (base, 8, 12), strict=True):
            disk.open(path_of(base, kind), create=True).truncate(size)
    disk.open(path_of(30, ".txnindex"), create=True)

    found = list_log(disk, DIRECTORY)

    assert list(found.segments) == [7, 30, 100]
    assert found.segments[30] == SegmentFiles(
        log_size=30, index_size=8, time_index_size=12, modified_ms=0, has_txn_index=True
    )
    assert not found.segments[7].has_txn_index


def test_snapshots_are_known_by_their_offsets() -> None:
    disk = new_disk()
    for offset in (5, 900):
        disk.open(path_of(offset, ".snapshot"), create=True)

    assert list_log(disk, DIRECTORY).snapshots == [5, 900]


def test_an_index_without_a_log_is_an_orphan() -> None:
    disk = new_disk()
    disk.open(path_of(0, ".log"), create=True)
    for kind in (".index", ".timeindex", ".txnindex"):
        disk.open(path_of(40, kind), create=True)
    disk.open(path_of(0, ".index"), create=True)

    found = list_log(disk, DIRECTORY)

    assert list(found.segments) == [0]
    assert found.orphans == [f"00000000000000000040{kind}" for kind in (".index", ".timeindex", ".txnindex")]


@pytest.mark.parametrize("suffix", [".cleaned", ".swap", ".deleted"])
def test_interrupted_swaps_and_deletions_are_to_be_finished(suffix: str) -> None:
    disk = new_disk()
    disk.open(path_of(40, ".log") + suffix, create=True)

    found = list_log(disk, DIRECTORY)

    assert found.unfinished
    assert (found.segments, found.orphans, found.others) == ({}, [], [])


@pytest.mark.parametrize(
    "name",
    [
        "leader-epoch-checkpoint",
        "partition.metadata",
        "notes.txt",
        "0.log",
        "00000000000000000007.log.bak",
        "0000000000000000000x.log",
        "00000000000000000007log",
        "000000000000000000070.log",
    ],
)
def test_other_names_are_ignored(name: str) -> None:
    disk = new_disk()
    disk.open(f"{DIRECTORY}/{name}", create=True)

    found = list_log(disk, DIRECTORY)

    assert found.others == [name]
    assert (found.segments, found.orphans, found.unfinished) == ({}, [], False)


def test_a_directory_with_the_name_of_a_segment_is_none() -> None:
    disk = new_disk()
    disk.make_directory(path_of(0, ".log"))

    found = list_log(disk, DIRECTORY)

    assert (found.segments, found.others) == ({}, ["00000000000000000000.log"])


@pytest.mark.parametrize(
    ("sizes", "plausible"),
    [
        ((100, 8, 12), True),
        ((100, 0, 12), True),
        ((0, 0, 0), True),
        ((100, 0, 0), False),
        ((100, 7, 12), False),
        ((100, 8, 13), False),
        ((100, -1, 12), False),
        ((100, 8, -1), False),
    ],
)
def test_indexes_are_plausible_with_whole_entries_and_a_timestamp(
    sizes: tuple[int, int, int], plausible: bool
) -> None:
    log_size, index_size, time_index_size = sizes
    files = SegmentFiles(log_size=log_size, index_size=index_size, time_index_size=time_index_size)

    assert files.has_plausible_indexes is plausible


@pytest.mark.parametrize(
    "name",
    [
        "leader-epoch-checkpoint.tmp",
        "00000000000000000007.index.rebuilt",
        "00000000000000000007.snapshot.tmp",
    ],
)
def test_unfinished_files_are_listed_separately(name: str) -> None:
    disk = new_disk()
    disk.open(f"{DIRECTORY}/{name}", create=True)

    found = list_log(disk, DIRECTORY)

    assert (found.leftovers, found.others, found.orphans) == ([name], [], [])
