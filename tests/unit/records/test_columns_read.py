"""Fetched batches become columns, without the records that a consumer must not see."""

import struct
from typing import Any

import pyarrow as pa
import pytest

from barnabas.records import column_seal, column_walk, header
from barnabas.records.area import record_area
from barnabas.records.builder import build_batch
from barnabas.records.column_walk import ARENA_MAX, SMALL_AREA
from barnabas.records.columns_read import column_schema, decode_columns, decode_fetched
from barnabas.records.control import ControlType, build_control_batch
from barnabas.records.errors import (
    CorruptBatch,
    DecompressedTooLarge,
    DecompressionFailed,
    UnknownCodec,
    UnsupportedMagic,
)
from barnabas.records.header import (
    ATTRIBUTES_AT,
    BATCH_LENGTH_AT,
    COUNT_AT,
    CRC_AT,
    LAST_OFFSET_DELTA_AT,
    MAGIC_AT,
    MAX_TIMESTAMP_AT,
    Codec,
    TimestampType,
    crc32c_of,
    read_header,
)
from support.memory import peak_of

pytestmark = pytest.mark.kernel

NOON = 1_700_000_000_000


def batch(*values: bytes | None, at: int = 0, **options: Any) -> bytes:
    return build_batch([(NOON, b"key", value, ()) for value in values], base_offset=at, **options)


def transactional(*values: bytes, at: int, producer: int = 7) -> bytes:
    return batch(*values, at=at, transactional=True, producer_id=producer, producer_epoch=0, base_sequence=0)


def marker(kind: ControlType, *, at: int, producer: int = 7) -> bytes:
    return build_control_batch(
        kind, bytes(6), timestamp=NOON, base_offset=at, leader_epoch=0, producer_id=producer, producer_epoch=0
    )


def signed(data: bytes, at: int, form: str, value: int) -> bytes:
    """Overwrite one field of a batch and correct its CRC."""
    whole = bytearray(data)
    struct.pack_into(form, whole, at, value)
    struct.pack_into(">I", whole, CRC_AT, crc32c_of(whole, ATTRIBUTES_AT, len(whole)))
    return bytes(whole)


def with_area(area: bytes, count: int = 1) -> bytes:
    """A batch of `count` records whose record area is `area`."""
    whole = bytearray(batch(b"")[:61] + area)
    struct.pack_into(">i", whole, BATCH_LENGTH_AT, len(whole) - 12)
    return signed(bytes(whole), COUNT_AT, ">i", count)


def values(rows: pa.RecordBatch) -> list[bytes | None]:
    return rows.column("value").to_pylist()


@pytest.mark.parametrize("views", [False, True])
def test_every_field_of_a_record_has_its_column(views: bool) -> None:
    headers = [("trace", b"\x00\xff"), ("ü", None)]
    data = build_batch([(NOON, b"k", b"v", headers), (NOON + 5, None, None, [])], base_offset=40)

    rows = decode_columns(data, views=views)

    rows.validate(full=True)
    assert rows.schema == column_schema(views=views)
    assert rows.column("timestamp").cast(pa.int64()).to_pylist() == [NOON, NOON + 5]
    assert rows.drop_columns(["timestamp"]).to_pylist() == [
        {
            "offset": 40,
            "timestamp_type": 0,
            "key": b"k",
            "value": b"v",
            "headers": [{"key": "trace", "value": b"\x00\xff"}, {"key": "ü", "value": None}],
        },
        {"offset": 41, "timestamp_type": 0, "key": None, "value": None, "headers": []},
    ]


@pytest.mark.parametrize("views", [False, True])
def test_values_of_every_length_are_read_completely(views: bool) -> None:
    """Arrow stores up to 12 bytes in the view, and no bytes follow the last value of a source."""
    wanted = [bytes(range(200, 200 + size)) for size in range(30)]

    together = decode_columns(batch(*wanted), views=views)
    alone = [decode_columns(batch(value), views=views) for value in wanted]

    assert values(together) == wanted
    assert [values(rows) for rows in alone] == [[value] for value in wanted]


