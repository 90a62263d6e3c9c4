"""The checks of a batch before a leader appends it."""

from struct import pack_into
from typing import Any

import pytest
from crc32c import crc32c

from barnabas.base.errors import Malformed
from barnabas.records.builder import build_batch
from barnabas.records.errors import CorruptBatch, InvalidBatch
from barnabas.records.header import (
    ATTRIBUTES_AT,
    BASE_TIMESTAMP_AT,
    COUNT_AT,
    CRC_AT,
    LAST_OFFSET_DELTA_AT,
    MAX_TIMESTAMP_AT,
    Codec,
    batch_headers,
)
from barnabas.records.validate import check_batch
from barnabas.storage.errors import BatchTooLarge, InvalidTimestamp, MissingKey, StorageError
from barnabas.storage.intake import Batch, Rules, take_own, take_produced, take_replicated
from support.log.logs import NOW, batch, marker, new_log
from support.log.logs import settings as log_settings

pytestmark = pytest.mark.kernel


def settings(**values: Any) -> Rules:
    return Rules(log_settings(**values))


HOUR = 3_600_000


def records(*times: int, key: bytes | None = b"k") -> bytes:
    return build_batch([(time, key, b"v", ()) for time in times])


def patched(data: bytes, at: int, form: str, value: int) -> bytes:
    """The batch with a changed header field and a matching CRC."""
    changed = bytearray(data)
    pack_into(form, changed, at, value)
    pack_into(">I", changed, CRC_AT, crc32c(bytes(changed[ATTRIBUTES_AT:])))
    return bytes(changed)


def test_the_facts_of_a_batch_are_those_of_its_header() -> None:
    data = build_batch(
        [(NOW, b"k", b"v", ()), (NOW + 5, b"k", b"w", ())],
        codec=Codec.GZIP,
        producer_id=9,
        producer_epoch=3,
        base_sequence=40,
        transactional=True,
    )

    found = take_produced(data, settings(), NOW)

    assert (found.at, found.size, found.base_offset, found.last_delta) == (0, len(data), 0, 1)
    assert (found.base_timestamp, found.max_timestamp, found.count) == (NOW, NOW + 5, 2)
    assert (found.producer_id, found.producer_epoch, found.base_sequence) == (9, 3, 40)
    assert not found.is_control()


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_will_do(kind: type) -> None:
    assert take_produced(kind(batch(b"v")), settings(), NOW).count == 1


@pytest.mark.parametrize("size", [0, 11, 60, 61, 69])
def test_a_truncated_batch_is_refused(size: int) -> None:
    with pytest.raises(Malformed):
        take_produced(batch(b"v")[:size], settings(), NOW)


def test_bytes_after_the_batch_are_refused() -> None:
    with pytest.raises(Malformed):
        take_produced(batch(b"v") + b"x", settings(), NOW)
    with pytest.raises(Malformed):
        take_produced(batch(b"v") + batch(b"w"), settings(), NOW)


@pytest.mark.parametrize("at", [0, 8, 16, 17, 21, 23, 30, 43, 57, 61, 70])
def test_a_flipped_bit_is_refused(at: int) -> None:
    data = bytearray(batch(b"a value"))
    data[at] ^= 0x10

    with pytest.raises(Malformed):
        take_produced(bytes(data), settings(), NOW)


def test_the_leader_epoch_of_a_client_is_ignored() -> None:
    data = bytearray(batch(b"a value"))
    data[12] ^= 0x10

    assert take_produced(bytes(data), settings(), NOW).count == 1


def test_a_client_cannot_write_a_marker() -> None:
    with pytest.raises(Malformed):
        take_produced(marker(5, abort=True), settings(), NOW)


@pytest.mark.parametrize(
    "bit", [0x08, 0x20, 0x40, 0x80], ids=["append time", "control", "horizon", "unknown"]
)
def test_a_client_may_set_only_its_own_attributes(bit: int) -> None:
    data = batch(b"v", producer_id=5, producer_epoch=0, base_sequence=0, transactional=True)

    with pytest.raises(Malformed):
        take_produced(patched(data, ATTRIBUTES_AT, ">h", 0x10 | bit), settings(), NOW)


def test_the_last_delta_must_fit_the_number_of_records() -> None:
    with pytest.raises(Malformed):
        take_produced(patched(batch(b"v", b"w"), LAST_OFFSET_DELTA_AT, ">i", 5), settings(), NOW)


def test_a_transactional_batch_needs_a_producer() -> None:
    plain = batch(b"v")
    transactional = patched(plain, ATTRIBUTES_AT, ">h", 16)

    with pytest.raises(Malformed):
        take_produced(transactional, settings(), NOW)


# max.message.bytes


def test_a_batch_may_be_as_large_as_max_message_bytes_and_no_larger() -> None:
    data = batch(b"v" * 100)

    assert take_produced(data, settings(max_message_bytes=len(data)), NOW).size == len(data)
    with pytest.raises(BatchTooLarge, match=r"max\.message\.bytes") as refused:
        take_produced(data, settings(max_message_bytes=len(data) - 1), NOW)

    assert (refused.value.size, refused.value.limit) == (len(data), len(data) - 1)
    assert isinstance(refused.value, StorageError)


