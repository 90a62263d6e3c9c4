"""Our source answers to options as spark-sql-kafka does: the same rows, or a refusal by both.

Its answers are a recording (tests/fixtures/spark-sql-kafka-4.2.0), which is checked against the real thing by
tests/interop/spark/test_recorded_answers.py. What differs on purpose is in spark/differences.py. Here the
source is called as Spark calls it; some of the cases run through Spark itself in
tests/scenario/spark/test_recorded_answers.py.
"""

from collections.abc import Callable, Iterator

import pytest

from barnabas.spark.source.consumer_cache import close_all
from differential.spark.answers import Answer, Recording, load
from differential.spark.case import Case
from differential.spark.cases import CASES
from differential.spark.differences import DIFFERENCES, SINK, difference_of
from differential.spark.ours import answer_to
from differential.spark.sink_cases import SINK_CASES
from differential.spark.topics import BROKER_SETTINGS, topics
from support.process.our_broker import OurBroker

CASES_MIN = 115
Answers = Callable[[Case], Answer]


@pytest.fixture(scope="module")
def recording() -> Recording:
    return load()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    broker = OurBroker(tmp_path_factory.mktemp("broker"), settings=BROKER_SETTINGS)
    with broker.running() as where, topics(where):
        yield where
        # Consumers that tasks have left for the next ones.
        close_all()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "-"))
def test_we_answer_as_spark_sql_kafka_does(case: Case, recording: Recording, address: str) -> None:
    theirs = recording.answers[case.name]

    ours = answer_to(case, address, recording.contents)

    if difference_of(case.name) is None:
        assert ours.outcome() == theirs.outcome(), f"theirs: {theirs}\nours: {ours}"
    else:
        assert ours.outcome() != theirs.outcome(), f"no longer different, take it out: {ours}"
    if ours.read is None:
        assert case.why, f"the case does not say why it is refused: {ours}"
        assert case.why in ours.why


def test_every_case_is_recorded_once(recording: Recording) -> None:
    names = [case.name for case in CASES]

    assert len(names) >= CASES_MIN
    assert names == list(recording.answers)


def test_every_difference_names_a_case_or_another_test() -> None:
    names = {case.name for case in CASES} | {SINK + case.name for case in SINK_CASES}
    for one in DIFFERENCES:
        assert one.cases or one.shown_by, one
        assert set(one.cases) <= names, one
