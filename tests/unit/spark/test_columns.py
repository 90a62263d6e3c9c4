"""The columns are those of Spark's own source."""

import pyarrow as pa
import pytest

from barnabas.base.ids import TopicPartition
from barnabas.spark import columns as rows_and_columns
from barnabas.spark.columns import arrow_schema, rows_of

TP = TopicPartition("orders", 3)
HEADERS = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
HEADERS_AS_FETCHED = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary_view())]))
ONE = [("a", b"x")]
TWO = [("a", None), ("a", b"")]
LONG = b"x" * 1000


def lists(*rows: list[tuple[str, bytes | None]], kind: pa.DataType = HEADERS) -> pa.Array:
    return pa.array([[{"key": key, "value": value} for key, value in row] for row in rows], kind)


def found_of(batch: pa.RecordBatch, *columns: str) -> pa.Table:
    schema = arrow_schema(columns)
    found = pa.Table.from_batches(rows_of(TP, batch, columns, schema), schema)
    found.validate(full=True)
    return found


@pytest.mark.parametrize(
    "headers",
    [
        lists([], ONE, [], TWO),
        lists([], ONE, [], TWO, kind=HEADERS_AS_FETCHED),
        # Slices of a response, as in a range.
        lists([], ONE, [], TWO).slice(1),
        lists([], ONE, [], TWO, kind=HEADERS_AS_FETCHED).slice(1),
        lists(ONE, TWO, [], ONE).slice(2, 1),
        lists([], []),
        lists(ONE, TWO),
        lists(),
    ],
)
def test_missing_headers_are_null(headers: pa.Array) -> None:
    found = found_of(pa.record_batch({"headers": headers}), "headers")

    assert found["headers"].to_pylist() == [row or None for row in headers.to_pylist()]


def test_every_row_has_its_partition() -> None:
    batch = pa.record_batch({"offset": pa.array([7, 8], pa.int64())})

    found = found_of(batch, "topic", "offset", "partition")

    assert found.to_pydict() == {"topic": ["orders"] * 2, "offset": [7, 8], "partition": [3, 3]}


def test_timestamps_are_in_microseconds_and_their_type_is_a_number() -> None:
    times = pa.array([1_700_000_000_123], pa.timestamp("ms"))
    batch = pa.record_batch({"timestamp": times, "timestamp_type": pa.array([1], pa.int8())})

    found = found_of(batch, "timestamp", "timestampType")

    assert found["timestamp"].cast(pa.int64()).to_pylist() == [1_700_000_000_123_000]
    assert found["timestampType"].to_pylist() == [1]


@pytest.mark.parametrize("values", [[None] * 3, [b"", None, b"short"], [None, LONG, LONG[1:]]])
def test_views_become_binary_arrays(values: list[bytes | None]) -> None:
    batch = pa.record_batch({"value": pa.array(values, pa.binary_view())})

    assert found_of(batch, "value")["value"].to_pylist() == values


@pytest.mark.parametrize("start", [0, 11])
def test_large_batches_are_split(monkeypatch: pytest.MonkeyPatch, start: int) -> None:
    monkeypatch.setattr(rows_and_columns, "_PIECE_BYTES", 10 * len(LONG))
    values = [b"%d" % number + LONG for number in range(100)]
    batch = pa.record_batch(
        {"offset": pa.array(range(100), pa.int64()), "value": pa.array(values, pa.binary_view())}
    ).slice(start)
    wanted = ("offset", "value")

    pieces = list(rows_of(TP, batch, wanted, arrow_schema(wanted)))

    # The size of views includes unused parts of their buffers.
    assert {piece.num_rows for piece in pieces[:-1]} <= {5, 6, 7, 8, 9}
    assert pa.Table.from_batches(pieces).to_pydict() == {
        "offset": list(range(start, 100)),
        "value": values[start:],
    }


def test_small_rows_are_batched() -> None:
    batch = pa.record_batch({"value": pa.array([b"x"] * 120_000, pa.binary_view())})

    pieces = rows_of(TP, batch, ("value",), arrow_schema(("value",)))

    assert [piece.num_rows for piece in pieces] == [50_000, 50_000, 20_000]


def test_a_row_above_the_limit_is_its_own_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows_and_columns, "_PIECE_BYTES", 10)
    batch = pa.record_batch({"value": pa.array([LONG, LONG], pa.binary_view())})

    pieces = rows_of(TP, batch, ("value",), arrow_schema(("value",)))

    assert [piece.to_pydict() for piece in pieces] == [{"value": [LONG]}] * 2
