"""Which replays of a micro-batch may be committed."""

import pytest

from barnabas.spark.sink.markers import Mark
from barnabas.spark.sink.replays import SlotsChanged, check_not_in_parts, check_same_plan
from barnabas.spark.sink.runs import NO_RECORD, UNKNOWN_RUN, Record

BATCH = 7
BEGUN = Record(BATCH, 3, ("first", "second"), "out")


def mark(run: str = "first", batch: int = BATCH) -> dict[str, Mark]:
    return {"sink-q-1": Mark(batch, run, "out")}


def check(record: Record, written: dict[str, Mark], *, tasks: int = 3, prefix: str = "sink") -> None:
    check_same_plan(BATCH, tasks, record, written, dict.fromkeys(written, "sink"), prefix)


@pytest.mark.parametrize("record", [NO_RECORD, BEGUN, Record(BATCH - 1, 3, ("first",), "out")])
def test_without_committed_slots_any_number_of_tasks_is_accepted(record: Record) -> None:
    check(record, {}, tasks=2)


@pytest.mark.parametrize("run", BEGUN.runs)
def test_a_partly_committed_batch_is_completed_by_the_same_number_of_tasks(run: str) -> None:
    check(BEGUN, mark(run))


def test_a_batch_partly_committed_by_an_earlier_release_is_completed() -> None:
    check(Record(BATCH, 3, (UNKNOWN_RUN,), "out"), mark(UNKNOWN_RUN))


def test_another_number_of_tasks_is_refused() -> None:
    with pytest.raises(
        SlotsChanged, match=r"batch 7 was begun with 3 tasks but is now planned with 2.*sink-q-1"
    ):
        check(BEGUN, mark(), tasks=2)


@pytest.mark.parametrize(
    "record", [NO_RECORD, BEGUN._replace(runs=("first",)), Record(BATCH - 1, 3, ("second",), "out")]
)
def test_a_run_with_an_unknown_number_of_tasks_is_rejected(record: Record) -> None:
    with pytest.raises(SlotsChanged, match=r"batch 7 .* not recorded"):
        check(record, mark("second"))


def test_another_prefix_is_refused() -> None:
    with pytest.raises(SlotsChanged, match="transactionalIdPrefix=sink"):
        check(BEGUN, mark(), prefix="other")


def test_a_restored_older_checkpoint_needs_the_same_number_of_tasks() -> None:
    later = Record(BATCH + 2, 3, ("second",), "out")

    check(later, mark("first", BATCH + 1))
    with pytest.raises(SlotsChanged, match="begun with 3 tasks"):
        check(later, mark("first", BATCH + 1), tasks=4)


def test_a_whole_batch_is_rejected_if_slots_have_committed_parts() -> None:
    check_not_in_parts(BATCH, {})
    with pytest.raises(SlotsChanged, match="by transactionScope=task"):
        check_not_in_parts(BATCH, mark())


def test_an_error_names_some_ids_only() -> None:
    with pytest.raises(SlotsChanged, match="and 15 more"):
        check_not_in_parts(BATCH, {f"sink-q-{slot}": Mark(BATCH, "first", "out") for slot in range(20)})