@pytest.mark.parametrize("size", range(14))
@pytest.mark.parametrize("codec", Codec)
def test_a_last_header_value_of_any_length_is_read_completely(size: int, codec: Codec) -> None:
    """Only this value ends exactly at the end of the bytes."""
    value = bytes(range(243, 243 + size)) if size < 13 else bytes(size)
    data = build_batch([(NOON, None, b"", [("name", value)])], codec=codec)

    rows = decode_columns(data)

    assert rows.column("headers").to_pylist() == [[{"key": "name", "value": value}]]


def test_log_append_time_is_the_time_of_every_record() -> None:
    records = [(NOON, None, b"a", ()), (NOON + 9, None, b"b", ())]

    rows = decode_columns(
        build_batch(records, timestamp_type=TimestampType.LOG_APPEND_TIME) + batch(b"c", at=2)
    )

    assert rows.column("timestamp").cast(pa.int64()).to_pylist() == [NOON + 9, NOON + 9, NOON]
    assert rows.column("timestamp_type").to_pylist() == [1, 1, 0]


@pytest.mark.parametrize("codec", Codec)
def test_many_batches_in_many_buffers_are_one_result(codec: Codec) -> None:
    large = b"x" * SMALL_AREA
    first = batch(b"a", b"b", codec=codec) + batch(large, at=2, codec=codec)
    second = batch(b"c", at=3, codec=codec) + batch(b"longer than a view holds", at=4)

    rows = decode_columns([first, bytearray(second)])

    assert values(rows) == [b"a", b"b", large, b"c", b"longer than a view holds"]
    assert rows.column("offset").to_pylist() == [0, 1, 2, 3, 4]


def test_a_view_into_a_larger_frame_is_read_in_place() -> None:
    value = b"long enough to be pointed at"
    frame = b"something before" + batch(value) + b"something after"

    rows = decode_columns(memoryview(frame)[16:-15], views=True)

    assert values(rows) == [value]
    _, _, *data = rows.column("value").buffers()
    assert pa.py_buffer(frame).address in [buffer.address for buffer in data]


def test_nothing_gives_no_rows() -> None:
    for nothing in (b"", [], [b"", b""]):
        rows = decode_columns(nothing)

        assert rows.num_rows == 0
        assert rows.schema == column_schema()


def test_records_before_the_wanted_offset_are_left_out() -> None:
    headers = [("only", b"here")]
    middle = build_batch(
        [(NOON, None, b"%d" % n, headers if n != 4 else ()) for n in (3, 4, 5)], base_offset=3
    )

    rows = decode_columns(batch(b"0", b"1", b"2") + middle, from_offset=4)

    assert values(rows) == [b"4", b"5"]
    assert rows.column("headers").to_pylist() == [[], [{"key": "only", "value": b"here"}]]


def test_batches_before_the_wanted_offset_are_not_unpacked() -> None:
    spoilt = signed(batch(b"0", codec=Codec.LZ4), 61, ">I", 0xDEADBEEF)

    assert values(decode_columns(spoilt + batch(b"1", at=1), from_offset=1)) == [b"1"]
    with pytest.raises(DecompressionFailed):
        decode_columns(spoilt + batch(b"1", at=1))


def test_a_fetch_may_end_in_the_middle_of_a_batch() -> None:
    first, second = batch(b"a", b"b"), batch(b"c", at=2)

    for cut in range(1, len(second)):
        fetched = decode_fetched(first + second[:cut])

        assert values(fetched.rows) == [b"a", b"b"]
        assert (fetched.next_offset, fetched.consumed) == (2, len(first))


def test_a_partial_batch_is_an_error_unless_it_is_expected() -> None:
    with pytest.raises(CorruptBatch, match="batch at byte 0: batch is truncated after 20 bytes"):
        decode_columns(batch(b"a")[:20])


def test_without_a_complete_batch_there_is_no_next_offset() -> None:
    fetched = decode_fetched(batch(b"a")[:-1])

    assert (fetched.rows.num_rows, fetched.next_offset, fetched.consumed) == (0, None, 0)


