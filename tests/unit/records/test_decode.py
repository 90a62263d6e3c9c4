"""Hand-written record areas, because our own builder never writes these bytes."""

import pytest

from barnabas.records.builder import seal
from barnabas.records.codecs import compress
from barnabas.records.decode import decode_batch, decode_first
from barnabas.records.errors import CorruptBatch, DecompressedTooLarge, DecompressionFailed, UnknownCodec
from barnabas.records.header import BatchHeader, Codec
from barnabas.records.record import Record

pytestmark = pytest.mark.kernel

# Length 8 (zigzag 16), attributes, timestamp delta 1, offset delta 0, key "k", value "v", no headers.
PLAIN = bytes([16, 0, 2, 0, 2, 0x6B, 2, 0x76, 0])


def batch(area: bytes, count: int = 1, codec: Codec = Codec.NONE, **fields: int) -> bytes:
    header = BatchHeader(
        base_offset=100,
        batch_length=0,
        leader_epoch=0,
        magic=2,
        crc=0,
        attributes=int(codec),
        last_offset_delta=max(0, count - 1),
        base_timestamp=5000,
        max_timestamp=6000,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        count=count,
    )
    return seal(header._replace(**fields), area, codec)


def record(body: bytes) -> bytes:
    assert len(body) < 64
    return bytes([len(body) * 2]) + body


def test_a_record_is_its_deltas_added_to_the_base() -> None:
    assert decode_batch(batch(PLAIN)) == [Record(100, 5001, b"k", b"v")]


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
@pytest.mark.parametrize("codec", Codec)
def test_a_batch_is_decoded_in_place(kind: type, codec: Codec) -> None:
    data = kind(b"before" + batch(PLAIN, codec=codec) + b"after")

    assert decode_batch(data, 6) == [Record(100, 5001, b"k", b"v")]


def test_null_and_empty_are_not_the_same() -> None:
    area = record(bytes([0, 0, 0, 1, 0, 0])) + record(bytes([0, 0, 2, 0, 1, 0]))

    assert decode_batch(batch(area, 2)) == [Record(100, 5000, None, b""), Record(101, 5000, b"", None)]


def test_headers_keep_their_order_and_may_repeat() -> None:
    headers = bytes([6, 2, 0x68, 2, 0x31, 2, 0x68, 1, 4]) + "ü".encode() + bytes([0])

    (decoded,) = decode_batch(batch(record(bytes([0, 0, 0, 1, 1]) + headers)))

    assert decoded.headers == (("h", b"1"), ("h", None), ("ü", b""))


def test_attributes_of_a_record_are_ignored() -> None:
    assert decode_batch(batch(record(bytes([0xFF, 0, 0, 1, 1, 0])))) == [Record(100, 5000, None, None)]


def test_under_log_append_time_every_record_has_the_max_timestamp() -> None:
    area = PLAIN + record(bytes([0, 9, 2, 1, 1, 0]))

    assert [r.timestamp for r in decode_batch(batch(area, 2, attributes=0x08))] == [6000, 6000]


def test_compaction_leaves_holes() -> None:
    area = record(bytes([0, 0, 6, 1, 1, 0])) + record(bytes([0, 0, 40, 1, 1, 0]))

    assert [r.offset for r in decode_batch(batch(area, 2, last_offset_delta=50))] == [103, 120]


@pytest.mark.parametrize("attributes", range(5))
def test_a_batch_without_records_is_empty_with_any_codec(attributes: int) -> None:
    assert decode_batch(batch(b"", 0, attributes=attributes, last_offset_delta=9)) == []


def test_negative_deltas_of_time_are_allowed() -> None:
    assert decode_batch(batch(record(bytes([0, 1, 0, 1, 1, 0]))))[0].timestamp == 4999


