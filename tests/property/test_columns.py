"""Tables survive a round trip through batches, and columns agree with the other decoders on every batch."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.records.builder import build_batch
from barnabas.records.columns_read import decode_columns
from barnabas.records.columns_write import encode_columns
from barnabas.records.decode import decode_batch
from barnabas.records.header import Codec
from barnabas.records.record import Record

pytestmark = pytest.mark.kernel

# Above 12 bytes Arrow's view layout changes; above 64 and 8192 a length takes one byte more.
DATA = st.none() | st.binary(max_size=16) | st.sampled_from([63, 64, 300, 8191, 8192]).map(bytes)
TIMES = st.integers(-1, 2**63 - 3) | st.integers(1_700_000_000_000, 1_700_000_010_000)
HEADERS = st.lists(st.tuples(st.text(max_size=20), DATA), max_size=3)
RECORDS = st.lists(st.tuples(TIMES, DATA, DATA, HEADERS), max_size=12)
BASES = st.integers(0, 2**62)

HEADER_TYPE = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def as_table(records: list[tuple[Any, ...]]) -> pa.Table:
    times, keys, values, headers = zip(*records, strict=True) if records else ((), (), (), ())
    return pa.table(
        {
            "timestamp": pa.array(times, pa.timestamp("ms")),
            "key": pa.array(keys, pa.binary()),
            "value": pa.array(values, pa.binary()),
            "headers": pa.array(
                [[{"key": key, "value": value} for key, value in some] for some in headers], HEADER_TYPE
            ),
        }
    )


def as_records(rows: pa.RecordBatch) -> list[Record]:
    rows.validate(full=True)
    times = rows.column("timestamp").cast(pa.int64()).to_pylist()
    return [
        Record(
            row["offset"],
            time,
            row["key"],
            row["value"],
            tuple((header["key"], header["value"]) for header in row["headers"]),
        )
        for row, time in zip(rows.drop_columns(["timestamp"]).to_pylist(), times, strict=True)
    ]


@given(
    RECORDS,
    BASES,
    st.sampled_from(Codec),
    st.integers(1, 13),
    st.integers(61, 20_000),
    st.booleans(),
)
def test_a_table_survives_a_round_trip(
    records: list[tuple[Any, ...]],
    base: int,
    codec: Codec,
    batch_records: int,
    batch_bytes: int,
    views: bool,
) -> None:
    batches = encode_columns(
        as_table(records),
        base_offset=base,
        codec=codec,
        batch_records=batch_records,
        batch_bytes=batch_bytes,
    )

    rows = decode_columns(batches, views=views)

    wanted = [
        Record(base + n, time, key, value, tuple(some)) for n, (time, key, value, some) in enumerate(records)
    ]
    assert as_records(rows) == wanted
    assert [record for batch in batches for record in decode_batch(batch)] == wanted


@given(RECORDS.filter(bool), BASES, st.sampled_from(Codec))
def test_column_writer_and_batch_builder_write_the_same_bytes(
    records: list[tuple[Any, ...]], base: int, codec: Codec
) -> None:
    (batch,) = encode_columns(as_table(records), base_offset=base, codec=codec)

    assert batch == build_batch(records, base_offset=base, codec=codec)


@given(st.lists(st.tuples(RECORDS.filter(bool), st.sampled_from(Codec)), max_size=4), st.integers(0, 50))
def test_columns_and_record_decoder_read_the_same(
    parts: list[tuple[list[tuple[Any, ...]], Codec]], from_offset: int
) -> None:
    batches = []
    base = 0
    for records, codec in parts:
        batches.append(build_batch(records, base_offset=base, codec=codec))
        base += len(records)

    rows = decode_columns(b"".join(batches), from_offset=from_offset)

    decoded = [record for batch in batches for record in decode_batch(batch)]
    assert as_records(rows) == [record for record in decoded if record.offset >= from_offset]
