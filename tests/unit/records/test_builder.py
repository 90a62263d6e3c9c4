import pytest

from barnabas.records import builder as builder_module
from barnabas.records.builder import BatchBuilder, build_batch, plain_batch
from barnabas.records.decode import decode_batch
from barnabas.records.errors import RecordTooLarge, TimestampOutOfRange
from barnabas.records.header import HEADER_SIZE, Codec, TimestampType, read_header
from barnabas.records.record import Record
from barnabas.records.validate import check_batch, check_produced

pytestmark = pytest.mark.kernel

RECORDS = [
    (2000, b"k", b"v", ()),
    (1000, None, b"", [("name", b"value"), ("name", None)]),
    (3000, b"", None, (("ü", b""),)),
]


def test_a_built_batch_equals_kafkas_byte_for_byte() -> None:
    data = build_batch([(1000, b"k", b"v", ())], base_offset=5, leader_epoch=7)

    assert data.hex(" ") == (
        "00 00 00 00 00 00 00 05 00 00 00 3a 00 00 00 07 02 "
        + data[17:21].hex(" ")
        + " 00 00 00 00 00 00 00 00 00 00 00 00 03 e8 00 00 00 00 00 00 03 e8"
        + " ff ff ff ff ff ff ff ff ff ff ff ff ff ff 00 00 00 01"
        + " 10 00 00 00 02 6b 02 76 00"
    )
    assert check_produced(data[:7] + b"\0" + data[8:]).count == 1


@pytest.mark.parametrize(
    "records", [[(b"k", b"v")], [(b"", None), (b"key", b""), (b"k" * 200, b"v" * 70_000)]]
)
def test_a_plain_batch_has_the_same_bytes_as_any_other(records: list[tuple[bytes, bytes | None]]) -> None:
    built = plain_batch(records, 1_700_000_000_000, base_offset=2**40, leader_epoch=7)

    assert built == build_batch(
        [(1_700_000_000_000, key, value, ()) for key, value in records], base_offset=2**40, leader_epoch=7
    )


def test_a_plain_batch_is_refused_as_any_other() -> None:
    with pytest.raises(TimestampOutOfRange):
        plain_batch([(b"k", b"v")], -7, base_offset=0, leader_epoch=0)
    with pytest.raises(AssertionError, match="an empty batch"):
        plain_batch([], 0, base_offset=0, leader_epoch=0)


@pytest.mark.parametrize("codec", Codec)
def test_built_batches_are_decoded_to_the_same_records(codec: Codec) -> None:
    data = build_batch(RECORDS, codec=codec, base_offset=10)

    assert check_batch(data).codec is codec
    assert decode_batch(data) == [
        Record(10, 2000, b"k", b"v"),
        Record(11, 1000, None, b"", (("name", b"value"), ("name", None))),
        Record(12, 3000, b"", None, (("ü", b""),)),
    ]


def test_the_header_has_the_given_fields() -> None:
    data = build_batch(
        RECORDS,
        base_offset=10,
        codec=Codec.LZ4,
        producer_id=77,
        producer_epoch=3,
        base_sequence=2**31 - 2,
        transactional=True,
        leader_epoch=4,
        timestamp_type=TimestampType.LOG_APPEND_TIME,
    )

    header = check_batch(data)
    assert header.size == len(data)
    assert (header.base_offset, header.last_offset, header.count) == (10, 12, 3)
    assert (header.base_timestamp, header.max_timestamp) == (2000, 3000)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (77, 3, 2**31 - 2)
    assert header.last_sequence == 0
    assert (header.is_transactional, header.is_control, header.leader_epoch) == (True, False, 4)
    assert header.timestamp_type is TimestampType.LOG_APPEND_TIME


@pytest.mark.parametrize(("epoch", "sequence"), [(-0x8000, -0x80000000), (0x7FFF, 0x7FFFFFFF), (-5, -5)])
def test_a_producers_numbers_are_written_as_they_are(epoch: int, sequence: int) -> None:
    batch = build_batch([(0, None, b"v", ())], producer_id=-7, producer_epoch=epoch, base_sequence=sequence)

    header = read_header(batch)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (-7, epoch, sequence)


