"""Decoding fetched bytes into messages, compared with the decoder of records/."""

import pytest

from barnabas.base.errors import Malformed
from barnabas.client.consumer.decode import BatchReader, claimed_next_offset, find_complete_batches
from barnabas.client.consumer.message import Message
from barnabas.records.builder import NewRecord, build_batch
from barnabas.records.control import ControlType, build_control_batch
from barnabas.records.decode import decode_batch
from barnabas.records.errors import CorruptBatch, UnsupportedMagic
from barnabas.records.header import Codec, TimestampType, stamp
from barnabas.records.record import Record
from support.our_client.consumer_worlds import log_of
from support.sample_records import LARGE_RECORDS, ODD_RECORDS

pytestmark = pytest.mark.kernel
# Other bytes of the response.
HEAD, TAIL = b"before", b"after"
MARKER = b"\0\0" + b"\0\0\0\7"


def batch_of(records: list[NewRecord], first: int, *, append_ms: int | None = None, **fields: int) -> bytes:
    data = bytearray(build_batch(records, **fields))  # type: ignore[arg-type]
    stamp(data, 0, base_offset=first, leader_epoch=3, log_append_time_ms=append_ms)
    return bytes(data)


def reader_of(data: bytes, start: int = 0, **given: object) -> BatchReader:
    answer = HEAD + data + TAIL
    whole, _, _ = find_complete_batches(answer, len(HEAD), len(HEAD + data))
    aborted: list[tuple[int, int]] = given.pop("aborted", [])  # type: ignore[assignment]
    check_crc = bool(given.get("check_crc", True))
    return BatchReader("orders", 0, answer, len(HEAD), whole, start, check_crc, aborted)


def reach_of(data: bytes) -> tuple[int, int, int]:
    """Return find_complete_batches() for batches inside a larger response."""
    end, next_offset, epoch = find_complete_batches(HEAD + data + TAIL, len(HEAD), len(HEAD + data))
    return end - len(HEAD), next_offset, epoch


def as_record(message: Message) -> Record:
    return Record(message.offset, message.timestamp, message.key, message.value, message.headers)


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("records", [ODD_RECORDS, LARGE_RECORDS], ids=["odd", "large"])
def test_messages_are_the_records_of_the_batch(codec: Codec, records: list[NewRecord]) -> None:
    data = batch_of(records, 10, codec=codec)

    reader = reader_of(data)
    found = reader.take(1)

    assert [as_record(message) for message in found] == decode_batch(data)
    assert {(message.topic, message.partition, message.leader_epoch) for message in found} == {
        ("orders", 0, 3)
    }
    assert {message.timestamp_type for message in found} == {TimestampType.CREATE_TIME}
    assert (reader.done, reader.next_offset, reader.last_epoch) == (True, 10 + len(records), 3)


def test_many_small_compressed_batches_are_decoded_correctly() -> None:
    batches = [
        batch_of([(1, b"k%d" % n, b"v%d" % n * 50, ())], n, codec=list(Codec)[n % 5]) for n in range(500)
    ]
    reader = reader_of(b"".join(batches))

    found: list[Message] = []
    while not reader.done:
        found += reader.take(7)

    assert [(message.offset, message.key) for message in found] == [(n, b"k%d" % n) for n in range(500)]
    assert [message.value for message in found] == [b"v%d" % n * 50 for n in range(500)]


def test_log_append_time_is_every_records_time() -> None:
    data = batch_of(ODD_RECORDS, 0, append_ms=77)

    found = reader_of(data).take(1)

    assert {(message.timestamp, message.timestamp_type) for message in found} == {
        (77, TimestampType.LOG_APPEND_TIME)
    }


def test_take_stops_after_the_batch_that_reaches_the_limit() -> None:
    reader = reader_of(b"".join(log_of(3, 3, 3)))

    assert [message.offset for message in reader.take(4)] == [0, 1, 2, 3, 4, 5]
    assert (reader.next_offset, reader.done) == (6, False)
    assert [message.offset for message in reader.take(4)] == [6, 7, 8]
    assert (reader.next_offset, reader.done) == (9, True)


