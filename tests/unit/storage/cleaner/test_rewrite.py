from collections.abc import Mapping, Sequence
from random import Random

import pytest

from barnabas.records.builder import NewRecord, build_batch, seal
from barnabas.records.control import ControlType
from barnabas.records.decode import decode_batch
from barnabas.records.errors import CorruptBatch, UnknownCodec
from barnabas.records.header import BatchHeader, Codec, TimestampType, batch_headers, read_header
from barnabas.records.rebuild import empty_batch, rebuild_batch
from barnabas.records.validate import check_batch
from barnabas.sim.disk import SimDisk
from barnabas.storage.cleaner.key_map import KeyMap
from barnabas.storage.cleaner.rewrite import Rewriter
from barnabas.storage.cleaner.transactions import Transactions
from barnabas.storage.producers.table import LastRecord
from barnabas.storage.segment.segment import Segment
from barnabas.storage.segment.txn_index import AbortedTxn
from support.log.compaction import NOW_MS, SECRET, marker, records, simple_batch

pytestmark = pytest.mark.kernel

RETENTION_MS = 5000
HORIZON_MS = NOW_MS + RETENTION_MS
ABORT, COMMIT = ControlType.ABORT, ControlType.COMMIT


class Rewriting:
    """A rewriter, and a segment in memory that it writes to."""

    def __init__(
        self,
        known: Mapping[bytes, int],
        *,
        latest_offset: int = 1 << 30,
        aborted: Sequence[AbortedTxn] = (),
        producers: Mapping[int, LastRecord] | None = None,
        upper_bound: int = 1 << 40,
        now_ms: int = NOW_MS,
    ) -> None:
        key_map = KeyMap(1 << 16, SECRET)
        for key, offset in known.items():
            key_map.put(key, offset)
        key_map.latest_offset = latest_offset
        self.rewriter = Rewriter(
            key_map,
            Transactions(aborted, 0),
            producers or {},
            upper_bound=upper_bound,
            now_ms=now_ms,
            delete_retention_ms=RETENTION_MS,
        )
        self.rewriter.batch.begin_segment(0, 1 << 40)
        self.disk = SimDisk(Random(0))
        self.disk.make_directory("/log")
        self.segment = Segment(self.disk, "/log", 0)
        self.segment.make_files()

    def feed(self, data: bytes, leave_from: int = -1) -> bytes:
        """All batches kept so far."""
        assert self.rewriter.feed(data, leave_from) == len(data)
        self.rewriter.output.write_to(self.segment, 4096)
        return self.disk.read("/log/00000000000000000000.log")


def left_of(data: bytes, known: Mapping[bytes, int], **options: object) -> bytes:
    return Rewriting(known, **options).feed(data)  # type: ignore[arg-type]


def only_header(data: bytes) -> BatchHeader:
    header = check_batch(data)
    assert header.size == len(data)
    return header


# Values


def test_a_batch_that_keeps_all_records_is_unchanged() -> None:
    data = simple_batch(0, (b"a", b"1"), (b"b", b"1")) + simple_batch(2, (b"c", b"1"))
    assert left_of(data, {b"a": 0, b"b": 1, b"c": 2}) == data


def test_a_batch_without_remaining_records_is_dropped() -> None:
    data = simple_batch(0, (b"a", b"1"), (b"b", b"1"))
    assert left_of(data, {b"a": 7, b"b": 8}) == b""


@pytest.mark.parametrize("codec", Codec)
def test_records_that_stay_are_as_they_were(codec: Codec) -> None:
    new: list[NewRecord] = [
        (1000 + 7 * slot, b"%d" % slot, b"v" * slot, [("h", b"%d" % slot), ("n", None)]) for slot in range(9)
    ]
    data = build_batch(
        new,
        base_offset=100,
        codec=codec,
        producer_id=5,
        producer_epoch=2,
        base_sequence=40,
        leader_epoch=3,
    )

    left = left_of(data, {b"%d" % slot: 500 for slot in (0, 3, 4, 8)})

    before, after = decode_batch(data), decode_batch(left)
    assert after == [before[slot] for slot in (1, 2, 5, 6, 7)]
    header = only_header(left)
    assert (header.codec, header.count) == (codec, 5)
    assert (header.base_offset, header.last_offset, header.last_sequence) == (100, 108, 48)
    assert (header.producer_id, header.producer_epoch, header.leader_epoch) == (5, 2, 3)
    assert header.max_timestamp == 1000 + 7 * 7


