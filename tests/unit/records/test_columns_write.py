"""Tables become batches: split at the right records, with headers that a broker accepts."""

from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest

from barnabas.records import columns_write
from barnabas.records.builder import build_batch
from barnabas.records.column_seal import GATHER_BYTES
from barnabas.records.columns_read import decode_columns
from barnabas.records.columns_write import UnfitColumns, encode_columns
from barnabas.records.decode import decode_batch
from barnabas.records.errors import InvalidBatch
from barnabas.records.header import Codec, read_header
from barnabas.records.record import Record
from barnabas.records.validate import check_produced, check_records

pytestmark = pytest.mark.kernel

NOON = 1_700_000_000_000
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def table(*values: bytes | None, **columns: Any) -> pa.Table:
    return pa.table({"value": pa.array(values, pa.binary()), **columns})


@pytest.mark.parametrize("codec", Codec)
def test_a_row_becomes_a_record_with_all_its_fields(codec: Codec) -> None:
    rows = table(
        b"v",
        None,
        b"a value longer than twelve bytes",
        key=pa.array([None, b"k", b""], pa.binary()),
        timestamp=pa.array([NOON, NOON + 7, NOON - 7], pa.timestamp("ms")),
        headers=pa.array([[], [{"key": "ü", "value": None}, {"key": "", "value": b"x" * 50}], None], HEADERS),
    )

    (batch,) = encode_columns(rows, base_offset=5, codec=codec)

    assert decode_batch(batch) == [
        Record(5, NOON, None, b"v"),
        Record(6, NOON + 7, b"k", None, (("ü", None), ("", b"x" * 50))),
        Record(7, NOON - 7, b"", b"a value longer than twelve bytes"),
    ]


def test_the_batch_passes_the_checks_of_a_produce_request() -> None:
    rows = table(b"a", b"b", b"c", timestamp=pa.array([NOON, NOON + 9, NOON + 4], pa.timestamp("ms")))

    (batch,) = encode_columns(
        rows, producer_id=9, producer_epoch=2, base_sequence=4, transactional=True, leader_epoch=3
    )

    header = check_produced(batch)
    check_records(batch)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (9, 2, 4)
    assert header.is_transactional
    assert (header.base_offset, header.last_offset_delta, header.count, header.leader_epoch) == (0, 2, 3, 3)
    assert (header.base_timestamp, header.max_timestamp) == (NOON, NOON + 9)


def test_batches_are_cut_at_the_number_of_records() -> None:
    rows = table(*[b"%d" % n for n in range(7)])

    batches = encode_columns(rows, base_offset=10, batch_records=3, producer_id=1, base_sequence=2**31 - 2)

    headers = [read_header(batch) for batch in batches]
    assert [(header.base_offset, header.count) for header in headers] == [(10, 3), (13, 3), (16, 1)]
    assert [header.base_sequence for header in headers] == [2**31 - 2, 1, 4]
    assert decode_columns(batches).column("value").to_pylist() == rows.column("value").to_pylist()


@pytest.mark.parametrize("size", [1, 50, 60, 1000])
def test_batches_are_cut_before_they_pass_the_number_of_bytes(size: int) -> None:
    batches = encode_columns(table(*[bytes(size)] * 40), batch_bytes=200)

    assert all(len(batch) <= 200 or read_header(batch).count == 1 for batch in batches)
    assert all(
        len(batch) + len(after) - 61 > 200 or read_header(after).count > 1
        for batch, after in pairwise(batches)
    )
    assert decode_columns(batches).num_rows == 40


def test_a_batch_may_be_exactly_as_large_as_allowed() -> None:
    (whole,) = encode_columns(table(b"a", b"b", b"c"))

    assert encode_columns(table(b"a", b"b", b"c"), batch_bytes=len(whole)) == [whole]
    assert len(encode_columns(table(b"a", b"b", b"c"), batch_bytes=len(whole) - 1)) == 2


@pytest.mark.parametrize(
    "kind",
    [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view()],
)
def test_any_binary_column_type_is_accepted(kind: pa.DataType) -> None:
    words = ["", "short", "a word that is longer than twelve bytes", None]
    column = pa.array(words, pa.string()).cast(kind)

    (batch,) = encode_columns(pa.table({"key": column, "value": column}))

    wanted = [word if word is None else word.encode() for word in words]
    assert [(record.key, record.value) for record in decode_batch(batch)] == [(w, w) for w in wanted]


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
@pytest.mark.parametrize(
    "sizes",
    [
        # Around the limits of one- and two-byte lengths and of copying by words, and over many pages.
        pytest.param([1, 7, 8, 9, 63, 64, 65, 127, 128, 129, 400] * 200, id="short"),
        pytest.param([0, 20_000, 3, 70_000, 129] * 2, id="long"),
        pytest.param([600, 0, 12, 129, 8_191, 8_192, 2_000] * 100, id="gathered"),
    ],
)
def test_cells_of_every_size_get_the_bytes_that_the_builder_gives_them(
    sizes: list[int], codec: Codec, kind: pa.DataType
) -> None:
    values = [bytes([n % 251]) * size if n % 17 else None for n, size in enumerate(sizes)]
    keys = [b"%d" % n * (n % 40) if n % 5 else None for n in range(len(sizes))]
    headers = [[("name", value)] if n % 7 == 0 else [] for n, value in enumerate(values)]
    times = [NOON + n * n for n in range(len(sizes))]
    rows = pa.table(
        {
            "key": pa.array(keys, pa.binary()),
            "value": pa.array(values, kind),
            "timestamp": pa.array(times, pa.timestamp("ms")),
            "headers": pa.array([[{"key": k, "value": v} for k, v in some] for some in headers], HEADERS),
        }
    )

    (batch,) = encode_columns(rows, codec=codec, batch_bytes=1 << 30)

    assert batch == build_batch(list(zip(times, keys, values, headers, strict=True)), codec=codec)