def test_control_batches_are_left_out_but_move_the_next_offset() -> None:
    fetched = decode_fetched(transactional(b"a", at=0) + marker(ControlType.COMMIT, at=1))

    assert values(fetched.rows) == [b"a"]
    assert fetched.next_offset == 2


def test_control_batches_are_returned_on_request() -> None:
    rows = decode_columns(marker(ControlType.COMMIT, at=1), skip_control=False)

    assert rows.column("key").to_pylist() == [b"\x00\x00\x00\x01"]


def test_an_aborted_transaction_is_left_out_until_its_marker() -> None:
    data = (
        transactional(b"committed before", at=0)
        + marker(ControlType.COMMIT, at=1)
        + transactional(b"aborted", at=2)
        + transactional(b"of another producer", at=3, producer=8)
        + batch(b"of no transaction", at=4, producer_id=7, producer_epoch=0, base_sequence=1)
        + transactional(b"aborted as well", at=5)
        + marker(ControlType.ABORT, at=6)
        + transactional(b"a new one", at=7)
    )

    rows = decode_columns(data, aborted=[(7, 2)])

    assert values(rows) == [b"committed before", b"of another producer", b"of no transaction", b"a new one"]


def test_two_aborted_transactions_of_one_producer_are_both_left_out() -> None:
    data = (
        transactional(b"one", at=0)
        + marker(ControlType.ABORT, at=1)
        + transactional(b"kept", at=2)
        + marker(ControlType.COMMIT, at=3)
        + transactional(b"two", at=4)
        + marker(ControlType.ABORT, at=5)
    )

    assert values(decode_columns(data, aborted=[(7, 4), (7, 0)])) == [b"kept"]


def test_a_commit_marker_does_not_end_an_aborted_transaction() -> None:
    data = (
        marker(ControlType.COMMIT, at=3) + transactional(b"aborted", at=4) + marker(ControlType.ABORT, at=5)
    )

    assert values(decode_columns(data, aborted=[(7, 2)])) == []


def test_a_flipped_bit_is_seen_by_the_crc_unless_that_is_off() -> None:
    data = bytearray(batch(b"a long enough value"))
    data[-3] ^= 1

    with pytest.raises(CorruptBatch, match="batch at byte 0: CRC is 0x"):
        decode_columns(data)
    assert len(values(decode_columns(data, check_crc=False))) == 1


@pytest.mark.parametrize(
    ("damaged", "wanted"),
    [
        (batch(b"a" * 5000), 0),
        (batch(b"a", at=0), 9),
        (batch(b"a", at=0, codec=Codec.GZIP), 0),
        (batch(b"a", at=0, codec=Codec.GZIP), 9),
        (transactional(b"a", at=0), 0),
        (marker(ControlType.COMMIT, at=0), 0),
        (with_area(b"", count=0), 0),
    ],
    ids=["plain", "plain-before", "gzip", "gzip-before", "transactional", "marker", "emptied"],
)
def test_every_batch_is_checked_whether_or_not_its_records_are_wanted(damaged: bytes, wanted: int) -> None:
    # Bytes of fields that a reader ignores, so that only the CRC detects the change.
    whole = bytearray(damaged)
    whole[MAX_TIMESTAMP_AT] ^= 1
    good = batch(b"b", at=100)

    with pytest.raises(CorruptBatch, match="batch at byte 0: CRC is 0x"):
        decode_columns(bytes(whole) + good, from_offset=wanted)
    assert values(decode_columns(damaged + good, from_offset=50)) == [b"b"]


