import pytest

from barnabas.records.builder import build_batch
from barnabas.records.control import ControlType
from barnabas.records.errors import CorruptBatch
from barnabas.records.header import Codec
from barnabas.storage.cleaner.build import KeysDoNotFit, MapBuilder
from barnabas.storage.cleaner.key_map import NOT_FOUND, SLOT_SIZE, KeyMap
from barnabas.storage.cleaner.transactions import Transactions
from barnabas.storage.segment.txn_index import AbortedTxn
from support.log.compaction import SECRET, marker, records, simple_batch

pytestmark = pytest.mark.kernel


def builder(
    *, dirty_start: int = 0, aborted: AbortedTxn | None = None, keys: int = 1000
) -> tuple[MapBuilder, KeyMap]:
    key_map = KeyMap((keys + 1) * SLOT_SIZE, SECRET, load_factor=1.0)
    made = MapBuilder(key_map, Transactions([aborted] if aborted else [], 0), dirty_start)
    made.batch.begin_segment(0, 1 << 40)
    return made, key_map


@pytest.mark.parametrize("codec", Codec)
def test_every_key_gets_its_last_offset(codec: Codec) -> None:
    made, key_map = builder()
    data = build_batch(records((b"a", b"1"), (b"b", None), (b"a", b"2")), base_offset=5, codec=codec)

    assert made.feed(data) == len(data)

    assert (key_map.get(b"a"), key_map.get(b"b")) == (7, 6)
    assert (key_map.latest_offset, made.records_read) == (7, 3)


def test_only_whole_batches_are_taken() -> None:
    made, key_map = builder()
    first, second = simple_batch(0, (b"a", b"1")), simple_batch(1, (b"a", b"2"))

    assert made.feed(first + second[:-1]) == len(first)

    assert key_map.get(b"a") == 0


def test_records_without_keys_are_skipped() -> None:
    made, key_map = builder()
    made.feed(simple_batch(0, (None, b"1"), (b"", b"2")))
    assert (key_map.count, key_map.get(b"")) == (1, 1)


def test_records_before_the_dirty_start_are_skipped() -> None:
    made, key_map = builder(dirty_start=3)
    made.feed(simple_batch(0, (b"a", b"1")))
    assert key_map.latest_offset == NOT_FOUND
    made.feed(simple_batch(1, (b"a", b"1"), (b"b", b"1"), (b"c", b"1"), (b"b", b"2")))

    assert [key_map.get(key) for key in (b"a", b"b", b"c")] == [NOT_FOUND, 4, 3]
    assert key_map.latest_offset == 4


def test_keys_of_aborted_transactions_and_of_markers_do_not_count() -> None:
    made, key_map = builder(aborted=AbortedTxn(7, 0, 1, 2))
    made.feed(
        build_batch(
            records((b"a", b"1")), producer_id=7, producer_epoch=0, base_sequence=0, transactional=True
        )
    )
    made.feed(marker(ControlType.ABORT, base_offset=1, producer_id=7))

    assert key_map.count == 0
    assert key_map.latest_offset == 1


def test_a_full_map_ends_with_the_last_batch_that_fits() -> None:
    made, key_map = builder(keys=3)
    first, second = simple_batch(0, (b"a", b"1"), (b"b", b"1")), simple_batch(2, (b"c", b"1"), (b"d", b"1"))

    assert made.feed(first + second) == len(first)

    assert made.is_full
    assert key_map.latest_offset == 1
    # The key supersedes earlier ones already, and lies beyond the compacted range itself.
    assert key_map.get(b"c") == 2
    made.check_progress()


def test_a_batch_whose_keys_never_fit_is_reported() -> None:
    made, _ = builder(keys=1, dirty_start=10)
    made.feed(simple_batch(10, (b"a", b"1"), (b"b", b"1")))

    with pytest.raises(KeysDoNotFit, match=r"offset 10 on has more than the 1 keys .*dedupe.buffer.size"):
        made.check_progress()


def test_a_gap_at_the_end_of_a_segment_counts_as_read() -> None:
    made, key_map = builder()
    made.feed(simple_batch(0, (b"a", b"1")))

    made.end_segment(50)

    assert key_map.latest_offset == 49


def test_damage_is_reported_with_its_position() -> None:
    made, _ = builder()
    good, bad = simple_batch(0, (b"a", b"1")), bytearray(simple_batch(1, (b"a", b"1")))
    bad[-1] ^= 1

    with pytest.raises(CorruptBatch, match="CRC"):
        made.feed(good + bytes(bad))

    assert made.batch.at == len(good)


def test_batches_that_go_back_in_offsets_are_refused() -> None:
    made, _ = builder()
    with pytest.raises(CorruptBatch, match=r"offsets 4 to 4 are outside \[6, "):
        made.feed(simple_batch(5, (b"a", b"1")) + simple_batch(4, (b"a", b"1")))


def test_batches_of_the_next_segment_are_refused() -> None:
    made, _ = builder()
    made.batch.begin_segment(0, 2)
    with pytest.raises(CorruptBatch, match=r"offsets 1 to 2 are outside \[0, 2\)"):
        made.feed(simple_batch(1, (b"a", b"1"), (b"a", b"1")))