def test_the_largest_timestamp_is_that_of_the_remaining_records() -> None:
    times = (50, 90, 70)
    data = build_batch([(time, b"%d" % time, b"v", ()) for time in times])

    header = only_header(left_of(data, {b"90": 7}))

    # Timestamps are still relative to the first record's, which only affects the encoding.
    assert (header.base_timestamp, header.max_timestamp) == (50, 70)


def test_append_time_stays_the_time_of_every_record() -> None:
    data = build_batch(
        [(time, b"%d" % time, b"v", ()) for time in (50, 90)], timestamp_type=TimestampType.LOG_APPEND_TIME
    )

    left = left_of(data, {b"90": 7})

    assert only_header(left).max_timestamp == 90
    assert [record.timestamp for record in decode_batch(left)] == [90]


def test_keys_that_are_not_in_the_map_stay() -> None:
    data = simple_batch(0, (b"a", b"1"))
    assert left_of(data, {}) == data


def test_records_beyond_the_map_stay_even_without_a_key() -> None:
    data = simple_batch(0, (None, b"1"), (b"a", b"1"), (None, b"2"), (b"a", b"2"))

    left = left_of(data, {b"a": 9}, latest_offset=1)

    assert [record.offset for record in decode_batch(left)] == [2, 3]


def test_records_without_a_key_go_and_are_counted() -> None:
    rewriting = Rewriting({})

    left = rewriting.feed(simple_batch(0, (None, b"1"), (b"a", b"1"), (None, b"2")))

    assert [record.offset for record in decode_batch(left)] == [1]
    assert rewriting.rewriter.records_without_key == 2
    assert (rewriting.rewriter.records_read, rewriting.rewriter.records_kept) == (3, 1)


# Tombstones


def test_the_first_compaction_gives_a_tombstone_its_horizon() -> None:
    data = simple_batch(0, (b"a", b"1"), (b"b", None), (b"c", b"1"))

    left = left_of(data, {b"a": 7})

    assert only_header(left).delete_horizon_ms == HORIZON_MS
    assert decode_batch(left) == decode_batch(data)[1:]


def test_a_horizon_is_not_moved() -> None:
    data = simple_batch(0, (b"a", b"1"), (b"b", None))
    once = left_of(data, {})

    again = left_of(once, {b"a": 7}, now_ms=NOW_MS + 10)

    assert only_header(again).delete_horizon_ms == HORIZON_MS
    assert decode_batch(again) == decode_batch(data)[1:]
    assert left_of(again, {}, now_ms=NOW_MS + 20) == again


def test_tombstones_are_removed_after_their_delete_horizon() -> None:
    once = left_of(simple_batch(0, (b"a", b"1"), (b"b", None)), {})

    assert left_of(once, {}, now_ms=HORIZON_MS - 1) == once
    left = left_of(once, {}, now_ms=HORIZON_MS)

    assert [record.key for record in decode_batch(left)] == [b"a"]
    assert only_header(left).delete_horizon_ms == HORIZON_MS


def test_an_overwritten_tombstone_is_removed_at_once() -> None:
    data = simple_batch(0, (b"a", None), (b"b", b"1"))

    left = left_of(data, {b"a": 7})

    assert only_header(left).delete_horizon_ms is None
    assert [record.key for record in decode_batch(left)] == [b"b"]


def test_a_batch_with_a_time_before_1970_gets_no_horizon() -> None:
    sound = build_batch([(1000, b"a", None, ()), (1000, b"b", b"1", ())])
    odd = decode_batch(sound)
    odd[1].timestamp = -5
    data = rebuild_batch(read_header(sound), odd)

    assert left_of(data, {}) == data