@pytest.mark.parametrize(
    ("at", "form", "value", "error"),
    [
        (MAGIC_AT, ">b", 1, UnsupportedMagic),
        (BATCH_LENGTH_AT, ">i", 48, CorruptBatch),
        (BATCH_LENGTH_AT, ">i", -1, CorruptBatch),
        (0, ">q", -1, CorruptBatch),
        (0, ">q", 2**63 - 1, CorruptBatch),
        (LAST_OFFSET_DELTA_AT, ">i", -1, CorruptBatch),
        (COUNT_AT, ">i", -1, CorruptBatch),
        (COUNT_AT, ">i", 2**31 - 1, CorruptBatch),
        (COUNT_AT, ">i", 2, CorruptBatch),
        (ATTRIBUTES_AT, ">h", 5, UnknownCodec),
    ],
)
def test_a_header_that_cannot_be_is_refused(at: int, form: str, value: int, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"^batch (at byte|with base offset) 0: |^record 1 of the batch"):
        decode_columns(signed(batch(b"a value of some length"), at, form, value))


@pytest.mark.parametrize(
    ("area", "what"),
    [
        # length, attributes, timestamp, offset, key length, value length, header count
        (bytes([12, 0, 0, 0, 1, 1, 0, 9]), "1 bytes follow the last of 1 records"),
        (bytes([16, 0, 0, 0, 1, 1, 0]), "record length is out of range"),
        (bytes([11, 0, 0, 0, 1, 1, 0]), "record length is out of range"),
        (bytes([14, 0, 0, 0, 1, 1, 0, 9]), "headers do not end at the end of the record"),
        (bytes([12, 0, 0, 1, 1, 1, 0]), "offset delta is out of range"),
        (bytes([12, 0, 0, 0, 3, 1, 0]), "key length is out of range"),
        (bytes([12, 0, 0, 0, 20, 1, 0]), "key length is out of range"),
        (bytes([12, 0, 0, 0, 1, 3, 0]), "value length is out of range"),
        (bytes([12, 0, 0, 0, 1, 20, 0]), "value length is out of range"),
        (bytes([12, 0, 0, 0, 1, 1, 1]), "headers do not end at the end of the record"),
        (bytes([12, 0, 0, 0, 1, 1, 2]), "headers do not end at the end of the record"),
        (bytes([16, 0, 0, 0, 1, 1, 2, 1, 1]), "headers do not end at the end of the record"),
        (bytes([16, 0, 0, 0, 1, 1, 2, 0, 3]), "headers do not end at the end of the record"),
        (bytes([12, 0, 255, 255, 255, 255, 255]), "key length is out of range"),
        (bytes([0, 0, 0, 0, 0, 0, 0]), "key length is out of range"),
    ],
)
def test_a_record_that_does_not_parse_is_refused(area: bytes, what: str) -> None:
    with pytest.raises(CorruptBatch, match=what):
        decode_columns(with_area(area))


@pytest.mark.parametrize(("base", "delta"), [(2**63 - 1, 1), (-(2**63), -1), (-2, -(2**63) + 1)])
def test_a_timestamp_that_leaves_its_range_is_refused(base: int, delta: int) -> None:
    zigzag = delta << 1 ^ delta >> 63
    varint = bytes((zigzag >> shift & 0x7F) | 0x80 for shift in range(0, 63, 7)) + bytes([zigzag >> 63 & 1])
    body = b"\x00" + varint + bytes([0, 1, 1, 0])
    data = signed(with_area(bytes([2 * len(body)]) + body), 27, ">q", base)

    with pytest.raises(CorruptBatch, match="record 0 of the batch with base offset 0: timestamp is out"):
        decode_columns(data)


def test_a_header_name_that_is_not_utf8_is_named() -> None:
    data = build_batch(
        [(NOON, None, b"", []), (NOON, None, b"", [("good", b""), ("bad!", b"")])], base_offset=5
    )
    spoilt = signed(data.replace(b"bad!", b"ba\xff!"), COUNT_AT, ">i", 2)

    with pytest.raises(CorruptBatch, match=r"record at offset 6: header name b'ba\\xff!' is not UTF-8"):
        decode_columns(spoilt)


def test_compressed_batches_share_one_limit() -> None:
    data = b"".join(batch(bytes(1000), at=at, codec=Codec.LZ4) for at in range(3))

    assert decode_columns(data, limit=3100).num_rows == 3
    with pytest.raises(DecompressedTooLarge):
        decode_columns(data, limit=2500)
    with pytest.raises(DecompressedTooLarge, match="the decompression limit of this read is used up"):
        decode_columns(data, limit=len(batch(bytes(1000))) - 61)


