import struct

import pytest

from barnabas.records.builder import build_batch, seal
from barnabas.records.errors import CorruptBatch, InvalidBatch, UnknownCodec, UnsupportedMagic
from barnabas.records.header import (
    BATCH_LENGTH_AT,
    CRC_AT,
    LAST_OFFSET_DELTA_AT,
    MAGIC_AT,
    BatchHeader,
    Codec,
    TimestampType,
    read_header,
    stamp,
)
from barnabas.records.rebuild import empty_batch, rebuild_batch
from barnabas.records.validate import RecordFacts, check_batch, check_produced, check_records

pytestmark = pytest.mark.kernel

RECORDS = [(1000 + i, b"k%d" % i, b"value %d" % i, ()) for i in range(3)]


def altered(codec: Codec = Codec.NONE, **fields: int) -> bytes:
    """A valid batch with changed header fields and a matching CRC."""
    plain = build_batch(RECORDS)
    header = read_header(plain)._replace(attributes=int(codec))
    return seal(header._replace(**fields), plain[61:], codec)


def area(header: BatchHeader, records: bytes) -> bytes:
    return seal(header, records, Codec.NONE)


@pytest.mark.parametrize("codec", Codec)
def test_a_valid_batch_passes_at_every_level(codec: Codec) -> None:
    data = build_batch(RECORDS, codec=codec)

    header = check_batch(data)

    assert header == read_header(data)
    assert check_produced(data) == header
    assert check_records(data) == RecordFacts(1002, 1000, None)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_a_batch_is_checked_in_place(kind: type) -> None:
    data = kind(b"before" + build_batch(RECORDS))

    assert check_batch(data, 6).count == 3
    assert check_produced(data, 6).count == 3
    assert check_records(data, 6).max_timestamp == 1002


def test_every_flipped_bit_after_the_crc_is_detected() -> None:
    data = build_batch(RECORDS)

    for at in range(CRC_AT, len(data)):
        broken = bytearray(data)
        broken[at] ^= 0x10
        with pytest.raises(CorruptBatch, match="CRC"):
            check_batch(broken)


def test_a_wrong_length_is_detected() -> None:
    for change in (-1, 1, 1000):
        data = bytearray(build_batch(RECORDS))
        (length,) = struct.unpack_from(">i", data, BATCH_LENGTH_AT)
        struct.pack_into(">i", data, BATCH_LENGTH_AT, length + change)
        with pytest.raises(CorruptBatch):
            check_batch(data)


def test_another_magic_is_not_supported() -> None:
    data = bytearray(build_batch(RECORDS))
    data[MAGIC_AT] = 1

    with pytest.raises(UnsupportedMagic):
        check_batch(data)


@pytest.mark.parametrize("bits", [5, 6, 7])
def test_an_unknown_codec_is_refused(bits: int) -> None:
    with pytest.raises(UnknownCodec, match=f"batch at byte 0: compression codec {bits}"):
        check_batch(altered(attributes=bits))


@pytest.mark.parametrize("bit", [0x80, 0x100, 0x4000, -0x8000])
def test_unknown_attributes_are_refused(bit: int) -> None:
    with pytest.raises(CorruptBatch, match="unknown attributes"):
        check_batch(altered(attributes=bit))


@pytest.mark.parametrize(
    "fields",
    [
        {"count": -1},
        {"count": 4},
        {"count": 3, "last_offset_delta": 1},
        {"count": 0, "last_offset_delta": -1},
        {"count": 1000, "last_offset_delta": 999},
        {"base_offset": -1},
    ],
)
def test_a_header_that_cannot_be_true_is_corrupt(fields: dict[str, int]) -> None:
    with pytest.raises(CorruptBatch, match="batch at byte 0"):
        check_batch(altered(**fields))


def test_a_negative_count_is_corrupt_without_decompression() -> None:
    with pytest.raises(CorruptBatch, match="record count -1"):
        check_batch(altered(Codec.GZIP, count=-1))


def test_a_compacted_batch_is_valid_but_not_from_producers() -> None:
    header = read_header(build_batch(RECORDS, producer_id=1, producer_epoch=0, base_sequence=0))

    for left in (empty_batch(header), rebuild_batch(header, [])):
        assert check_batch(left).count == 0
        with pytest.raises(InvalidBatch, match="no records"):
            check_produced(left)


NOT_FROM_A_PRODUCER = {
    "a control batch": ({"attributes": 0x20}, "control"),
    "a base offset": ({"base_offset": 1}, "base offset is 1"),
    "a time at the end of all": ({"base_timestamp": 2**63 - 2}, "timestamps 9223372036854775806 to"),
    "no time at all": ({"max_timestamp": 2**63 - 1}, "to 9223372036854775807 are out of range"),
    "no records": ({"count": 0}, "no records"),
    "fewer records than offsets": ({"count": 2}, "last offset delta 2 does not match"),
    "log append time": ({"attributes": 0x08}, "LogAppendTime"),
    "a delete horizon": ({"attributes": 0x40}, "delete horizon"),
    "a producer id without a sequence": (
        {"producer_id": 5, "producer_epoch": 0},
        "sequence -1 is invalid with producer id 5",
    ),
    "a producer id without an epoch": (
        {"producer_id": 5, "base_sequence": 0},
        "epoch -1 is invalid with producer id 5",
    ),
    "a transaction without a producer id": ({"attributes": 0x10}, "transactional batch has no producer id"),
}


