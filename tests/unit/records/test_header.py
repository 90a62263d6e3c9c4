import struct

import pytest

from barnabas.records.builder import build_batch
from barnabas.records.decode import decode_batch
from barnabas.records.errors import CorruptBatch, UnknownCodec, UnsupportedMagic
from barnabas.records.header import (
    BATCH_LENGTH_AT,
    COUNT_AT,
    MAGIC_AT,
    BatchHeader,
    Codec,
    TimestampType,
    batch_headers,
    crc32c_of,
    pack_header,
    read_header,
    stamp,
    whole_batches,
)
from barnabas.records.validate import check_batch

pytestmark = pytest.mark.kernel

FIELDS = BatchHeader(
    base_offset=0x0102030405060708,
    batch_length=49,
    leader_epoch=0x11121314,
    magic=2,
    crc=0xFEDCBA98,
    attributes=0x0043,
    last_offset_delta=7,
    base_timestamp=1000,
    max_timestamp=2000,
    producer_id=42,
    producer_epoch=3,
    base_sequence=5,
    count=6,
)


def batch(*values: bytes, base_offset: int = 0) -> bytes:
    return build_batch(
        [(1000 + i, None, value, ()) for i, value in enumerate(values)], base_offset=base_offset
    )


def test_every_field_is_read_from_its_place() -> None:
    wire = struct.pack(
        ">qiibIhiqqqhii", 0x0102030405060708, 49, 0x11121314, 2, 0xFEDCBA98, 0x43, 7, 1000, 2000, 42, 3, 5, 6
    )

    assert read_header(wire) == FIELDS
    assert pack_header(FIELDS) == wire


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_a_header_is_read_in_place_from_any_buffer(kind: type) -> None:
    data = kind(b"???" + pack_header(FIELDS) + b"!")

    assert read_header(data, 3) == FIELDS


def test_properties_derived_from_the_header() -> None:
    assert FIELDS.size == 61
    assert FIELDS.last_offset == 0x0102030405060708 + 7
    assert FIELDS.next_offset == 0x0102030405060708 + 8
    assert FIELDS.codec is Codec.LZ4
    assert FIELDS.timestamp_type is TimestampType.CREATE_TIME
    assert FIELDS.has_delete_horizon
    assert FIELDS.delete_horizon_ms == 1000
    assert not FIELDS.is_transactional
    assert not FIELDS.is_control
    assert FIELDS.has_producer_id
    assert FIELDS.last_sequence == 12


@pytest.mark.parametrize(
    ("bit", "question"), [(0x10, "is_transactional"), (0x20, "is_control"), (0x40, "has_delete_horizon")]
)
def test_each_flag_has_its_own_bit(bit: int, question: str) -> None:
    assert getattr(FIELDS._replace(attributes=bit), question)
    assert not getattr(FIELDS._replace(attributes=0x7F ^ bit), question)


def test_log_append_time_is_bit_three() -> None:
    assert FIELDS._replace(attributes=0x08).timestamp_type is TimestampType.LOG_APPEND_TIME


def test_without_a_delete_horizon_the_base_timestamp_is_only_that() -> None:
    assert FIELDS._replace(attributes=0).delete_horizon_ms is None


@pytest.mark.parametrize(
    ("base", "delta", "last"),
    [(0, 0, 0), (2**31 - 1, 0, 2**31 - 1), (2**31 - 1, 1, 0), (2**31 - 3, 5, 2), (-1, 4, -1)],
)
def test_sequences_wrap_around_to_zero(base: int, delta: int, last: int) -> None:
    assert FIELDS._replace(base_sequence=base, last_offset_delta=delta).last_sequence == last


@pytest.mark.parametrize("bits", [5, 6, 7])
def test_an_unknown_codec_is_refused_by_name(bits: int) -> None:
    with pytest.raises(UnknownCodec, match=f"codec {bits}"):
        _ = FIELDS._replace(attributes=bits).codec


