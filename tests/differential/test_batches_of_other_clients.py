"""Batches of aiokafka and kafka-python, read by us; and ours, read by them."""

import warnings
from typing import Any

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords as AioRecords

from barnabas.records.builder import build_batch
from barnabas.records.decode import decode_batch
from barnabas.records.header import HEADER_SIZE, Codec
from barnabas.records.record import Record
from barnabas.records.validate import check_produced, check_records

with warnings.catch_warnings():
    # kafka-python reads its schemas through a deprecated function while it is imported.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.record.memory_records import MemoryRecords as KafkaPythonRecords
    from kafka.record.memory_records import MemoryRecordsBuilder as KafkaPythonBuilder

pytestmark = pytest.mark.kernel

READERS = {"aiokafka": lambda data: AioRecords(data), "kafka-python": lambda data: KafkaPythonRecords(data)}

RECORDS: list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]] = [
    (1_700_000_000_000, b"first", b"value", []),
    (1_700_000_000_500, None, b"no key", [("trace", b"\x00\xff")]),
    (1_700_000_000_250, b"a tombstone", None, []),
    (1_700_000_001_000, b"", b"", [("again", b"1"), ("again", b"2"), ("ü", b"")]),
    *[(1_700_000_002_000 + i, b"k%d" % i, b"some value %d " % i * (i % 50), []) for i in range(300)],
]
EXPECTED = [Record(i, t, key, value, tuple(headers)) for i, (t, key, value, headers) in enumerate(RECORDS)]


def written_by_aiokafka(codec: Codec, **options: Any) -> bytes:
    settings = {
        "is_transactional": 0,
        "producer_id": -1,
        "producer_epoch": -1,
        "base_sequence": -1,
        **options,
    }
    builder = DefaultRecordBatchBuilder(magic=2, compression_type=int(codec), batch_size=1 << 20, **settings)
    for offset, (timestamp, key, value, headers) in enumerate(RECORDS):
        assert builder.append(offset, timestamp, key, value, headers) is not None
    return bytes(builder.build())


def written_by_kafka_python(codec: Codec, **options: Any) -> bytes:
    builder = KafkaPythonBuilder(magic=2, compression_type=int(codec), batch_size=1 << 20, **options)
    for timestamp, key, value, headers in RECORDS:
        assert builder.append(timestamp, key, value, headers) is not None
    builder.close()
    return bytes(builder.buffer())


WRITERS = {"aiokafka": written_by_aiokafka, "kafka-python": written_by_kafka_python}


def read_by(client: str, data: bytes) -> list[Record]:
    records = READERS[client](data)
    batch = records.next_batch()
    assert batch is not None
    assert batch.validate_crc()
    read = [Record(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in batch]
    assert records.next_batch() is None
    return read


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("client", READERS)
def test_we_read_batches_of_other_clients(client: str, codec: Codec) -> None:
    data = WRITERS[client](codec)

    assert check_produced(data).codec is codec
    assert check_records(data).first_null_key == 1
    assert decode_batch(data) == EXPECTED


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("client", READERS)
def test_other_clients_read_our_batches(client: str, codec: Codec) -> None:
    assert read_by(client, build_batch(RECORDS, codec=codec)) == EXPECTED


@pytest.mark.parametrize("client", READERS)
def test_our_plain_batches_are_the_same_bytes(client: str) -> None:
    assert build_batch(RECORDS)[HEADER_SIZE:] == WRITERS[client](Codec.NONE)[HEADER_SIZE:]


@pytest.mark.parametrize(
    ("client", "flag"), [("aiokafka", {"is_transactional": 1}), ("kafka-python", {"transactional": True})]
)
def test_a_transactional_header_is_the_same(client: str, flag: dict[str, Any]) -> None:
    producer = {"producer_id": 9, "producer_epoch": 2, "base_sequence": 4}
    theirs = check_produced(WRITERS[client](Codec.NONE, **flag, **producer))

    ours = check_produced(build_batch(RECORDS, transactional=True, **producer))

    assert theirs.is_transactional
    # A producer knows no leader epoch and each client fills in another number.
    assert theirs._replace(leader_epoch=-1) == ours
