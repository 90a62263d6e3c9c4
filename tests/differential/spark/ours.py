"""A case on our source, as Spark calls it, without Spark: driver, pickle, tasks, one after the other."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql.datasource import CaseInsensitiveDict

from barnabas.base.errors import BarnabasError
from barnabas.spark.data_source import BarnabasDataSource
from differential.spark.answers import Answer, Contents, Row, answer_of
from differential.spark.case import Case


def answer_to(case: Case, address: str, contents: Contents) -> Answer:
    try:
        source = BarnabasDataSource(CaseInsensitiveDict(case.given(address)))  # type: ignore[arg-type]
        reader = source.reader(source.schema())
        partitions = _sent(reader.partitions())
        reader = _sent(reader)
        rows = [row for one in partitions for batch in reader.read(one) for row in _rows(batch)]
    except BarnabasError as error:
        return Answer(None, refused=type(error).__name__, why=str(error))
    return answer_of(rows, contents, len(partitions) if case.tasks else None)


def _sent(thing: Any) -> Any:
    """As it comes out in another process."""
    return cloudpickle.loads(cloudpickle.dumps(thing))


def _rows(batch: pa.RecordBatch) -> Iterator[Row]:
    has_headers = "headers" in batch.schema.names
    for row in batch.to_pylist():
        headers = row.get("headers")
        yield Row(
            topic=row["topic"],
            partition=row["partition"],
            offset=row["offset"],
            key=row["key"],
            value=row["value"],
            timestamp_ms=round(row["timestamp"].timestamp() * 1000),
            timestamp_type=row["timestampType"],
            headers=(headers and [(one["key"], one["value"]) for one in headers]) if has_headers else False,
        )
