"""Column checks, and rows by topic."""

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DoubleType,
    IntegerType,
    StringType,
    StructField,
    StructType,
)

from barnabas.spark.options.values import BadOption
from barnabas.spark.sink.rows import BadRow, by_topic, check_schema


def test_rows_go_to_their_topics_in_order_without_other_columns() -> None:
    rows = pa.record_batch(
        {"topic": ["a", "b", "a", "a"], "value": ["1", "2", None, "4"], "more": [1, 2, 3, 4]}
    )

    assert {name: table.to_pydict() for name, table in by_topic(rows, None)} == {
        "a": {"value": ["1", None, "4"]},
        "b": {"value": ["2"]},
    }
    # The option takes precedence over the column.
    assert [(name, table.num_rows) for name, table in by_topic(rows, "c")] == [("c", 4)]


def test_a_row_without_a_topic_is_refused() -> None:
    rows = pa.record_batch({"topic": ["a", None], "value": ["1", "2"]})

    with pytest.raises(BadRow, match="1 of 2 rows have no topic"):
        list(by_topic(rows, None))


HEADERS = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))
TEXTS = ArrayType(StructType([StructField("key", StringType()), StructField("value", StringType())]))


def columns(**types: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in types.items()])


@pytest.mark.parametrize(
    ("schema", "topic", "why"),
    [
        (columns(key=StringType()), "orders", "column value is missing; the columns are key"),
        (columns(value=StringType()), None, "option topic: set it"),
        (columns(value=IntegerType()), "orders", "column value has type int"),
        (columns(value=StringType(), key=DoubleType()), "orders", "column key has type double"),
        (columns(value=StringType(), topic=BinaryType()), None, "column topic has type binary"),
        (columns(value=StringType(), partition=StringType()), "orders", "column partition has type string"),
        (columns(value=StringType(), headers=StringType()), "orders", "column headers has type string"),
        (columns(value=StringType(), headers=TEXTS), "orders", "column headers has type array"),
    ],
)
def test_invalid_columns_are_rejected(schema: StructType, topic: str | None, why: str) -> None:
    with pytest.raises(BadOption, match=why):
        check_schema(schema, topic)


def test_known_and_other_columns_are_accepted() -> None:
    text = StringType()
    check_schema(
        columns(
            value=BinaryType(), key=text, topic=text, partition=IntegerType(), headers=HEADERS, more=text
        ),
        None,
    )
