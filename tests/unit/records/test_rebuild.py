import pytest

from barnabas.records.builder import build_batch
from barnabas.records.decode import decode_batch
from barnabas.records.header import Codec, TimestampType, read_header
from barnabas.records.rebuild import empty_batch, rebuild_batch
from barnabas.records.validate import check_batch

pytestmark = pytest.mark.kernel


def batch(codec: Codec = Codec.NONE, **options: object) -> bytes:
    records = [(1000 + 10 * i, b"k%d" % i, b"v%d" % i, [("h", b"%d" % i)]) for i in range(6)]
    return build_batch(
        records,
        base_offset=100,
        codec=codec,
        producer_id=9,
        producer_epoch=2,
        base_sequence=40,
        transactional=True,
        leader_epoch=3,
        **options,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("codec", Codec)
def test_records_that_stay_keep_their_offsets(codec: Codec) -> None:
    before = batch(codec)
    kept = [record for record in decode_batch(before) if record.offset in (101, 104)]

    after = rebuild_batch(read_header(before), kept)

    assert decode_batch(after) == kept
    header = check_batch(after)
    assert (header.codec, header.count) == (codec, 2)
    assert (header.base_offset, header.last_offset, header.last_sequence) == (100, 105, 45)
    assert (header.producer_id, header.producer_epoch, header.leader_epoch) == (9, 2, 3)
    assert header.is_transactional
    assert (header.base_timestamp, header.max_timestamp) == (1010, 1040)


def test_rebuilding_with_all_records_gives_the_same_bytes() -> None:
    assert rebuild_batch(read_header(batch()), decode_batch(batch())) == batch()


def test_a_batch_with_nothing_left_holds_the_producers_place() -> None:
    before = read_header(batch(Codec.GZIP))

    for after in (rebuild_batch(before, []), empty_batch(before)):
        header = check_batch(after)
        assert (len(after), header.count, header.codec) == (61, 0, Codec.NONE)
        assert (header.base_offset, header.last_offset, header.last_sequence) == (100, 105, 45)
        assert (header.producer_id, header.producer_epoch, header.is_transactional) == (9, 2, True)
        assert (header.base_timestamp, header.max_timestamp) == (-1, 1050)
        assert decode_batch(after) == []


def test_a_delete_horizon_takes_the_place_of_the_base_timestamp() -> None:
    kept = decode_batch(batch())[2:4]

    after = rebuild_batch(read_header(batch()), kept, delete_horizon_ms=5000)

    header = check_batch(after)
    assert header.delete_horizon_ms == 5000
    assert header.max_timestamp == 1030
    assert decode_batch(after) == kept


def test_a_delete_horizon_stays_until_the_batch_is_empty() -> None:
    first = rebuild_batch(read_header(batch()), decode_batch(batch())[:3], delete_horizon_ms=5000)

    second = rebuild_batch(read_header(first), decode_batch(first)[:1])
    third = rebuild_batch(read_header(second), [])

    assert read_header(second).delete_horizon_ms == 5000
    assert decode_batch(second) == decode_batch(batch())[:1]
    assert read_header(third).delete_horizon_ms is None


def test_the_max_timestamp_is_the_largest_that_is_left_and_not_the_last() -> None:
    before = build_batch([(time, b"k", b"v", ()) for time in (50, 90, 70, 60)])

    after = rebuild_batch(read_header(before), decode_batch(before)[2:])

    assert (read_header(after).base_timestamp, read_header(after).max_timestamp) == (70, 70)


def test_the_append_time_is_unchanged() -> None:
    before = batch(timestamp_type=TimestampType.LOG_APPEND_TIME)

    after = rebuild_batch(read_header(before), decode_batch(before)[:2])

    assert read_header(after).max_timestamp == 1050
    assert [record.timestamp for record in decode_batch(after)] == [1050, 1050]
