"""Any records with any codec survive a round trip, and all decoders and checks agree."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.records.builder import BatchBuilder, build_batch
from barnabas.records.codecs import compress, decompress
from barnabas.records.decode import decode_batch
from barnabas.records.header import HEADER_SIZE, Codec, batch_headers, read_header, stamp, whole_batches
from barnabas.records.rebuild import rebuild_batch
from barnabas.records.record import Record
from barnabas.records.validate import check_batch, check_produced, check_records

pytestmark = pytest.mark.kernel

NULLABLE = st.none() | st.binary(max_size=300)
# Text that UTF-8 can encode: no lone surrogates.
NAMES = st.text(st.characters(codec="utf-8"), max_size=20)
HEADERS = st.lists(st.tuples(NAMES, NULLABLE), max_size=4)
TIMESTAMPS = st.integers(-1, 2**63 - 3) | st.integers(1_700_000_000_000, 1_700_000_100_000)
NEW_RECORDS = st.lists(st.tuples(TIMESTAMPS, NULLABLE, NULLABLE, HEADERS), min_size=1, max_size=30)
CODECS = st.sampled_from(Codec)


@given(records=NEW_RECORDS, codec=CODECS, base_offset=st.integers(0, 2**62))
def test_records_survive_a_round_trip(
    records: list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]],
    codec: Codec,
    base_offset: int,
) -> None:
    data = build_batch(records, codec=codec, base_offset=base_offset)

    header = check_batch(data)
    assert (header.count, header.next_offset) == (len(records), base_offset + len(records))
    assert decode_batch(data) == [
        Record(base_offset + i, timestamp, key, value, tuple(headers))
        for i, (timestamp, key, value, headers) in enumerate(records)
    ]


@given(records=NEW_RECORDS, codec=CODECS)
def test_the_walk_and_the_decoder_agree(
    records: list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]], codec: Codec
) -> None:
    data = build_batch(records, codec=codec)

    facts = check_records(data)

    set_times = [timestamp for timestamp, *_ in records if timestamp != -1]
    assert check_produced(data).count == len(records)
    assert facts.max_timestamp == max([-1, *set_times])
    assert facts.min_timestamp == (min(set_times) if set_times else -1)
    without_key = [i for i, (_, key, *_) in enumerate(records) if key is None]
    assert facts.first_null_key == (without_key[0] if without_key else None)


@given(records=NEW_RECORDS, max_bytes=st.integers(HEADER_SIZE, 3000))
def test_a_builder_stays_within_its_limit_after_the_first_record(
    records: list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]], max_bytes: int
) -> None:
    builder = BatchBuilder(max_bytes=max_bytes)
    taken = [record for record in records if builder.append(*record)]

    data = builder.build()

    assert len(data) == builder.size
    assert len(data) <= max_bytes or len(taken) == 1
    assert data == build_batch(taken)


@given(records=NEW_RECORDS, codec=CODECS, data=st.data())
def test_compaction_keeps_exactly_the_selected_records(
    records: list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]],
    codec: Codec,
    data: st.DataObject,
) -> None:
    before = build_batch(records, codec=codec, base_offset=50)
    kept = [record for record in decode_batch(before) if data.draw(st.booleans())]

    after = rebuild_batch(read_header(before), kept)

    assert decode_batch(after) == kept
    assert check_batch(after).last_offset == read_header(before).last_offset


@given(st.lists(st.integers(1, 5), max_size=5), st.integers(0, 200))
def test_a_truncated_buffer_yields_exactly_its_complete_batches(counts: list[int], cut: int) -> None:
    batches = [build_batch([(0, None, b"v", ())] * count) for count in counts]
    data = b"".join(batches)
    data = data[: max(0, len(data) - cut)]

    whole = whole_batches(data)

    ends = [sum(map(len, batches[: i + 1])) for i in range(len(batches))]
    fitting = [end for end in ends if end <= len(data)]
    assert whole == (len(fitting), max([0, *fitting]))
    assert [at for at, _ in batch_headers(data[: whole.size])] == [0, *fitting][: len(fitting)]


@given(
    offset=st.integers(0, 2**63 - 2**31 - 1),
    epoch=st.integers(-1, 2**31 - 1),
    time=st.none() | st.integers(0, 2**63 - 1),
    before=st.binary(max_size=20),
)
def test_stamping_changes_only_the_stamped_fields(
    offset: int, epoch: int, time: int | None, before: bytes
) -> None:
    batch = build_batch(
        [(5, b"k", b"v", ()), (6, None, None, ())], producer_id=1, producer_epoch=1, base_sequence=1
    )
    buffer = bytearray(before + batch + b"after")

    stamp(buffer, len(before), base_offset=offset, leader_epoch=epoch, log_append_time_ms=time)

    header = check_batch(buffer, len(before))
    expected = read_header(batch)._replace(base_offset=offset, leader_epoch=epoch, crc=header.crc)
    if time is not None:
        expected = expected._replace(max_timestamp=time, attributes=0x08)
    assert header == expected
    assert buffer[: len(before)] == before
    assert buffer[len(before) + HEADER_SIZE :] == batch[HEADER_SIZE:] + b"after"


@settings(max_examples=50)
@given(codec=CODECS, content=st.binary(max_size=5000), repeat=st.integers(1, 50))
def test_codecs_round_trip(codec: Codec, content: bytes, repeat: int) -> None:
    whole = content * repeat

    assert decompress(codec, compress(codec, whole), limit=len(whole)) == whole