# Timestamps


def test_a_timestamp_may_be_as_far_ahead_as_the_topic_allows() -> None:
    config = settings(message_timestamp_after_max_ms=HOUR)

    assert take_produced(records(NOW, NOW + HOUR), config, NOW).count == 2
    with pytest.raises(InvalidTimestamp, match=r"after\.max\.ms") as refused:
        take_produced(records(NOW, NOW + HOUR + 1), config, NOW)

    assert refused.value.timestamp == NOW + HOUR + 1


def test_the_earliest_record_may_be_as_old_as_the_topic_allows() -> None:
    config = settings(message_timestamp_before_max_ms=HOUR)

    assert take_produced(records(NOW, NOW - HOUR), config, NOW).count == 2
    with pytest.raises(InvalidTimestamp, match=r"before\.max\.ms") as refused:
        take_produced(records(NOW, NOW - HOUR - 1, NOW), config, NOW)

    assert refused.value.timestamp == NOW - HOUR - 1


def test_the_earliest_record_of_a_compressed_batch_counts_too() -> None:
    data = build_batch([(NOW, b"k", b"v", ()), (NOW - HOUR - 1, b"k", b"v", ())], codec=Codec.ZSTD)

    with pytest.raises(InvalidTimestamp):
        take_produced(data, settings(message_timestamp_before_max_ms=HOUR), NOW)


def test_records_without_a_timestamp_are_not_too_old() -> None:
    config = settings(message_timestamp_before_max_ms=HOUR)

    assert take_produced(records(-1), config, NOW).max_timestamp == -1


def before_1970(at_ms: int) -> bytes:
    return patched(patched(batch(b"v"), BASE_TIMESTAMP_AT, ">q", at_ms), MAX_TIMESTAMP_AT, ">q", at_ms)


@pytest.mark.parametrize("at_ms", [-2, -HOUR, -(2**62), NOW - 2**63 + 1])
def test_timestamps_before_1970_are_taken(at_ms: int) -> None:
    found = take_produced(before_1970(at_ms), settings(), NOW)

    assert found.base_timestamp == at_ms


@pytest.mark.parametrize("at_ms", [NOW - 2**63, -(2**63)])
def test_a_time_whose_age_does_not_fit_into_64_bits_is_refused(at_ms: int) -> None:
    with pytest.raises(InvalidTimestamp):
        take_produced(before_1970(at_ms), settings(), NOW)


def test_a_timestamp_before_1970_may_be_too_old() -> None:
    with pytest.raises(InvalidTimestamp) as refused:
        take_produced(before_1970(-2), settings(message_timestamp_before_max_ms=HOUR), NOW)

    assert not refused.value.allows(-2)
    assert refused.value.allows(-1)


def test_a_topic_that_stamps_records_itself_does_not_look_at_their_times() -> None:
    config = settings(
        message_timestamp_type="LogAppendTime",
        message_timestamp_before_max_ms=HOUR,
        message_timestamp_after_max_ms=HOUR,
    )

    assert take_produced(records(0, NOW + 10 * HOUR), config, NOW).count == 2


def test_without_limits_any_time_will_do() -> None:
    no_limit = 2**63 - 1
    config = settings(message_timestamp_before_max_ms=no_limit, message_timestamp_after_max_ms=no_limit)

    assert take_produced(records(0, 2**62), config, NOW).max_timestamp == 2**62


def test_the_max_timestamp_of_a_compressed_batch_is_taken_from_the_header() -> None:
    config = settings(message_timestamp_after_max_ms=HOUR)
    data = patched(
        build_batch([(NOW, b"k", b"v", ())], codec=Codec.ZSTD), MAX_TIMESTAMP_AT, ">q", NOW + 2 * HOUR
    )

    with pytest.raises(InvalidTimestamp):
        take_produced(data, config, NOW)


# The header compared with the records of an uncompressed batch

TWO = build_batch([(NOW, None, b"a", ()), (NOW + 7, b"k", b"b" * 100, ())])


@pytest.mark.parametrize("count", [-1, 0, 1, 3, 2**31 - 1])
def test_a_wrong_record_count_is_refused(count: int) -> None:
    data = patched(TWO, COUNT_AT, ">i", count)
    if count > 0:
        data = patched(data, LAST_OFFSET_DELTA_AT, ">i", count - 1)

    with pytest.raises(InvalidBatch):
        take_produced(data, settings(), NOW)


def test_a_wrong_record_count_in_a_corrupt_batch_is_reported_as_corruption() -> None:
    data = patched(patched(TWO, COUNT_AT, ">i", 3), LAST_OFFSET_DELTA_AT, ">i", 2)

    with pytest.raises(CorruptBatch):
        take_produced(data[:-1] + b"x", settings(), NOW)