# Transactions and producers


def transactional(base_offset: int, *pairs: tuple[bytes, bytes]) -> bytes:
    return build_batch(
        records(*pairs),
        base_offset=base_offset,
        producer_id=7,
        producer_epoch=1,
        base_sequence=0,
        transactional=True,
    )


def test_aborted_data_is_removed_and_its_marker_stays() -> None:
    data = transactional(0, (b"a", b"1"))
    end = marker(ABORT, base_offset=1, producer_id=7)

    assert left_of(data + end, {}, aborted=[AbortedTxn(7, 0, 1, 2)]) == end


def test_a_marker_without_data_is_removed_after_its_delete_horizon() -> None:
    end = marker(COMMIT, base_offset=1, producer_id=7)

    once = left_of(end, {})

    assert only_header(once).delete_horizon_ms == HORIZON_MS
    assert decode_batch(once) == decode_batch(end)
    assert left_of(once, {}, now_ms=HORIZON_MS - 1) == once
    assert left_of(once, {}, now_ms=HORIZON_MS) == b""


def test_a_marker_past_its_delete_horizon_stays_while_its_data_does() -> None:
    end = left_of(marker(COMMIT, base_offset=1, producer_id=7), {})
    data = transactional(0, (b"a", b"1")) + end

    assert left_of(data, {}, now_ms=HORIZON_MS) == data


def test_the_last_batch_of_a_producer_stays_without_its_records() -> None:
    data = build_batch(
        records((b"a", b"1"), (b"a", b"2")), base_offset=4, producer_id=7, producer_epoch=1, base_sequence=8
    )

    left = left_of(data, {b"a": 9}, producers={7: LastRecord(5, 1)})

    assert left == empty_batch(read_header(data))
    assert only_header(left).last_sequence == 9
    assert left_of(left, {b"a": 9}, producers={7: LastRecord(5, 1)}) == left
    assert left_of(left, {b"a": 9}, producers={7: LastRecord(20, 1)}) == b""


def test_aborted_data_that_is_a_producers_last_stays_without_its_records() -> None:
    data = transactional(0, (b"a", b"1"))

    left = left_of(data, {}, aborted=[AbortedTxn(7, 0, 9, 9)], producers={7: LastRecord(0, 1)})

    assert left == empty_batch(read_header(data))


def test_a_producers_last_marker_stays_without_its_record() -> None:
    once = left_of(marker(COMMIT, base_offset=1, producer_id=7, producer_epoch=4), {})

    left = left_of(once, {}, producers={7: LastRecord(None, 4)}, now_ms=HORIZON_MS)

    assert only_header(left).count == 0
    assert only_header(left).producer_epoch == 4
    assert left_of(once, {}, producers={7: LastRecord(None, 5)}, now_ms=HORIZON_MS) == b""


def test_the_last_batch_of_all_stays_without_its_records() -> None:
    data = simple_batch(0, (b"a", b"1")) + simple_batch(1, (b"a", b"2"))

    left = left_of(data, {b"a": 9}, upper_bound=2)

    assert only_header(left).base_offset == 1
    assert only_header(left).count == 0


# Pieces


def test_something_is_left_from_an_offset_on_if_it_must_be() -> None:
    rewriting = Rewriting({b"a": 99})
    kept = simple_batch(0, (b"b", b"1"))

    left = rewriting.feed(kept + simple_batch(10, (b"a", b"1")) + simple_batch(11, (b"a", b"2")), 10)

    assert [(header.base_offset, header.count) for _, header in batch_headers(left)] == [(0, 1), (11, 0)]


def test_nothing_more_is_left_if_something_is() -> None:
    rewriting = Rewriting({b"a": 99})
    kept = simple_batch(10, (b"b", b"1"))

    assert rewriting.feed(kept + simple_batch(11, (b"a", b"2")), 10) == kept


def test_pieces_give_the_same_as_the_whole() -> None:
    batches = [simple_batch(at, (b"a%d" % at, b"1"), (b"b", b"1")) for at in range(0, 40, 2)]
    known = {b"b": 39, b"a8": 99, b"a22": 99}

    rewriting = Rewriting(known)
    for batch in batches:
        rewriting.feed(batch)

    assert rewriting.feed(b"") == left_of(b"".join(batches), known)


