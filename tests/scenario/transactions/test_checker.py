"""The checker of exactly-once runs finds what is wrong with runs that are wrong, and nothing in good ones."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest

from support.eos_runs.checker import End, Result, faults
from support.eos_runs.journal import Journal, Life, parse
from support.eos_runs.records import INPUT, OUTPUT, Mark, Seen, output_partition, read_mark, seen

RUN = "run"
OUTPUT_PARTITIONS = 2


def life(name: str, *lines: str) -> Life:
    return Life(name, tuple(parse(f"{at} {line}") for at, line in enumerate(lines)))


def records(kind: str, *told: tuple[int, int, str, int], first_offset: int = 0) -> list[Seen]:
    """Of (input partition, number, life, transaction) each."""
    marks = [Mark(kind, RUN, *each) for each in told]
    return [Seen(first_offset + at, mark, mark.text()) for at, mark in enumerate(marks)]


SOURCE = life("source#1", "wrote 1 0 0 3", "committing 1", "committed 1")
WORKER = life(
    "w#1", "wrote 1 0 0 1", "committing 1", "committed 1", "wrote 2 0 2 3", "committing 2", "committed 2"
)


def good() -> Result:
    """Four records of input partition 0; `w#1` makes two of them in each of its two transactions."""
    output = {
        0: records(OUTPUT, (0, 0, "w#1", 1), (0, 2, "w#1", 2)),
        1: records(OUTPUT, (0, 1, "w#1", 1), (0, 3, "w#1", 2)),
    }
    return Result(
        run=RUN,
        input={0: records(INPUT, *((0, number, "source#1", 1) for number in range(4)))},
        output=output,
        witnessed=output,
        numbers={0: 4},
        input_ends={0: 6},
        offsets={0: 4},
        ends=[End("out-0", 5, 5)],
        sources=[SOURCE],
        workers=[WORKER],
    )


def with_output(*partitions: Sequence[Seen], workers: Iterable[Life] = (WORKER,)) -> Result:
    output = dict(enumerate(partitions))
    return replace(good(), output=output, witnessed=output, workers=list(workers))


def test_a_run_where_everything_is_there_once_has_no_faults() -> None:
    assert faults(good()) == []


def test_a_record_that_is_missing_is_a_fault_and_so_is_its_transaction() -> None:
    [even, odd] = good().output.values()

    assert faults(with_output(even[:1], odd)) == [
        "output of input partition 0: 1 missing: 2",
        "output: transaction 2 of w#1 was committed, and 1 of its records are not seen: (0, 2)",
    ]


def test_a_record_that_is_there_twice_is_a_fault() -> None:
    [even, odd] = good().output.values()
    again = life("w#2", "wrote 1 0 2 2", "committing 1", "committed 1")

    found = faults(
        with_output([*even, *records(OUTPUT, (0, 2, "w#2", 1), first_offset=9)], odd, workers=[WORKER, again])
    )

    assert found == ["output of input partition 0: 1 there twice: 2"]


def test_records_of_one_input_partition_in_another_order_are_a_fault() -> None:
    [even, odd] = good().output.values()

    assert faults(with_output(even[::-1], odd)) == ["output 0, of input partition 0: 0 of w#1 after 2 of w#1"]


def test_a_record_in_a_partition_where_it_does_not_belong_is_a_fault() -> None:
    [even, odd] = good().output.values()

    assert faults(with_output(even[:1], [*odd, *even[1:]])) == [
        "output 1, offset 1: 0/2 is not of here",
        "output 1, of input partition 0: 2 of w#1 after 3 of w#1",
    ]


def test_a_record_of_a_transaction_that_was_aborted_is_a_fault() -> None:
    told = life(
        "w#1", "wrote 1 0 0 1", "committing 1", "committed 1", "wrote 2 0 2 3", "committing 2", "aborted 2"
    )

    assert faults(with_output(*good().output.values(), workers=[told])) == [
        "output: transaction 2 of w#1 was aborted, and 2 of its records are seen: (0, 2), (0, 3)"
    ]


@pytest.mark.parametrize("last", [("wrote 2 0 2 3",), ()])
def test_a_record_of_a_transaction_without_a_commit_is_a_fault(last: tuple[str, ...]) -> None:
    killed = life("w#1", "wrote 1 0 0 1", "committing 1", "committed 1", *last)

    [found] = faults(with_output(*good().output.values(), workers=[killed]))

    assert found.startswith("output: transaction 2 of w#1 was never committed, and ")
    assert found.endswith("(0, 2), (0, 3)")


def test_a_transaction_without_a_response_is_visible_completely_or_not_at_all() -> None:
    [even, odd] = good().output.values()
    doubtful = life("w#1", "wrote 1 0 0 1", "committing 1", "committed 1", "wrote 2 0 2 3", "committing 2")
    after = life("w#2", "wrote 1 0 2 3", "committing 1", "committed 1")
    made_again = (records(OUTPUT, (0, 2, "w#2", 1)), records(OUTPUT, (0, 3, "w#2", 1)))

    as_a_whole = with_output(even, odd, workers=[doubtful])
    not_at_all = with_output([even[0], *made_again[0]], [odd[0], *made_again[1]], workers=[doubtful, after])
    torn = with_output(even, [odd[0], *made_again[1]], workers=[doubtful, replace(after, events=())])

    assert faults(as_a_whole) == []
    assert faults(not_at_all) == []
    assert faults(torn)[0] == "output: transaction 2 of w#1 is seen in part: 1 of its records are not: (0, 3)"


def test_an_input_that_the_source_did_not_commit_is_a_fault() -> None:
    short, long = replace(good(), numbers={0: 5}), replace(good(), numbers={0: 3})

    assert "input partition 0: 1 missing: 4" in faults(short)
    assert "output of input partition 0: 1 missing: 4" in faults(short)
    assert "input partition 0: 1 that were never committed: 3" in faults(long)
    assert "output of input partition 0: 1 that were never committed: 3" in faults(long)


def test_an_input_record_of_an_aborted_transaction_is_a_fault() -> None:
    aborted = replace(good(), sources=[life("source#1", "wrote 1 0 0 3", "aborted 1")])

    [found] = faults(aborted)

    assert found.startswith("input: transaction 1 of source#1 was aborted, and 4 of its records are seen")


@pytest.mark.parametrize("committed", [3, -1, 7])
def test_offsets_that_are_not_at_the_end_of_the_input_are_a_fault(committed: int) -> None:
    assert faults(replace(good(), offsets={0: committed})) == [
        f"input partition 0: offset {max(0, committed)} is committed,"
        " and 4 is after its last record, 6 its end"
    ]


@pytest.mark.parametrize("committed", [4, 5, 6])
def test_offsets_behind_the_last_record_may_count_the_markers_there(committed: int) -> None:
    assert faults(replace(good(), offsets={0: committed})) == []


def test_a_last_stable_offset_that_stays_behind_is_a_fault() -> None:
    stuck = replace(good(), ends=[End("out-0", 5, 5), End("__consumer_offsets-2", 40, 12)])

    assert faults(stuck) == ["__consumer_offsets-2: stable to 12 and no further, of 40"]


def test_a_read_record_that_is_missing_now_is_a_fault() -> None:
    [even, odd] = good().output.values()
    ghost = records(OUTPUT, (0, 2, "w#9", 7), first_offset=1)

    [other] = faults(replace(good(), witnessed={0: [even[0], *ghost], 1: odd}))
    [missed] = faults(replace(good(), witnessed={0: even, 1: odd[:1]}))

    assert other == (
        "output 0: read along as offset 1: b'out:run:0:2:w#9:7', and now offset 1: b'out:run:0:2:w#1:2'"
        " (record 1 of 2 and 2)"
    )
    assert (
        missed
        == "output 1: read along as nothing, and now offset 1: b'out:run:0:3:w#1:2' (record 1 of 1 and 2)"
    )


@pytest.mark.parametrize(
    "value", [b"", b"what is that", b"out:other:0:2:w#1:2", b"in:run:0:2:w#1:2", b"out:run:0:x:w#1:2"]
)
def test_a_record_of_no_writer_of_this_run_is_a_fault(value: bytes) -> None:
    [even, odd] = good().output.values()

    assert f"output 0, offset 7: not of this run: {value!r}" in faults(
        with_output([*even, seen(7, value)], odd)
    )


def test_a_mark_says_the_same_after_it_was_written_and_read() -> None:
    mark = Mark(OUTPUT, "changing-7", 3, 12, "worker-1#2", 9)

    assert read_mark(mark.text()) == mark
    assert {output_partition(3, number, 4) for number in range(4)} == {0, 1, 2, 3}


def test_numbers_are_written_down_as_runs_without_a_gap(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("journal") / "journal"

    Journal(path).wrote(7, 3, [4, 5, 6, 9, 10, 2])

    told = [parse(line) for line in path.read_text().splitlines()]
    assert [(each.transaction, each.partitions, each.first, each.last) for each in told] == [
        (7, (3,), 4, 6),
        (7, (3,), 9, 10),
        (7, (3,), 2, 2),
    ]