@pytest.mark.parametrize("latest", [-1, NOW, NOW + 1000, 2**63 - 1])
def test_the_max_timestamp_is_corrected_from_the_records(latest: int) -> None:
    data = patched(TWO, MAX_TIMESTAMP_AT, ">q", latest)
    log = new_log()

    assert take_produced(data, settings(), NOW).max_timestamp == NOW + 7
    for one in (data, TWO):
        log.append_as_leader(one, leader_epoch=0, now_ms=NOW)

    written = log.read(0, upto=4, bytes_max=1000).read()
    assert [header.max_timestamp for _, header in batch_headers(written)] == [NOW + 7, NOW + 7]
    assert check_batch(written).base_offset == 0
    assert check_batch(written, len(TWO)).base_offset == 2


def test_the_records_are_found_in_the_request_that_the_batch_is_a_view_of() -> None:
    frame = b"request" + TWO + b"rest"
    view = memoryview(frame)[7 : 7 + len(TWO)]

    assert take_produced(view, settings(), NOW, 7).max_timestamp == NOW + 7
    assert take_produced(view, settings(), NOW).max_timestamp == NOW + 7


@pytest.mark.parametrize("base", [2**63 - 1, 2**63 - 3, 2**63 - 4, 2**63 - 8, 2**63 - 9])
def test_a_max_timestamp_out_of_range_is_refused(base: int) -> None:
    data = patched(patched(TWO, BASE_TIMESTAMP_AT, ">q", base), MAX_TIMESTAMP_AT, ">q", 5)

    with pytest.raises(InvalidBatch, match="out of range"):
        take_produced(data, settings(message_timestamp_after_max_ms=2**63 - 1), NOW)


def test_a_max_timestamp_out_of_range_without_a_base_timestamp_is_refused() -> None:
    data = patched(patched(TWO, BASE_TIMESTAMP_AT, ">q", -1), MAX_TIMESTAMP_AT, ">q", 2**63 - 1)

    with pytest.raises(InvalidBatch, match="out of range"):
        take_produced(data, settings(), NOW)


@pytest.mark.parametrize("base", [-100, -(2**62)])
def test_a_batch_from_before_1970_has_no_max_timestamp(base: int) -> None:
    data = patched(patched(TWO, BASE_TIMESTAMP_AT, ">q", base), MAX_TIMESTAMP_AT, ">q", base + 7)

    found = take_produced(data, settings(), NOW)

    assert (found.max_timestamp, found.is_corrected) == (-1, True)


def test_an_implausibly_old_timestamp_is_not_corrected() -> None:
    oldest = patched(patched(TWO, BASE_TIMESTAMP_AT, ">q", -(2**63)), MAX_TIMESTAMP_AT, ">q", -(2**63) + 7)

    with pytest.raises(InvalidTimestamp):
        take_produced(oldest, settings(), NOW)


# Keys


def test_a_compacted_topic_refuses_a_record_without_a_key() -> None:
    data = build_batch([(NOW, b"k", b"v", ()), (NOW, None, b"v", ()), (NOW, None, b"v", ())])

    with pytest.raises(MissingKey, match="record 1 ") as refused:
        take_produced(data, settings(cleanup_policy=("compact",)), NOW)

    assert refused.value.record == 1
    with pytest.raises(MissingKey, match="record 0 "):
        take_produced(batch(b"v", key=None), settings(cleanup_policy=("compact",)), NOW)


def test_an_empty_key_is_a_key() -> None:
    config = settings(cleanup_policy=("compact", "delete"))

    assert take_produced(batch(b"v", key=b""), config, NOW).count == 1


def test_other_topics_take_records_without_keys() -> None:
    assert take_produced(batch(b"v", key=None), settings(), NOW).count == 1


# Batches of our own and of our leader


def test_duplicate_batches_keep_their_offsets() -> None:
    data = batch(b"a", base_offset=5) + batch(b"b", b"c", base_offset=700, leader_epoch=4)

    first = take_replicated(data, 0)
    second = take_replicated(data, first.size)

    assert (first.base_offset, second.base_offset, second.leader_epoch) == (5, 700, 4)
    assert (second.at, second.at + second.size) == (first.size, len(data))


def test_duplicate_batches_are_validated_too() -> None:
    data = bytearray(batch(b"a") + batch(b"b"))
    data[-2] ^= 1

    with pytest.raises(Malformed):
        take_replicated(bytes(data), len(batch(b"a")))


def test_one_of_our_own_is_found_where_it_begins() -> None:
    data = batch(b"a") + marker(5, abort=False)

    first = take_own(data, 0)
    second = take_own(data, first.size)

    assert (first.count, first.is_control(), second.is_control()) == (1, False, True)
    assert second.at + second.size == len(data)


@pytest.mark.parametrize("cut", [1, 30, 70])
def test_one_of_our_own_that_is_not_whole_is_refused(cut: int) -> None:
    with pytest.raises(Malformed):
        take_own(batch(b"a")[:-cut], 0)


def test_a_marker_is_known_as_one() -> None:
    assert Batch(marker(5, abort=False), 0).is_control()