def test_the_indexes_lead_to_the_batches() -> None:
    batches = [simple_batch(at, (b"%d" % at, b"v" * 3000)) for at in range(20)]
    rewriting = Rewriting({b"3": 99, b"4": 99})

    rewriting.feed(b"".join(batches))

    assert rewriting.segment.offset_index().count > 5
    for offset in (0, 2, 3, 5, 11, 19):
        found = rewriting.segment.find(offset)
        assert found is not None
        assert found.base_offset == (5 if offset in (3, 4) else offset)


# Garbage


def sealed(area: bytes, count: int, **changes: int) -> bytes:
    """A batch with a valid CRC and an invalid record area."""
    header = read_header(simple_batch(0, (b"a", b"1")))
    return seal(header._replace(count=count, last_offset_delta=5, **changes), area, Codec.NONE)


# Length 8, attributes, time 0, offset 0, the key "a", the value "1", no headers.
RECORD = bytes.fromhex("100000000261023100")
GARBAGE = {
    "record length 9 is out of range": (b"\x12" + RECORD[1:], 1),
    "record length 3 is out of range": (b"\x06" + RECORD[1:], 1),
    "2 records do not fit": (RECORD, 2),
    "9 bytes follow the last record": (RECORD + RECORD, 1),
    "timestamp delta is truncated": (RECORD[:2] + b"\xff" * 7, 1),
    "offset delta 6 is out of order": (RECORD[:3] + b"\x0c" + RECORD[4:], 1),
    "offset delta 0 is out of order": (RECORD + RECORD, 2),
    "offset delta -1 is out of order": (RECORD[:3] + b"\x01" + RECORD[4:], 1),
    "key length 30 is out of range": (RECORD[:4] + b"\x3c" + RECORD[5:], 1),
    "key length -2 is out of range": (RECORD[:4] + b"\x03" + RECORD[5:], 1),
    "value length 30 is out of range": (RECORD[:6] + b"\x3c" + RECORD[7:], 1),
    "header count 1 is out of range": (RECORD[:8] + b"\x02", 1),
    "header name length 2 is out of range": (b"\x14" + RECORD[1:8] + b"\x02\x04\x01", 1),
    "header value length -2 is out of range": (b"\x14" + RECORD[1:8] + b"\x02\x00\x03", 1),
    "1 bytes follow the last field": (b"\x12" + RECORD[1:] + b"\x00", 1),
}


@pytest.mark.parametrize("what", GARBAGE)
def test_records_that_do_not_parse_are_refused(what: str) -> None:
    area, count = GARBAGE[what]
    with pytest.raises(CorruptBatch, match=what):
        left_of(sealed(area, count), {})


def test_a_negative_record_count_is_refused() -> None:
    with pytest.raises(CorruptBatch, match="record count -1 is negative"):
        left_of(sealed(RECORD, -1), {})


@pytest.mark.parametrize("codec", Codec)
def test_a_batch_without_records_is_valid_with_any_codec(codec: Codec) -> None:
    assert left_of(sealed(b"", 0, attributes=int(codec)), {}) == b""


def test_a_valid_record_is_accepted() -> None:
    assert left_of(sealed(RECORD, 1), {}) == sealed(RECORD, 1)


def test_a_time_that_no_number_holds_is_refused() -> None:
    late = (1 << 63) - 1
    area = RECORD[:2] + b"\x02" + RECORD[3:]
    with pytest.raises(CorruptBatch, match="timestamp is out of range"):
        left_of(sealed(area, 1, base_timestamp=late), {})


def test_unknown_attributes_are_refused() -> None:
    with pytest.raises(CorruptBatch, match="unknown attributes 0x0100"):
        left_of(sealed(RECORD, 1, attributes=0x100), {})


def test_a_codec_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UnknownCodec, match="codec 7"):
        left_of(sealed(RECORD, 1, attributes=7), {})