@pytest.mark.parametrize("size", [0, 1, 16, 17, 60])
def test_a_short_buffer_is_corrupt(size: int) -> None:
    with pytest.raises(CorruptBatch, match="batch at byte 0"):
        read_header(pack_header(FIELDS)[:size])


@pytest.mark.parametrize("magic", [0, 1, 3, -1])
def test_another_magic_is_not_supported(magic: int) -> None:
    with pytest.raises(UnsupportedMagic, match=f"magic {magic}"):
        read_header(pack_header(FIELDS._replace(magic=magic)))


def test_a_legacy_message_shorter_than_our_header_is_identified() -> None:
    old = bytearray(34)
    old[MAGIC_AT] = 1

    with pytest.raises(UnsupportedMagic, match="magic 1"):
        read_header(old)


@pytest.mark.parametrize("length", [48, 0, -1, -(2**31)])
def test_a_length_less_than_the_header_is_corrupt(length: int) -> None:
    with pytest.raises(CorruptBatch, match=f"length {length}"):
        read_header(pack_header(FIELDS._replace(batch_length=length)))


def test_walking_a_buffer_gives_every_batch_and_its_position() -> None:
    first, second = batch(b"a"), batch(b"b", b"c", base_offset=1)

    walked = list(batch_headers(first + second))

    assert [(at, header.base_offset, header.count) for at, header in walked] == [
        (0, 0, 1),
        (len(first), 1, 2),
    ]
    assert list(batch_headers(b"")) == []


@pytest.mark.parametrize("cut", [1, 10, 61])
def test_walking_a_buffer_with_a_torn_tail_is_corrupt_and_says_where(cut: int) -> None:
    first, second = batch(b"a"), batch(b"b")

    with pytest.raises(CorruptBatch, match=f"batch at byte {len(first)}"):
        list(batch_headers((first + second)[:-cut]))


@pytest.mark.parametrize("cut", [1, 5, 56, 60, 68])
def test_a_fetch_may_end_in_the_middle_of_a_batch(cut: int) -> None:
    first, second = batch(b"a"), batch(b"b")
    assert len(second) == 69

    assert whole_batches(first + second) == (2, len(first + second))
    assert whole_batches((first + second)[:-cut]) == (1, len(first))


def test_a_length_that_no_batch_has_is_no_partial_batch() -> None:
    data = bytearray(batch(b"a") + batch(b"b"))
    struct.pack_into(">i", data, 69 + BATCH_LENGTH_AT, 0)

    with pytest.raises(CorruptBatch, match="batch at byte 69"):
        whole_batches(data)


def test_stamping_offsets_and_epoch_leaves_the_crc_true() -> None:
    buffer = bytearray(b"###" + batch(b"a", b"b"))

    stamp(buffer, 3, base_offset=1000, leader_epoch=9)

    header = check_batch(buffer, 3)
    assert (header.base_offset, header.last_offset, header.leader_epoch) == (1000, 1001, 9)
    assert header.timestamp_type is TimestampType.CREATE_TIME
    assert bytes(buffer[:3]) == b"###"


def test_stamping_the_append_time_gives_it_to_every_record_and_signs_anew() -> None:
    before = batch(b"a", b"b")
    buffer = bytearray(before + batch(b"next"))

    stamp(memoryview(buffer), 0, base_offset=5, leader_epoch=1, log_append_time_ms=777)

    header = check_batch(buffer)
    assert header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert (header.base_timestamp, header.max_timestamp) == (1000, 777)
    assert [(record.offset, record.timestamp) for record in decode_batch(buffer)] == [(5, 777), (6, 777)]
    assert buffer[COUNT_AT:69] == before[COUNT_AT:69]
    assert bytes(buffer[len(before) :]) == batch(b"next")


# CRC


def test_the_crc_is_castagnolis() -> None:
    assert crc32c_of(b"123456789", 0, 9) == 0xE3069283


def test_only_the_range_is_covered_whatever_the_kind_of_buffer() -> None:
    for data in (b"xx123456789yy", bytearray(b"xx123456789yy"), memoryview(b"xx123456789yy")):
        assert crc32c_of(data, 2, 11) == 0xE3069283
