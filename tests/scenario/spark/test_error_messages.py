"""Exceptions in Spark have our message in their first line, without a traceback."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from barnabas.client.blocking import Producer
from barnabas.testing import Broker
from support.process.ports import free_port

# If a task of a batch query fails, this line precedes the message.
SPARKS_WORDS = "An exception was thrown from the Python worker:"
RECORDS = 20


class Queries:
    """Queries on a broker with one topic, `there`, of one partition, without automatic topic creation."""

    def __init__(self, spark: SparkSession, address: str, directory: Path) -> None:
        self._spark, self._directory = spark, directory
        self.address = address
        self.nobody = f"127.0.0.1:{free_port()}"

    def _options(self, given: dict[str, str]) -> dict[str, str]:
        return {
            "kafka.bootstrap.servers": self.address,
            "subscribe": "there",
            "startingOffsets": "earliest",
            "connectTimeout": "1s",
            "fetchOffset.retryIntervalMs": "10",
            **given,
        }

    def rows(self, *columns: str) -> DataFrame:
        return self._spark.range(3).selectExpr("cast(id as string) as value", *columns)

    def stream(self, **given: str) -> DataFrame:
        return self._spark.readStream.format("barnabas").options(**self._options(given)).load()

    def read(self, **given: str) -> None:
        self._spark.read.format("barnabas").options(**self._options(given)).load().collect()

    def write(self, rows: DataFrame, **given: str) -> None:
        options = {"kafka.bootstrap.servers": self.address, "connectTimeout": "1s", **given}
        rows.write.format("barnabas").mode("append").options(**options).save()

    def run(self, rows: DataFrame, sink: str = "noop", **given: str) -> None:
        options = {"kafka.bootstrap.servers": self.address, "connectTimeout": "1s", **given}
        writer = rows.writeStream.format(sink).options(**options)
        query = writer.option("checkpointLocation", str(self._directory / "checkpoint")).start()
        try:
            assert query.awaitTermination(60), "it has not failed"
        finally:
            query.stop()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with Broker({"auto.create.topics.enable": "false"}, topics=["there"]) as broker:
        with Producer(bootstrap_servers=broker.bootstrap) as producer:
            for number in range(RECORDS):
                producer.send("there", b"%d" % number, partition=0)
        yield broker.bootstrap


@pytest.fixture
def queries(spark: SparkSession, address: str, tmp_path: Path) -> Queries:
    return Queries(spark, address, tmp_path)


PAST_THE_END = {"startingOffsets": '{"there":{"0":50}}'}
TOPIC_NULL = "cast(null as string) as topic"
LOST = f"there-0 was read up to offset 50, but now ends at {RECORDS}"
WITHOUT_TOPIC = "rows have no topic, and the option topic is not set"
UNKNOWN = "topic nowhere: UNKNOWN_TOPIC_OR_PARTITION: no broker at"
NOT_CREATED = "topic nowhere does not exist, and the brokers at"
NOBODY = "no broker answered at 127.0.0.1:"

CASES: dict[str, tuple[Callable[[Queries], None], str]] = {
    "option, read": (lambda q: q.read(startingOfsets="x"), "option startingOfsets: "),
    "option, write": (lambda q: q.write(q.rows(), topics="there"), "option topics: "),
    "option, stream": (lambda q: q.run(q.stream(maxOffsets="3")), "option maxOffsets: "),
    "topic, read": (lambda q: q.read(subscribe="nowhere"), UNKNOWN),
    "topic, write": (lambda q: q.write(q.rows(), topic="nowhere"), NOT_CREATED),
    "topic, stream": (lambda q: q.run(q.stream(subscribe="nowhere")), UNKNOWN),
    "topic, stream that writes": (lambda q: q.run(q.stream(), "barnabas", topic="nowhere"), NOT_CREATED),
    "nobody, read": (lambda q: q.read(**{"kafka.bootstrap.servers": q.nobody}), NOBODY),
    "nobody, write": (
        lambda q: q.write(q.rows(), topic="there", **{"kafka.bootstrap.servers": q.nobody}),
        NOBODY,
    ),
    "nobody, stream": (lambda q: q.run(q.stream(**{"kafka.bootstrap.servers": q.nobody})), NOBODY),
    "loss, read": (lambda q: q.read(**PAST_THE_END, endingOffsets='{"there":{"0":60}}'), LOST),
    "loss, stream": (lambda q: q.run(q.stream(**PAST_THE_END)), LOST),
    "no topic, write": (lambda q: q.write(q.rows(TOPIC_NULL)), WITHOUT_TOPIC),
    "no topic, stream": (
        lambda q: q.run(q.stream().selectExpr("value", TOPIC_NULL), "barnabas"),
        WITHOUT_TOPIC,
    ),
}


# One for each path of an error through Spark; other tests cover the messages themselves.
IN_SHORT = ["option, read", "option, stream", "topic, stream that writes", "loss, stream", "no topic, write"]


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=[] if case in IN_SHORT else pytest.mark.soak) for case in CASES]
)
def test_the_first_line_has_the_error_message(queries: Queries, case: str) -> None:
    fails, told = CASES[case]

    with pytest.raises(PySparkException) as failed:
        fails(queries)

    first, *others = str(failed.value).splitlines()
    # Spark passes option names in lower case.
    assert told.lower() in (others[0] if first == SPARKS_WORDS else first).lower()
    assert "Traceback" not in str(failed.value)


def test_a_bug_keeps_its_traceback(queries: Queries) -> None:
    rows = queries.rows().mapInArrow(lambda batches: (1 / 0 for _ in batches), "value string")

    with pytest.raises(PySparkException, match=r"Traceback[\s\S]*ZeroDivisionError"):
        queries.write(rows, topic="there")