def test_gathering_by_arrow_or_kernel_gives_the_same_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    values = [bytes([n % 251]) * (n % 3_000) for n in range(3_000)]
    rows = table(*values)

    gathered = encode_columns(rows, batch_records=70, base_offset=9, producer_id=1, base_sequence=5)
    monkeypatch.setattr(columns_write, "GATHERED_ROW", 1 << 40)
    written = encode_columns(rows, batch_records=70, base_offset=9, producer_id=1, base_sequence=5)

    assert gathered == written
    assert [record.value for batch in gathered for record in decode_batch(batch)] == values
    assert [read_header(batch).base_offset for batch in gathered] == list(range(9, 3_009, 70))


def test_a_record_without_a_key_is_gathered_too() -> None:
    # Then the text between two values is so short that Arrow stores it inside the view.
    values = [bytes([n]) * 2_000 for n in range(40)]

    (batch,) = encode_columns(table(*values))

    assert batch == build_batch([(-1, None, value, ()) for value in values])


@pytest.mark.parametrize("step_ms", [0, 5])
def test_more_than_8191_records_fit_in_a_batch(step_ms: int) -> None:
    times = [NOON + step_ms * n for n in range(10_000)]

    (batch,) = encode_columns(table(*[b"v"] * 10_000, timestamp=pa.array(times)))

    assert batch == build_batch([(time, None, b"v", ()) for time in times])


def test_the_length_of_a_record_grows_by_a_byte_where_it_must() -> None:
    values = [bytes(size) for size in [*range(50, 70), *range(8_170, 8_200)]]

    (batch,) = encode_columns(table(*values))

    assert batch == build_batch([(-1, None, value, ()) for value in values])


def test_not_more_is_gathered_at_a_time_than_batches_need(monkeypatch: pytest.MonkeyPatch) -> None:
    gather = columns_write._Source.gather
    sizes = []

    def watched(source: Any, text: bytes, views: bytes) -> memoryview:
        gathered = gather(source, text, views)
        sizes.append(len(gathered))
        return gathered

    monkeypatch.setattr(columns_write._Source, "gather", watched)
    batches = encode_columns(table(*[bytes(1_000)] * 5_000), batch_records=100)

    assert len(batches) == 50
    assert len(sizes) == 5
    assert max(sizes) < GATHER_BYTES + len(batches[0])


def test_dictionaries_and_fixed_sizes_and_nulls_will_do_too() -> None:
    names = pa.array(["red", "blue", None, "red"]).dictionary_encode()
    fixed = pa.array([b"abcd", None, b"efgh", b"ijkl"], pa.binary(4))

    named, sized, nothing = (encode_columns(pa.table({"value": c})) for c in (names, fixed, pa.nulls(4)))

    assert [record.value for record in decode_batch(named[0])] == [b"red", b"blue", None, b"red"]
    assert [record.value for record in decode_batch(sized[0])] == [b"abcd", None, b"efgh", b"ijkl"]
    assert [record.value for record in decode_batch(nothing[0])] == [None] * 4


def test_slices_and_chunks_are_read_from_where_they_start() -> None:
    whole = table(
        *[None if n % 3 == 0 else b"value number %d" % n for n in range(40)],
        key=pa.array([None if n % 5 == 0 else b"%d" % n for n in range(40)], pa.binary_view()),
        headers=pa.array([[{"key": "n", "value": b"%d" % n}] * (n % 3) for n in range(40)], HEADERS),
    )
    pieces = pa.concat_tables([whole.slice(3, 9), whole.slice(13, 20)])

    decoded = decode_columns(encode_columns(pieces))

    for name in ("key", "value", "headers"):
        assert decoded.column(name).to_pylist() == pieces.column(name).to_pylist()


def test_a_record_batch_with_offset_is_read_from_there() -> None:
    (piece,) = table(b"a", None, b"c", b"d", timestamp=pa.array([5, 6, 7, 8])).to_batches()

    (batch,) = encode_columns(piece.slice(1, 2))

    assert [(record.value, record.timestamp) for record in decode_batch(batch)] == [(None, 6), (b"c", 7)]


