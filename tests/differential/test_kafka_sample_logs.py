"""The log files of a real Kafka 4.3 broker, against what a consumer read from that broker."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.records.control import ControlType, read_control_type
from barnabas.records.decode import decode_batch
from barnabas.records.header import BatchHeader, Codec, TimestampType, batch_headers
from barnabas.records.rebuild import rebuild_batch
from barnabas.records.record import Record
from barnabas.records.validate import check_batch
from support.kafka.sample import expected_reads, sample_files

pytestmark = pytest.mark.kernel

EXPECTED = expected_reads()
# A consumer's numbers for the two timestamp types start at 1; 0 is "not available".
TIMESTAMP_TYPE = {TimestampType.CREATE_TIME: 1, TimestampType.LOG_APPEND_TIME: 2}
# Only every 500th record of this partition was written down.
SAMPLED = {"rolled-0": 500}


def read_logs() -> dict[str, bytes]:
    """Every partition's segments, one after the other."""
    logs: dict[str, bytes] = {}
    for name, data in sample_files().items():
        path = Path(name)
        if path.suffix == ".log":
            logs[path.parent.name] = logs.get(path.parent.name, b"") + data
    return logs


LOGS = read_logs()
PARTITIONS = sorted(key.split()[0] for key in EXPECTED if key.endswith("read_uncommitted"))


def batches(partition: str) -> Iterator[tuple[BatchHeader, bytes]]:
    data = LOGS[partition]
    for at, header in batch_headers(data):
        yield header, data[at : at + header.size]


def shown(record: Record, header: BatchHeader) -> list[Any]:
    def text(data: bytes | None) -> str | None:
        return None if data is None else data.decode()

    headers = [[name, text(value)] for name, value in record.headers]
    kind = TIMESTAMP_TYPE[header.timestamp_type]
    return [record.offset, kind, record.timestamp, text(record.key), text(record.value), headers]


def consumed(partition: str, expected: dict[str, Any], *, committed_only: bool) -> list[list[Any]]:
    """What a consumer of this partition would be given."""
    ends = transaction_ends(partition)
    seen = []
    for header, batch in batches(partition):
        if header.is_control:
            continue
        if committed_only and header.is_transactional and not committed(header, ends):
            continue
        seen += [
            shown(r, header) for r in decode_batch(batch) if expected["low"] <= r.offset < expected["high"]
        ]
    return seen[:: SAMPLED.get(partition, 1)]


def transaction_ends(partition: str) -> list[tuple[int, int, ControlType | int]]:
    """Offset, producer id and kind of every transaction marker."""
    return [
        (record.offset, header.producer_id, read_control_type(record.key))
        for header, batch in batches(partition)
        if header.is_control
        for record in decode_batch(batch)
    ]


def committed(header: BatchHeader, ends: list[tuple[int, int, ControlType | int]]) -> bool:
    """A transactional batch is as good as the next marker of its producer."""
    kind = next(
        kind for offset, pid, kind in ends if pid == header.producer_id and offset > header.last_offset
    )
    return kind is ControlType.COMMIT


def test_the_sample_is_all_there() -> None:
    assert len(PARTITIONS) >= 8
    assert {Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD} == {
        header.codec for header, _ in batches("codecs-0")
    }
    assert {kind for _, _, kind in transaction_ends("txn-0")} == {ControlType.ABORT, ControlType.COMMIT}


@pytest.mark.parametrize("partition", sorted(LOGS))
def test_every_batch_that_kafka_wrote_is_sound(partition: str) -> None:
    for header, batch in batches(partition):
        assert check_batch(batch) == header
        assert len(decode_batch(batch)) == header.count


@pytest.mark.parametrize("partition", PARTITIONS)
def test_a_decoded_log_equals_the_records_of_a_consumer(partition: str) -> None:
    expected = EXPECTED[f"{partition} read_uncommitted"]

    assert consumed(partition, expected, committed_only=False) == expected["records"]


@pytest.mark.parametrize("partition", PARTITIONS)
def test_a_log_without_aborted_transactions_equals_read_committed(partition: str) -> None:
    expected = EXPECTED[f"{partition} read_committed"]

    assert consumed(partition, expected, committed_only=True) == expected["records"]


def test_the_next_offset_of_the_last_batch_is_the_high_watermark() -> None:
    for partition in PARTITIONS:
        *_, (last, _) = batches(partition)
        assert last.next_offset == EXPECTED[f"{partition} read_uncommitted"]["high"]


@pytest.mark.parametrize("partition", sorted(LOGS))
def test_rebuilt_uncompressed_batches_equal_those_of_kafka(partition: str) -> None:
    for header, batch in batches(partition):
        # Under LogAppendTime the producer's own timestamps are still in the bytes and no reader sees them.
        if header.codec is Codec.NONE and header.timestamp_type is TimestampType.CREATE_TIME:
            assert rebuild_batch(header, decode_batch(batch)) == batch
