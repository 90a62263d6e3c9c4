"""Columns as Spark's own source has them."""

import pyarrow as pa
import pytest

from barnabas.base.ids import TopicPartition
from barnabas.spark.columns import arrow_schema, rows_of

TP = TopicPartition("orders", 3)
HEADERS = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
ONE = [("a", b"x")]
TWO = [("a", None), ("a", b"")]


def lists(*rows: list[tuple[str, bytes | None]]) -> pa.Array:
    return pa.array([[{"key": key, "value": value} for key, value in row] for row in rows], HEADERS)


@pytest.mark.parametrize(
    "chunks",
    [
        [lists([], ONE, [], TWO)],
        # Parts of what was fetched, as a range has them.
        [lists([], ONE, [], TWO).slice(1), lists(ONE, TWO, [], ONE).slice(2, 1), lists()],
        [lists([], [])],
        [lists(ONE, TWO)],
        [],
    ],
)
def test_no_headers_are_null(chunks: list[pa.Array]) -> None:
    table = pa.table({"headers": pa.chunked_array(chunks, HEADERS)})

    found = rows_of(TP, table, ["headers"], arrow_schema(["headers"]))

    found.validate(full=True)
    assert found["headers"].to_pylist() == [row or None for row in table["headers"].to_pylist()]


def test_the_partition_is_told_of_every_row() -> None:
    table = pa.table({"offset": pa.array([7, 8], pa.int64())})
    columns = ["topic", "offset", "partition"]

    found = rows_of(TP, table, columns, arrow_schema(columns))

    assert found.to_pydict() == {"topic": ["orders"] * 2, "offset": [7, 8], "partition": [3, 3]}