@pytest.mark.parametrize(("fields", "says"), NOT_FROM_A_PRODUCER.values(), ids=NOT_FROM_A_PRODUCER.keys())
def test_a_producer_may_not_send(fields: dict[str, int], says: str) -> None:
    data = altered(**fields)
    check_batch(data)

    with pytest.raises(InvalidBatch, match=says):
        check_produced(data)


def test_a_producer_may_send_times_before_1970() -> None:
    assert check_produced(altered(base_timestamp=-2, max_timestamp=-2)).max_timestamp == -2


def test_a_producer_may_leave_out_the_maximum_timestamp() -> None:
    assert check_produced(altered(max_timestamp=-1)).max_timestamp == -1


def test_a_transactional_producer_may_send() -> None:
    data = build_batch(RECORDS, producer_id=5, producer_epoch=0, base_sequence=0, transactional=True)

    assert check_produced(data).is_transactional


def test_a_producer_sends_exactly_one_batch() -> None:
    one = build_batch(RECORDS)

    with pytest.raises(InvalidBatch, match="no batch"):
        check_produced(b"")
    with pytest.raises(InvalidBatch, match=f"{len(one)} bytes follow the batch"):
        check_produced(one + one)
    with pytest.raises(InvalidBatch, match="1 bytes follow the batch"):
        check_produced(one + b"\0")
    assert check_produced(one + one, end=len(one)).count == 3


def test_a_stamped_batch_is_still_valid() -> None:
    data = bytearray(build_batch(RECORDS))

    stamp(data, 0, base_offset=500, leader_epoch=3, log_append_time_ms=1)

    assert check_batch(data).last_offset == 502


def test_the_walk_returns_the_facts_for_topic_settings() -> None:
    data = build_batch(
        [(60, b"k", b"v", ()), (-1, None, b"v", [("h", b"x")]), (70, None, None, ()), (50, b"k", b"", ())]
    )

    assert check_records(data) == RecordFacts(max_timestamp=70, min_timestamp=50, first_null_key=1)


def test_without_timestamps_there_is_no_minimum_or_maximum() -> None:
    assert check_records(build_batch([(-1, b"k", b"v", ())])) == RecordFacts(-1, -1, None)


def test_offsets_of_produced_records_count_up_from_zero() -> None:
    data = bytearray(build_batch(RECORDS))
    header = read_header(data)
    records = bytes(data[61:])
    swapped = records.replace(b"\x02\x02\x04k1", b"\x02\x04\x04k1")
    assert swapped != records

    with pytest.raises(CorruptBatch, match="record 1: offset delta is 2, expected 1"):
        check_records(area(header, swapped))


@pytest.mark.parametrize(
    ("records", "count", "says"),
    [
        (b"", 1, "1 records do not fit in 0 bytes"),
        (bytes([12, 0, 0, 0, 1, 1, 0, 0]), 1, "record 1: 1 bytes follow the last record"),
        (bytes([14, 0, 0, 0, 1, 1, 0, 0]), 1, "record 0: 1 bytes follow the last field"),
        (bytes([10, 0, 0, 0, 1, 1, 0]), 1, "record 0: record length 5"),
        (bytes([14, 0, 0, 0, 1, 1, 0]), 1, "record 0: record length 7"),
        (bytes([12, 0, 255, 255, 255, 255, 255]), 1, "timestamp delta is truncated"),
        (bytes([12, 0, 0, 0, 3, 1, 0]), 1, "key length -2"),
        (bytes([12, 0, 0, 0, 8, 1, 0]), 1, "key length 4"),
        (bytes([12, 0, 0, 0, 1, 3, 0]), 1, "value length -2"),
        (bytes([12, 0, 0, 0, 1, 6, 0]), 1, "value length 3"),
        (bytes([12, 0, 0, 0, 1, 1, 1]), 1, "header count -1"),
        (bytes([12, 0, 0, 0, 1, 1, 2]), 1, "header count 1 is out of range"),
        (bytes([16, 0, 0, 0, 1, 1, 2, 1, 1]), 1, "header name length -1"),
        (bytes([16, 0, 0, 0, 1, 1, 2, 4, 1]), 1, "header name length 2"),
        (bytes([16, 0, 0, 0, 1, 1, 2, 0, 3]), 1, "header value length -2"),
        (bytes([16, 0, 0, 0, 1, 1, 2, 0, 2]), 1, "header value length 1"),
    ],
)
def test_the_walk_rejects_unparseable_records(records: bytes, count: int, says: str) -> None:
    header = read_header(build_batch(RECORDS))

    with pytest.raises(CorruptBatch, match=says):
        check_records(area(header._replace(count=count, last_offset_delta=count - 1), records))


def test_the_last_offset_delta_is_where_the_rules_look() -> None:
    data = bytearray(build_batch(RECORDS))
    assert struct.unpack_from(">i", data, LAST_OFFSET_DELTA_AT) == (2,)
    assert check_batch(data).timestamp_type is TimestampType.CREATE_TIME
