"""A case with a source of Spark's, by its format: ours, or spark-sql-kafka."""

from datetime import UTC
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.errors.exceptions.captured import CapturedException
from pyspark.sql import SparkSession

from differential.spark.answers import Answer, Contents, Row, answer_of
from differential.spark.case import Case

_SHOWN_MAX = 200


def answer_through(spark: SparkSession, kind: str, case: Case, address: str, contents: Contents) -> Answer:
    try:
        rows, tasks = _read(spark, kind, case.given(address), counts_tasks=case.tasks)
    except (PySparkException, Py4JError) as error:
        return refusal(error)
    return answer_of(rows, contents, tasks)


def rows_through(spark: SparkSession, kind: str, options: dict[str, str]) -> list[Row]:
    return _read(spark, kind, options, counts_tasks=False)[0]


def _read(
    spark: SparkSession, kind: str, options: dict[str, str], *, counts_tasks: bool
) -> tuple[list[Row], int | None]:
    frame = spark.read.format(kind).options(**options).load()
    tasks = frame.rdd.getNumPartitions() if counts_tasks else None
    return [_row(row) for row in frame.collect()], tasks


def _row(row: Any) -> Row:
    headers = row.asDict().get("headers", False)
    return Row(
        topic=row["topic"],
        partition=row["partition"],
        offset=row["offset"],
        key=None if row["key"] is None else bytes(row["key"]),
        value=None if row["value"] is None else bytes(row["value"]),
        timestamp_ms=round(row["timestamp"].astimezone(UTC).timestamp() * 1000),
        timestamp_type=row["timestampType"],
        headers=[(one["key"], _bytes(one["value"])) for one in headers] if headers else headers,
    )


def _bytes(value: bytearray | None) -> bytes | None:
    return None if value is None else bytes(value)


def refusal(error: Exception) -> Answer:
    """By its first cause: Spark wraps what a task or a plan throws."""
    thrown = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    if thrown is None:
        return Answer(None, refused=type(error).__name__, why=_first_line(str(error)))
    while thrown.getCause() is not None:
        thrown = thrown.getCause()
    name = str(thrown.getClass().getSimpleName())
    message = thrown.getMessage()
    if message is None and isinstance(error, CapturedException):
        message = str(error)
    return Answer(None, refused=name, why=_first_line(str(message)))


def _first_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0][:_SHOWN_MAX] if lines else ""
