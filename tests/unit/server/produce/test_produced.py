"""The checks of a batch before it is appended, and the corrections."""

from struct import pack_into

import pytest

from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.schema.codec import decoder, encode
from barnabas.protocol.schema.decoder import compile_decoder
from barnabas.records.builder import build_batch
from barnabas.records.crc import crc32c_of
from barnabas.records.errors import CorruptBatch, InvalidBatch
from barnabas.records.header import (
    ATTRIBUTES_AT,
    BASE_TIMESTAMP_AT,
    COUNT_AT,
    CRC_AT,
    MAX_TIMESTAMP_AT,
    read_header,
)
from barnabas.records.validate import check_produced
from barnabas.server.produce.produced import checked, only_batch

pytestmark = pytest.mark.kernel

NOW = 1_700_000_000_000
GOOD = build_batch([(NOW, None, b"a", ()), (NOW + 7, b"k", b"b" * 100, ())])
DATA = PartitionProduceData(index=0, records=GOOD)
VERSION = 9


def changed(batch: bytes, **fields: int) -> bytes:
    """The batch with changed header fields and a valid CRC."""
    copy = bytearray(batch)
    if "base" in fields:
        pack_into(">q", copy, BASE_TIMESTAMP_AT, fields["base"])
    if "latest" in fields:
        pack_into(">q", copy, MAX_TIMESTAMP_AT, fields["latest"])
    if "count" in fields:
        pack_into(">i", copy, COUNT_AT, fields["count"])
    pack_into(">I", copy, CRC_AT, crc32c_of(copy, ATTRIBUTES_AT, len(copy)))
    return bytes(copy)


def test_a_batch_is_checked_whichever_decoder_read_its_request() -> None:
    topic = TopicProduceData(name="orders", partition_data=[DATA])
    frame = encode(ProduceRequest(acks=-1, topic_data=[topic]), VERSION)

    for decode in (compile_decoder(ProduceRequest, VERSION), decoder(ProduceRequest, VERSION)):
        request, _ = decode(frame, 0)
        (data,) = request.topic_data[0].partition_data

        assert checked(only_batch(data.records, VERSION), data) == GOOD


def test_a_valid_batch_is_not_copied() -> None:
    view = memoryview(GOOD)

    assert only_batch(view, VERSION) is view
    assert checked(view, DATA) is view


def test_an_incomplete_batch_after_the_first_is_dropped() -> None:
    assert only_batch(GOOD + GOOD[:50], VERSION) == GOOD


@pytest.mark.parametrize("records", [None, b"", GOOD[:20], GOOD[:-1], GOOD + GOOD], ids=str)
def test_no_batch_and_two_batches_are_refused(records: bytes | None) -> None:
    with pytest.raises(InvalidBatch):
        only_batch(records, VERSION)


@pytest.mark.parametrize("count", [-1, 0, 1, 3, 2**31 - 1])
def test_a_wrong_record_count_is_refused(count: int) -> None:
    with pytest.raises(InvalidBatch):
        checked(changed(GOOD, count=count), DATA)


def test_a_wrong_record_count_in_a_corrupt_batch_is_reported_as_corruption() -> None:
    with pytest.raises(CorruptBatch):
        checked(changed(GOOD, count=3)[:-1] + b"x", DATA)


def test_the_max_timestamp_is_corrected_from_the_records() -> None:
    put_right = checked(changed(GOOD, latest=NOW + 1000), DATA)

    assert read_header(put_right).max_timestamp == NOW + 7
    check_produced(put_right)


@pytest.mark.parametrize("base", [2**63 - 1, 2**63 - 3])
def test_a_max_timestamp_out_of_range_is_refused(base: int) -> None:
    with pytest.raises(InvalidBatch):
        checked(changed(GOOD, base=base, latest=5), DATA)


@pytest.mark.parametrize("base", [-100, -(2**62)])
def test_a_batch_from_before_1970_has_no_max_timestamp(base: int) -> None:
    put_right = checked(changed(GOOD, base=base, latest=base + 7), DATA)

    assert read_header(put_right).max_timestamp == -1
    check_produced(put_right)


def test_an_implausibly_old_timestamp_is_left_to_the_log() -> None:
    oldest = changed(GOOD, base=-(2**63), latest=-(2**63) + 7)

    assert checked(oldest, DATA) == oldest
