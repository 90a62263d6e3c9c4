"""Leader epochs of one log, and their checkpoint file."""

import pytest

from barnabas.storage.epochs import LeaderEpochs
from barnabas.storage.errors import CorruptFile
from support.kafka.sample import sample_files

CHECKPOINTS = [name for name in sample_files() if name.endswith("leader-epoch-checkpoint")]


def epochs(*pairs: tuple[int, int]) -> LeaderEpochs:
    made = LeaderEpochs()
    for epoch, start_offset in pairs:
        made.assign(epoch, start_offset)
    return made


def test_a_log_without_batches_has_no_epoch() -> None:
    empty = LeaderEpochs()

    assert empty.latest is None
    assert len(empty) == 0
    assert empty.epoch_for(0) is None
    assert empty.end_offset_for(0, 100) == (-1, -1)
    assert not empty.truncate_from_end(0)
    assert not empty.truncate_from_start(50)


def test_a_new_epoch_is_news_and_the_same_one_is_not() -> None:
    known = LeaderEpochs()

    assert known.assign(2, 10)
    assert not known.assign(2, 10)
    assert not known.assign(2, 15)
    assert known.assign(3, 15)
    assert known.entries() == [(2, 10), (3, 15)]
    assert known.latest == 3


def test_the_latest_epoch_may_turn_out_to_start_earlier() -> None:
    known = epochs((1, 0), (2, 10))

    assert known.assign(2, 8)

    assert known.entries() == [(1, 0), (2, 8)]


@pytest.mark.parametrize(
    ("epoch", "start_offset", "left"),
    [
        (5, 20, [(1, 0), (2, 10), (5, 20)]),
        (5, 15, [(1, 0), (2, 10), (5, 15)]),
        (5, 5, [(1, 0), (5, 5)]),
        (5, 0, [(5, 0)]),
        (2, 30, [(1, 0), (2, 30)]),
        (1, 30, [(1, 30)]),
        (0, 30, [(0, 30)]),
    ],
)
def test_a_new_entry_removes_those_that_contradict_it(
    epoch: int, start_offset: int, left: list[tuple[int, int]]
) -> None:
    known = epochs((1, 0), (2, 10), (4, 20))

    assert known.assign(epoch, start_offset)

    assert known.entries() == left


@pytest.mark.parametrize(
    ("epoch", "answer"),
    [(-1, (-1, -1)), (0, (0, 5)), (2, (2, 10)), (3, (2, 10)), (4, (4, 20)), (6, (6, 99)), (7, (-1, -1))],
    ids=[
        "undefined",
        "before the first: it ends where that starts",
        "known",
        "between two: the one before",
        "known, the last but one",
        "the latest: it ends where the log does",
        "not yet heard of",
    ],
)
def test_the_end_of_an_epoch(epoch: int, answer: tuple[int, int]) -> None:
    known = epochs((2, 5), (4, 10), (6, 20))

    assert known.end_offset_for(epoch, 99) == answer


def test_the_epoch_of_an_offset() -> None:
    known = epochs((2, 5), (4, 10))

    assert [known.epoch_for(offset) for offset in (4, 5, 9, 10, 1000)] == [None, 2, 2, 4, 4]


@pytest.mark.parametrize(
    ("offset", "left"),
    [(21, [(2, 5), (4, 10), (6, 20)]), (20, [(2, 5), (4, 10)]), (11, [(2, 5), (4, 10)]), (5, []), (0, [])],
)
def test_truncating_the_end_removes_entries_that_start_there(
    offset: int, left: list[tuple[int, int]]
) -> None:
    known = epochs((2, 5), (4, 10), (6, 20))

    changed = known.truncate_from_end(offset)

    assert known.entries() == left
    assert changed == (len(left) < 3)


@pytest.mark.parametrize(
    ("offset", "left"),
    [
        (4, [(2, 5), (4, 10), (6, 20)]),
        (5, [(2, 5), (4, 10), (6, 20)]),
        (7, [(2, 7), (4, 10), (6, 20)]),
        (10, [(4, 10), (6, 20)]),
        (15, [(4, 15), (6, 20)]),
        (30, [(6, 30)]),
    ],
)
def test_truncating_the_start_moves_the_epoch_there(offset: int, left: list[tuple[int, int]]) -> None:
    known = epochs((2, 5), (4, 10), (6, 20))

    changed = known.truncate_from_start(offset)

    assert known.entries() == left
    assert changed == (offset > 5)


def test_clearing_forgets_everything() -> None:
    known = epochs((2, 5))

    known.clear()

    assert known.to_text() == b"0\n0\n"


def test_a_negative_epoch_fails_an_assertion() -> None:
    with pytest.raises(AssertionError):
        LeaderEpochs().assign(-1, 0)


# The file


def test_the_file_is_text_in_lines() -> None:
    known = epochs((2, 5), (4, 10))

    assert known.to_text() == b"0\n2\n2 5\n4 10\n"
    assert LeaderEpochs.from_text(known.to_text(), "x").entries() == known.entries()


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_kafkas_files_are_written_back_as_they_were(name: str) -> None:
    data = sample_files()[name]

    known = LeaderEpochs.from_text(data, name)

    assert len(known) == 1
    assert known.to_text() == data


def test_a_file_that_kafka_has_only_made_has_no_entries() -> None:
    assert len(LeaderEpochs.from_text(b"", "x")) == 0


@pytest.mark.parametrize(
    "data",
    [
        b"0",
        b"0\n",
        b"0\n1\n",
        b"0\n1\n0 0",
        b"1\n1\n0 0\n",
        b"0\n2\n0 0\n",
        b"0\n0\n0 0\n",
        b"0\n99999999999\n0 0\n",
        b"0\n1\n0\n",
        b"0\n1\n0 0 0\n",
        b"0\n1\n\n",
        b"0\n1\n-1 0\n",
        b"0\n1\n0 -1\n",
        b"0\n1\n1_0 0\n",
        b"0\n1\nx 0\n",
        b"0\n1\n2147483648 0\n",
        b"0\n1\n0 9223372036854775808\n",
        b"0\n1\n0 " + b"1" * 100_000 + b"\n",
        b"0\n2\n1 0\n1 5\n",
        b"0\n2\n2 0\n1 5\n",
        b"0\n2\n1 5\n2 5\n",
        b"0\n1\n\xff 0\n",
    ],
)
def test_a_damaged_file_is_refused(data: bytes) -> None:
    with pytest.raises(CorruptFile, match=r"^x: "):
        LeaderEpochs.from_text(data, "x")


def test_the_largest_numbers_are_read() -> None:
    known = LeaderEpochs.from_text(b"0\n1\n2147483647 9223372036854775807\n", "x")

    assert known.entries() == [(2**31 - 1, 2**63 - 1)]
