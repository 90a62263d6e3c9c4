"""Records with edge cases, enough records to fill a batch, and functions to compare them."""

import random
from collections.abc import Sequence

import pyarrow as pa

from barnabas.records.builder import NewRecord
from barnabas.records.record import Record

START_MS = 1_700_000_000_000

# Null and empty values wherever both are possible, repeated header names, and names that are not ASCII.
ODD_RECORDS: list[NewRecord] = [
    (START_MS, b"key", b"value", []),
    (START_MS + 7, None, b"no key", []),
    (START_MS + 3, b"", b"empty key", [("name", b"value")]),
    (START_MS, b"tombstone", None, [("twice", b"1"), ("twice", b"2"), ("twice", b"1")]),
    (START_MS - 500, b"empty value", b"", [("empty", b"")]),
    (START_MS, b"", b"", [("größe", "groß".encode()), ("鍵", b"\x00\xff")]),
    (START_MS, b"k", b"v", [("null", None), ("null", b"")]),
    (START_MS + 1, None, None, []),
    (START_MS + 2, None, b"last", [("", b"no name")]),
]
# Half of each value is incompressible, so that the compressed batch is large too and has several blocks.
_dice = random.Random(1)
LARGE_RECORDS: list[NewRecord] = [
    (START_MS + i, b"key %d" % i, _dice.randbytes(200) + b"%d " % i * 50, [("i", b"%d" % i)])
    for i in range(1000)
]


def numbered(records: Sequence[NewRecord], base_offset: int = 0) -> list[Record]:
    """The records as a reader gets them, with offsets from `base_offset`."""
    return [
        Record(base_offset + index, timestamp, key, value, tuple(headers))
        for index, (timestamp, key, value, headers) in enumerate(records)
    ]


def from_columns(rows: pa.RecordBatch) -> list[Record]:
    times = rows.column("timestamp").cast(pa.int64()).to_pylist()
    return [
        Record(
            row["offset"],
            time,
            row["key"],
            row["value"],
            tuple((header["key"], header["value"]) for header in row["headers"]),
        )
        for row, time in zip(rows.to_pylist(), times, strict=True)
    ]


def to_columns(records: Sequence[NewRecord]) -> pa.Table:
    header = pa.struct([("key", pa.string()), ("value", pa.binary())])
    return pa.table(
        {
            "timestamp": pa.array([record[0] for record in records], pa.int64()),
            "key": pa.array([record[1] for record in records], pa.binary()),
            "value": pa.array([record[2] for record in records], pa.binary()),
            "headers": pa.array(
                [[{"key": name, "value": value} for name, value in record[3]] for record in records],
                pa.list_(header),
            ),
        }
    )
