"""Our sink takes the options and columns that spark-sql-kafka takes, and refuses the others.

The recording is checked against the real thing by tests/interop/spark/test_recorded_answers.py. What is
written with them is compared in tests/interop/spark/test_sink_beside.py.
"""

import pytest

from differential.spark.differences import DIFFERENCES, SINK
from differential.spark.sink_cases import SINK_CASES, SinkCase, load_sink

RECORDED = load_sink()
# Nothing is sent there: what is wrong is found before.
NOWHERE = "127.0.0.1:1"


@pytest.mark.parametrize("case", SINK_CASES, ids=lambda case: case.name.replace(" ", "-"))
def test_our_sink_accepts_the_rows_of_spark_sql_kafka(case: SinkCase) -> None:
    theirs = RECORDED[case.name]

    ours = case.refusal(NOWHERE)

    is_different = any(SINK + case.name in one.cases for one in DIFFERENCES)
    assert ((ours is None) == (theirs is None)) != is_different, f"theirs: {theirs}\nours: {ours}"
    if ours is not None:
        assert case.why, f"the case does not say why it is refused: {ours}"
        assert case.why in ours


def test_every_case_is_recorded_once() -> None:
    assert [case.name for case in SINK_CASES] == list(RECORDED)