@pytest.mark.parametrize("codec", Codec)
def test_a_batch_that_compaction_emptied_only_moves_the_next_offset(codec: Codec) -> None:
    emptied = signed(with_area(b"", count=0), LAST_OFFSET_DELTA_AT, ">i", 9)

    fetched = decode_fetched(signed(emptied, ATTRIBUTES_AT, ">h", codec))

    assert (fetched.rows.num_rows, fetched.next_offset) == (0, 10)
    with pytest.raises(CorruptBatch, match="7 bytes follow the last of 0 records"):
        decode_columns(with_area(bytes(7), count=0))


def test_a_lying_count_allocates_nothing() -> None:
    data = signed(batch(b"a"), COUNT_AT, ">i", 2**31 - 1)
    area = bytes([14, 0, 0, 0, 1, 1, 0xFE, 0xFF])
    many_headers = with_area(area)

    def refused() -> None:
        for lie in (data, many_headers):
            with pytest.raises(CorruptBatch):
                decode_columns(lie)

    assert peak_of(refused, limit=100_000) <= 100_000


def test_memory_behind_unpacked_records_is_not_shown() -> None:
    batch = build_batch([(0, None, b"v" * 100, ())], codec=Codec.LZ4)

    rows = decode_columns([batch], views=True)

    # The buffers: the fetch itself, and exactly the one decompressed record.
    _, _, *beneath = rows.column("value").buffers()
    assert [buffer.size for buffer in beneath] == [
        len(batch),
        len(record_area(batch, 0, read_header(batch))[0]),
    ]


@pytest.mark.parametrize(
    ("codec", "value_size"),
    [(Codec.LZ4, 50_000), (Codec.LZ4, 1_000), (Codec.GZIP, 10_000), (Codec.ZSTD, 1_000)],
)
def test_many_small_areas_fill_one_source_after_the_other(codec: Codec, value_size: int) -> None:
    # Three times the maximum size of a source for small areas.
    values = [b"%08d" % i * (value_size // 8) for i in range(3 * ARENA_MAX // value_size)]
    batches = [
        build_batch([(i, None, value, ())], base_offset=i, codec=codec) for i, value in enumerate(values)
    ]

    for views in (False, True):
        rows = decode_columns(b"".join(batches), views=views)

        assert rows.column("value").to_pylist() == values


def test_decompressed_lz4_data_counts_towards_the_limit() -> None:
    batch = build_batch([(0, None, bytes(50_000), ())], codec=Codec.LZ4)

    assert decode_columns(batch * 3, limit=160_000).num_rows == 3
    with pytest.raises(DecompressedTooLarge):
        decode_columns(batch * 3, limit=140_000)


def test_decompressed_abort_markers_count_towards_the_limit() -> None:
    seven, eight = (
        build_batch(
            [(0, bytes(4), bytes(50_000), ())],
            codec=Codec.GZIP,
            producer_id=producer,
            producer_epoch=0,
            transactional=True,
            control=True,
        )
        for producer in (7, 8)
    )

    assert decode_columns(seven, aborted=[(7, 0), (8, 0)], limit=60_000).num_rows == 0
    with pytest.raises(DecompressedTooLarge):
        decode_columns(seven + eight, aborted=[(7, 0), (8, 0)], limit=60_000)


@pytest.mark.parametrize("kernel", [column_walk, column_seal])
def test_the_kernels_constants_are_those_of_the_header(kernel: Any) -> None:
    shared = {name for name in vars(kernel) if name.isupper() and hasattr(header, name)}
    # Positions in column_seal are relative to the start of the covered part.
    shared -= {"LAST_OFFSET_DELTA_AT", "MAX_TIMESTAMP_AT", "COUNT_AT"} if kernel is column_seal else set()

    assert len(shared) >= 4
    assert {name: getattr(kernel, name) for name in shared} == {
        name: getattr(header, name) for name in shared
    }