def test_records_before_the_position_are_left_out() -> None:
    reader = reader_of(b"".join(log_of(3, 3)), start=4)

    assert [message.offset for message in reader.take(10)] == [4, 5]
    assert reader.next_offset == 6


def test_reach_ignores_an_incomplete_batch_at_the_end() -> None:
    first, second = log_of(2, 2)

    for cut in range(1, len(second)):
        assert reach_of(first + second[:cut]) == (len(first), 2, 0)
    assert reach_of(second[:-1]) == (0, -1, -1)
    assert reach_of(b"") == (0, -1, -1)


def test_reach_returns_the_end_and_the_epoch_of_the_last_batch() -> None:
    data = b"".join([*log_of(2, epoch=1), *log_of(3, epoch=4, first=2)])

    assert reach_of(data) == (len(data), 5, 4)
    assert claimed_next_offset(data, 0) == 2


def test_bytes_that_are_no_batch_are_an_error() -> None:
    with pytest.raises(UnsupportedMagic):
        reach_of(bytes(16) + b"\x01" + bytes(50))
    with pytest.raises(CorruptBatch):
        reach_of(bytes(8) + (10).to_bytes(4, "big") + bytes(4) + b"\x02" + bytes(60))


def test_a_corrupt_batch_is_raised_after_earlier_messages_and_again() -> None:
    first, second, third = log_of(2, 2, 2)
    reader = reader_of(first + second[:-1] + b"?" + third)

    assert [message.offset for message in reader.take(100)] == [0, 1]
    for _ in range(2):
        with pytest.raises(CorruptBatch, match="CRC"):
            reader.take(100)
    assert (reader.next_offset, reader.at) == (2, len(HEAD + first))


def test_the_crc_is_not_checked_if_check_crcs_is_off() -> None:
    (data,) = log_of(1)
    reader = reader_of(data[:17] + b"\0\0\0\0" + data[21:], check_crc=False)

    assert len(reader.take(1)) == 1


def test_malformed_records_raise_the_declared_error() -> None:
    (good,) = log_of(3)
    told = set()
    for at in range(57, len(good)):
        for byte in (0x00, 0x7F, 0x80, 0xFF):
            reader = reader_of(good[:at] + bytes([byte]) + good[at + 1 :], check_crc=False)
            try:
                assert len(reader.take(1)) <= 3
            except Malformed as error:
                told.add(type(error))
                assert not reader.done
                assert reader.next_offset == 0
    assert told == {CorruptBatch}


def transactional(first: int, producer: int, count: int = 2) -> bytes:
    records = [(1, None, b"%d" % (first + n), ()) for n in range(count)]
    data = bytearray(
        build_batch(records, producer_id=producer, producer_epoch=0, base_sequence=0, transactional=True)
    )
    stamp(data, 0, base_offset=first, leader_epoch=0)
    return bytes(data)


def marker(first: int, producer: int, kind: ControlType) -> bytes:
    return build_control_batch(
        kind, MARKER, timestamp=1, base_offset=first, leader_epoch=0, producer_id=producer, producer_epoch=0
    )


def test_aborted_transactions_and_control_batches_are_skipped() -> None:
    data = b"".join(
        [
            transactional(0, 7),
            transactional(2, 8),
            marker(4, 7, ControlType.ABORT),
            transactional(5, 7),
            marker(7, 8, ControlType.COMMIT),
            marker(8, 7, ControlType.COMMIT),
        ]
    )

    committed = reader_of(data, aborted=[(0, 7)])
    everything = reader_of(data)

    assert [message.offset for message in committed.take(100)] == [2, 3, 5, 6]
    assert [message.offset for message in everything.take(100)] == [0, 1, 2, 3, 5, 6]
    assert committed.next_offset == everything.next_offset == 9


def test_an_answer_of_markers_only_has_no_messages_and_moves_the_position() -> None:
    reader = reader_of(marker(4, 7, ControlType.COMMIT), start=4)

    assert reader.take(1) == []
    assert (reader.done, reader.next_offset) == (True, 5)