def test_a_level_is_passed_on_to_the_codec() -> None:
    records = [(0, None, b" ".join(b"%d" % (i * i) for i in range(2000)), ())]

    assert len(build_batch(records, codec=Codec.GZIP, level=9)) < len(
        build_batch(records, codec=Codec.GZIP, level=1)
    )


def test_size_is_exact_after_every_append() -> None:
    builder = BatchBuilder()
    assert builder.size == HEADER_SIZE

    for i, size in enumerate([0, 1, 62, 63, 64, 200, 8190, 8192, 20_000]):
        assert builder.append(1000 + i * 977, bytes(size), bytes(size), [("h" * (i + 1), None)])
        assert builder.size == len(builder.build())
        assert builder.count == i + 1


def test_a_record_that_does_not_fit_is_refused_and_leaves_no_trace() -> None:
    builder = BatchBuilder(max_bytes=HEADER_SIZE + 2 * 9)
    assert builder.append(0, b"k", b"v")
    assert builder.append(0, b"k", b"v")
    before = builder.build()

    assert not builder.append(0, None, None)

    assert builder.build() == before
    assert builder.size == HEADER_SIZE + 18


def test_the_limit_is_exact() -> None:
    for max_bytes, fits in ((HEADER_SIZE + 18, True), (HEADER_SIZE + 17, False)):
        builder = BatchBuilder(max_bytes=max_bytes)
        builder.append(0, b"k", b"v")
        assert builder.append(0, b"k", b"v") is fits


def test_the_first_record_may_exceed_the_batch_size() -> None:
    builder = BatchBuilder(max_bytes=100)

    assert builder.append(0, None, bytes(1000))
    assert not builder.append(0, None, b"")
    assert len(decode_batch(builder.build())) == 1


def test_a_record_that_no_batch_may_hold_is_an_error() -> None:
    too_large = bytes(builder_module.MAX_RECORD_AREA)

    with pytest.raises(RecordTooLarge, match="exceed the limit"):
        BatchBuilder().append(0, None, too_large)
    with pytest.raises(RecordTooLarge):
        build_batch([(0, None, b"", ()), (0, None, too_large, ())])

    builder = BatchBuilder(max_bytes=2 * builder_module.MAX_RECORD_AREA)
    assert builder.append(0, None, b"")
    assert not builder.append(0, None, too_large)


def test_building_does_not_end_the_batch() -> None:
    builder = BatchBuilder()
    builder.append(0, None, b"a")
    builder.build()
    builder.append(0, None, b"b")

    assert [record.value for record in decode_batch(builder.build())] == [b"a", b"b"]


def test_a_batch_of_nothing_is_not_built() -> None:
    with pytest.raises(AssertionError, match="an empty batch"):
        BatchBuilder().build()


@pytest.mark.parametrize(("first", "second"), [(-1, 2**63 - 3), (2**63 - 3, -1), (5, -1), (-1, 5)])
def test_timestamps_may_go_back_and_forth(first: int, second: int) -> None:
    data = build_batch([(first, None, None, ()), (second, None, None, ())])

    assert [record.timestamp for record in decode_batch(data)] == [first, second]
    assert read_header(data).max_timestamp == max(first, second)


@pytest.mark.parametrize("timestamp", [-2, -(2**63), 2**63 - 2, 2**63 - 1])
def test_a_timestamp_out_of_range_is_refused_and_nothing_is_added(timestamp: int) -> None:
    builder = BatchBuilder()
    builder.append(-1, None, b"a")

    with pytest.raises(TimestampOutOfRange, match=f"timestamp {timestamp} is out of range"):
        builder.append(timestamp, None, b"b")

    assert [record.value for record in decode_batch(builder.build())] == [b"a"]
