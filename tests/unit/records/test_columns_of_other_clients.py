"""Batches of aiokafka and kafka-python as columns, compared with their own decoders, in both directions."""

import warnings
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AioBuilder
from aiokafka.record.memory_records import MemoryRecords as AioRecords

from barnabas.records.columns_read import decode_columns
from barnabas.records.columns_write import encode_columns
from barnabas.records.header import Codec

with warnings.catch_warnings():
    # kafka-python reads its schemas through a deprecated function while it is imported.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.record.default_records import DefaultRecordBatchBuilder as KafkaPythonBuilder
    from kafka.record.memory_records import MemoryRecords as KafkaPythonRecords

pytestmark = pytest.mark.kernel

NOON = 1_700_000_000_000
BUILDERS: dict[str, Callable[..., Any]] = {"aiokafka": AioBuilder, "kafka-python": KafkaPythonBuilder}
READERS: dict[str, Callable[[bytes], Any]] = {"aiokafka": AioRecords, "kafka-python": KafkaPythonRecords}

RECORDS: list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]] = [
    (NOON, b"first", b"value", []),
    (NOON + 500, None, b"no key", [("trace", b"\x00\xff")]),
    (NOON + 250, b"a tombstone", None, []),
    (NOON + 1000, b"", b"", [("again", b"1"), ("again", b"2"), ("ü", b"")]),
    *[(NOON + 2000 + n, b"k%d" % n, b"some value %d " % n * (n % 50), []) for n in range(300)],
]


def written_by(client: str, codec: Codec) -> bytes:
    builder = BUILDERS[client](2, int(codec), False, -1, -1, -1, 1 << 20)
    for offset, (timestamp, key, value, headers) in enumerate(RECORDS):
        assert builder.append(offset, timestamp, key, value, headers) is not None
    return bytes(builder.build())


def read_by(client: str, data: bytes) -> list[tuple[Any, ...]]:
    records = READERS[client](data)
    found = []
    while records.has_next():
        batch = records.next_batch()
        assert batch.validate_crc()
        found += [(one.offset, one.timestamp, one.key, one.value, list(one.headers)) for one in batch]
    return found


def read_by_us(data: bytes) -> list[tuple[Any, ...]]:
    rows = decode_columns(data)
    headers = [[(one["key"], one["value"]) for one in some] for some in rows.column("headers").to_pylist()]
    times = rows.column("timestamp").cast(pa.int64()).to_pylist()
    offsets, keys, values = (rows.column(name).to_pylist() for name in ("offset", "key", "value"))
    return list(zip(offsets, times, keys, values, headers, strict=True))


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("client", BUILDERS)
def test_we_read_the_same_records_as_the_client(client: str, codec: Codec) -> None:
    data = written_by(client, codec) * 3

    columns = read_by_us(data)

    assert columns == read_by(client, data)
    assert len(columns) == 3 * len(RECORDS)


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("client", READERS)
def test_the_client_reads_our_batches(client: str, codec: Codec) -> None:
    times, keys, values, headers = zip(*RECORDS, strict=True)
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    table = pa.table(
        {
            "timestamp": pa.array(times, pa.timestamp("ms")),
            "key": pa.array(keys, pa.binary()),
            "value": pa.array(values, pa.binary()),
            "headers": pa.array([[{"key": k, "value": v} for k, v in some] for some in headers], kind),
        }
    )

    found = read_by(client, b"".join(encode_columns(table, codec=codec, batch_records=100)))

    assert found == [(offset, *record) for offset, record in enumerate(RECORDS)]
