"""Some cases of tests/differential/spark in Spark itself, to cover pickling, Java and Arrow.

tests/differential/test_spark_source.py runs all cases without Spark.
"""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from differential.spark.answers import load
from differential.spark.case import Case
from differential.spark.cases import CASES
from differential.spark.through_spark import answer_through
from differential.spark.topics import BROKER_SETTINGS, topics
from support.process.our_broker import OurBroker

NAMES = (
    "everything",
    "partitions of two topics",
    "names in any case",
    "times -1 and -2",
    "from time -2 to time -1",
    "ending times over offsets",
    "time that is too late",
    "aged: from before to the middle, lenient",
    "payments: committed, split",
    "compacted: everything",
    "packed: from within the batches",
    "odd: everything",
    "stamped: everything",
    "more tasks",
)
RECORDED = load()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    broker = OurBroker(tmp_path_factory.mktemp("recorded"), settings=BROKER_SETTINGS)
    with broker.running() as where, topics(where):
        yield where


@pytest.mark.parametrize("case", [one for one in CASES if one.name in NAMES], ids=lambda case: case.name)
def test_our_source_reads_the_same_rows_as_spark_sql_kafka(
    spark: SparkSession, written: str, case: Case
) -> None:
    ours = answer_through(spark, "barnabas", case, written, RECORDED.contents)

    assert ours.outcome() == RECORDED.answers[case.name].outcome(), ours