def test_a_large_table_is_worked_through_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = table(*[b"%d" % n for n in range(10)])

    monkeypatch.setattr(columns_write, "SLICE_ROWS", 3)

    batches = encode_columns(rows, producer_id=1, base_sequence=0)
    assert [record.value for batch in batches for record in decode_batch(batch)] == rows["value"].to_pylist()
    assert [read_header(batch).base_sequence for batch in batches] == [
        read_header(batch).base_offset for batch in batches
    ]
    assert len(batches) > 1


def test_a_missing_or_null_timestamp_is_the_given_default() -> None:
    times = pa.array([NOON, None], pa.timestamp("ms"))

    (with_nulls,) = encode_columns(table(b"a", b"b", timestamp=times), timestamp_ms=5)
    (without,) = encode_columns(table(b"a", b"b"), timestamp_ms=5)
    (unknown,) = encode_columns(table(b"a"))

    assert [record.timestamp for record in decode_batch(with_nulls)] == [NOON, 5]
    assert [record.timestamp for record in decode_batch(without)] == [5, 5]
    assert [record.timestamp for record in decode_batch(unknown)] == [-1]


def test_timestamps_of_any_unit_become_milliseconds() -> None:
    at = datetime(2024, 5, 6, 7, 8, 9, 123_456, tzinfo=UTC)
    kinds = [pa.timestamp("us"), pa.timestamp("ns", "UTC"), pa.timestamp("ms", "Europe/Prague")]

    columns = [pa.array([at], pa.timestamp("us", "UTC")).cast(kind, safe=False) for kind in kinds]
    columns.append(pa.array([int(at.timestamp() * 1000)], pa.int64()))

    for column in columns:
        (batch,) = encode_columns(table(b"a", timestamp=column))
        assert decode_batch(batch)[0].timestamp == 1_714_979_289_123


def test_decoded_rows_encode_to_the_same_bytes() -> None:
    rows = table(b"a", b"long enough to be pointed at", key=pa.array([b"k", None], pa.binary()))
    batches = encode_columns(rows, base_offset=3)

    for views in (False, True):
        assert encode_columns(decode_columns(batches, views=views), base_offset=3) == batches


def test_no_rows_are_no_batches() -> None:
    assert encode_columns(table()) == []


@pytest.mark.parametrize(
    ("columns", "what"),
    [
        ({"key": [b"a"]}, "column value is missing"),
        ({"value": [1]}, "column value has type int64, expected binary or string"),
        ({"value": [b"a"], "key": [1.5]}, "column key has type double"),
        ({"value": [b"a"], "timestamp": ["noon"]}, "column timestamp has type string"),
        ({"value": [b"a"], "headers": ["x"]}, "column headers has type string, expected list of struct"),
        ({"value": [b"a"], "headers": [[{"key": "k"}]]}, "column headers has type list"),
        (
            {"value": [b"a"], "headers": [[{"key": b"\xff", "value": b""}]]},
            "cannot convert column headers.key of type binary",
        ),
    ],
)
def test_a_table_that_cannot_be_records_is_refused(columns: dict[str, list[Any]], what: str) -> None:
    with pytest.raises(UnfitColumns, match=what):
        encode_columns(pa.table(columns))


@pytest.mark.parametrize("time", [-2, -(2**63), 2**63 - 2, 2**63 - 1])
def test_a_time_out_of_range_is_refused(time: int) -> None:
    with pytest.raises(InvalidBatch, match=f"row 1: timestamp {time} is out of range"):
        encode_columns(table(b"a", b"b", timestamp=pa.array([-1, time], pa.int64())))


def test_a_header_without_a_name_is_refused() -> None:
    with pytest.raises(InvalidBatch, match="row 1: a header key is null"):
        encode_columns(table(b"a", b"b", headers=pa.array([[], [{"key": None, "value": b""}]], HEADERS)))


@pytest.mark.parametrize("size", [10, 1_000, 20_000])
@pytest.mark.parametrize(
    ("end", "what"),
    [(-1, "row 1: cell offsets"), (99, "row 1: cell offsets"), (900, "outside the data")],
)
def test_offsets_that_lie_are_refused(end: int, what: str, size: int) -> None:
    # The parameter is the end of the second of three cells, in per cent of a cell.
    ends = [0, size, end * size // 100, 3 * size]
    offsets = b"".join(number.to_bytes(4, "little", signed=True) for number in ends)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(bytes(3 * size))]
    column = pa.Array.from_buffers(pa.binary(), 3, buffers)

    with pytest.raises(InvalidBatch, match=what):
        encode_columns(pa.table({"value": column}))


def test_a_column_that_came_with_too_little_data_is_refused() -> None:
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, table().schema) as writer:
        writer.write_table(table(b"abc", b"defg"))
    # The last offset, which readers of a stream do not check.
    bad = stream.getvalue().to_pybytes().replace(b"\3\0\0\0\7\0\0\0", b"\3\0\0\0\7\1\0\0")
    rows = pa.ipc.open_stream(bad).read_all()

    with pytest.raises(UnfitColumns, match="column value of type binary: Length spanned by binary offsets"):
        encode_columns(rows)