BODY_TOO_SHORT = record(bytes([0, 0, 0, 1, 1]))
BAD_AREAS = {
    "no bytes for the count": (b"", 1, "1 records do not fit in 0 bytes"),
    "a negative count": (PLAIN, -1, "-1 records"),
    "a count that the bytes cannot hold": (PLAIN, 2, "2 records do not fit in 9 bytes"),
    "a body that is too short": (BODY_TOO_SHORT + b"\0", 1, "record length 5 is out of range"),
    "a negative length": (bytes([1, 0, 0, 0, 1, 1, 0]), 1, "record length -1"),
    "a length past the end": (bytes([18]) + PLAIN[1:], 1, "record length 9 is out of range"),
    "a length that does not end": (b"\xff" * 9, 1, "record length"),
    "bytes after the last record": (PLAIN + b"\0", 1, "1 bytes follow the last record"),
    "a record longer than its fields": (
        record(bytes([0, 0, 0, 1, 1, 0, 0])),
        1,
        "1 bytes follow the last field",
    ),
    "a record shorter than its fields": (bytes([14]) + PLAIN[1:], 1, "out of range"),
    "a timestamp that does not end": (record(bytes([0] + [0xFF] * 10)), 1, "timestamp delta is truncated"),
    "a negative offset delta": (record(bytes([0, 0, 1, 1, 1, 0])), 1, "offset delta -1"),
    "an offset delta past 31 bits": (
        record(bytes([0, 0, 0x80, 0x80, 0x80, 0x80, 0x10, 1, 1, 0])),
        1,
        "offset delta 2147483648",
    ),
    "a key length below null": (record(bytes([0, 0, 0, 3, 1, 0])), 1, "key length -2"),
    "a key past the record": (record(bytes([0, 0, 0, 8, 1, 0])), 1, "key length 4"),
    "a value length below null": (record(bytes([0, 0, 0, 1, 3, 0])), 1, "value length -2"),
    "a value past the record": (record(bytes([0, 0, 0, 1, 4, 0])), 1, "value length 2"),
    "a negative number of headers": (record(bytes([0, 0, 0, 1, 1, 1])), 1, "header count -1"),
    "more headers than bytes": (
        record(bytes([0, 0, 0, 1, 1, 4, 0, 1, 0])),
        1,
        "header count 2 is out of range",
    ),
    "more headers than 64 bits of bytes": (
        record(bytes([0, 0, 0, 1, 1] + [0xFE] + [0xFF] * 8 + [1, 0, 1])),
        1,
        "header count -?[0-9]+ is out of range",
    ),
    "a null header name": (record(bytes([0, 0, 0, 1, 1, 2, 1, 1])), 1, "header name length -1"),
    "a header name past the record": (record(bytes([0, 0, 0, 1, 1, 2, 4, 1])), 1, "header name length 2"),
    "a header value below null": (record(bytes([0, 0, 0, 1, 1, 2, 0, 3])), 1, "header value length -2"),
    "a header value past the record": (record(bytes([0, 0, 0, 1, 1, 2, 0, 2])), 1, "header value length 1"),
    "a header name that is not UTF-8": (record(bytes([0, 0, 0, 1, 1, 2, 2, 0xFF, 1])), 1, "not UTF-8"),
    "a byte after the headers": (
        record(bytes([0, 0, 0, 1, 1, 2, 0, 1, 7])),
        1,
        "1 bytes follow the last field",
    ),
}


@pytest.mark.parametrize(("area", "count", "says"), BAD_AREAS.values(), ids=BAD_AREAS.keys())
def test_corrupt_is(area: bytes, count: int, says: str) -> None:
    for codec in (Codec.NONE, Codec.ZSTD):
        with pytest.raises(CorruptBatch, match=says):
            decode_batch(batch(area, count, codec) if area else batch(b"", count))


def test_the_error_names_the_batch_and_the_record() -> None:
    area = PLAIN + PLAIN + record(bytes([0, 0, 0, 3, 1, 0]))

    with pytest.raises(CorruptBatch, match=r"^batch at byte 6, record 2: key length"):
        decode_batch(b"before" + batch(area, 3), 6)


@pytest.mark.parametrize(("base", "delta"), [(2**63 - 1, 2), (-(2**63), 1)])
def test_a_timestamp_past_64_bits_is_corrupt(base: int, delta: int) -> None:
    with pytest.raises(CorruptBatch, match="timestamp is out of range"):
        decode_batch(batch(record(bytes([0, delta, 0, 1, 1, 0])), base_timestamp=base))


@pytest.mark.parametrize(
    ("base", "delta", "sum_of"), [(2**63 - 2, 2, 2**63 - 1), (-(2**63) + 1, 1, -(2**63))]
)
def test_a_timestamp_may_use_all_64_bits(base: int, delta: int, sum_of: int) -> None:
    assert (
        decode_batch(batch(record(bytes([0, delta, 0, 1, 1, 0])), base_timestamp=base))[0].timestamp == sum_of
    )


@pytest.mark.parametrize("offset", [-1, -(2**63), 2**63 - 1])
def test_a_base_offset_that_no_log_has_is_corrupt(offset: int) -> None:
    with pytest.raises(CorruptBatch, match="base offset"):
        decode_batch(batch(PLAIN, base_offset=offset))


def test_a_truncated_batch_is_corrupt() -> None:
    whole = batch(PLAIN)

    for size in range(len(whole)):
        with pytest.raises(CorruptBatch):
            decode_batch(whole[:size])


def test_an_unknown_codec_is_refused() -> None:
    with pytest.raises(UnknownCodec, match="codec 5"):
        decode_batch(batch(PLAIN, attributes=5))


def test_a_record_area_that_does_not_unpack_is_refused() -> None:
    with pytest.raises(DecompressionFailed):
        decode_batch(batch(PLAIN, attributes=int(Codec.GZIP)))


def test_the_limit_holds_for_compressed_records() -> None:
    big = batch(compress(Codec.ZSTD, bytes(1 << 20)), attributes=int(Codec.ZSTD))

    with pytest.raises(DecompressedTooLarge):
        decode_batch(big, limit=1 << 19)


def test_the_first_records_are_decoded_alone() -> None:
    whole = batch(PLAIN * 5, count=5)

    assert decode_first(whole, 2) == decode_batch(whole)[:2]
    assert decode_first(whole, 7) == decode_batch(whole)


def test_the_first_records_end_before_a_damaged_one() -> None:
    damaged = batch(PLAIN * 2 + b"\x7f" + PLAIN, count=4)

    assert len(decode_first(damaged, 4)) == 2
