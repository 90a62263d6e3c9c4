"""The aborted transactions of a segment, on a real disk."""

from pathlib import Path, PurePath

import pytest

from barnabas.storage.disk import DiskFileSystem
from barnabas.storage.errors import CorruptFile
from barnabas.storage.files import File
from barnabas.storage.segment.txn_index import (
    ENTRY_SIZE,
    AbortedTxn,
    aborted_in,
    append_entry,
    pack_entry,
    read_entries,
    truncate_entries,
)
from support.kafka.sample import sample_files
from support.log.producer_logs import replay

pytestmark = pytest.mark.kernel

INDEXES = [name for name in sample_files() if name.endswith(".txnindex")]
# Two that overlap, and one after them.
FIRST = AbortedTxn(4, first_offset=1, last_offset=7, last_stable_offset=5)
SECOND = AbortedTxn(3, first_offset=5, last_offset=14, last_stable_offset=15)
THIRD = AbortedTxn(3, first_offset=24, last_offset=30, last_stable_offset=31)
ALL = [FIRST, SECOND, THIRD]


@pytest.fixture
def file(tmp_path: Path) -> File:
    return DiskFileSystem().open(f"{tmp_path}/00000000000000000000.txnindex", create=True)


def fill(file: File, entries: list[AbortedTxn]) -> None:
    for entry in entries:
        append_entry(file, entry)


@pytest.mark.parametrize("name", INDEXES)
def test_replaying_kafkas_logs_makes_kafkas_indexes(name: str) -> None:
    log = sample_files()[str(PurePath(name).with_suffix(".log"))]

    _, aborted = replay(log, upto=2**62)

    assert b"".join(pack_entry(txn) for txn in aborted) == sample_files()[name]


def test_logs_without_aborted_transactions_have_no_index() -> None:
    with_aborted = [
        name for name, data in sample_files().items() if name.endswith(".log") and replay(data, 2**62)[1]
    ]

    assert [str(PurePath(name).with_suffix(".txnindex")) for name in with_aborted] == INDEXES


@pytest.mark.parametrize("name", INDEXES)
def test_kafkas_indexes_are_read_and_written_as_they_were(file: File, name: str) -> None:
    data = sample_files()[name]
    file.write(0, [data])

    entries = read_entries(file, 0)

    assert len(entries) == len(data) // ENTRY_SIZE
    assert b"".join(pack_entry(txn) for txn in entries) == data


def test_entries_are_read_in_the_order_in_which_they_were_appended(file: File) -> None:
    assert read_entries(file, 0) == []

    fill(file, ALL)

    assert read_entries(file, 0) == ALL


def test_an_index_of_many_pieces_is_read_whole(file: File) -> None:
    many = [AbortedTxn(1, 2 * n, 2 * n + 1, 2 * n + 2) for n in range(2500)]
    file.write(0, [pack_entry(txn) for txn in many])

    assert read_entries(file, 0) == many


def test_a_torn_entry_is_refused_and_written_over(file: File) -> None:
    fill(file, [FIRST])
    file.write(ENTRY_SIZE, [b"\0" * (ENTRY_SIZE - 1)])
    with pytest.raises(CorruptFile, match="33 bytes follow"):
        read_entries(file, 0)

    append_entry(file, SECOND)

    assert read_entries(file, 0) == [FIRST, SECOND]


@pytest.mark.parametrize(
    "entry",
    [
        THIRD._replace(producer_id=-1),
        THIRD._replace(first_offset=-1),
        THIRD._replace(first_offset=30),
        THIRD._replace(last_offset=14, first_offset=3),
        THIRD._replace(last_stable_offset=-1),
    ],
)
def test_an_entry_that_cannot_be_is_refused(file: File, entry: AbortedTxn) -> None:
    fill(file, [FIRST, SECOND, entry])

    with pytest.raises(CorruptFile, match="entry 2"):
        read_entries(file, 0)


def test_an_entry_of_another_version_is_refused(file: File) -> None:
    file.write(0, [b"\0\1" + pack_entry(FIRST)[2:]])

    with pytest.raises(CorruptFile, match="version is 1, expected 0"):
        read_entries(file, 0)


def test_a_marker_before_the_segment_is_refused(file: File) -> None:
    fill(file, [FIRST])

    assert read_entries(file, 7) == [FIRST]
    with pytest.raises(CorruptFile, match="above 7"):
        read_entries(file, 8)


@pytest.mark.parametrize(("offset", "left"), [(31, 3), (30, 2), (15, 2), (14, 1), (7, 0), (0, 0)])
def test_truncating_removes_the_markers_from_there_on(file: File, offset: int, left: int) -> None:
    fill(file, ALL)
    file.write(3 * ENTRY_SIZE, [b"torn"])

    truncate_entries(file, 0, offset)

    assert read_entries(file, 0) == ALL[:left]


@pytest.mark.parametrize(
    ("from_offset", "upto_offset", "found", "complete"),
    [
        (0, 1, [], True),
        (0, 5, [FIRST], True),
        (0, 6, [FIRST, SECOND], True),
        (7, 15, [FIRST, SECOND], True),
        (8, 15, [SECOND], True),
        (15, 24, [], True),
        (15, 25, [THIRD], True),
        (0, 31, ALL, True),
        (0, 32, ALL, False),
        (31, 40, [], False),
    ],
)
def test_a_reader_gets_the_aborted_transactions_in_its_range(
    from_offset: int, upto_offset: int, found: list[AbortedTxn], complete: bool
) -> None:
    assert aborted_in(ALL, from_offset, upto_offset) == (found, complete)


def test_without_entries_the_search_continues_in_the_next_segment() -> None:
    assert aborted_in([], 0, 10) == ([], False)
