"""How fast do record batches become Arrow columns, and columns become batches?

Ours against aiokafka's C extension and kafka-python, on the same bytes, CRC checks on for all. The peers
read offset, timestamp, key, value and headers of every record; they make Python objects, which is what
their users get, and we make columns, which is what ours get. Expected cost of ours: one CRC pass, one
scan, one copy of keys and values into plain binary (none with views), and the decompressor.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass

import aiokafka.codec
import pyarrow as pa
from aiokafka.record.default_records import DefaultRecordBatch as AioBatch
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AioBuilder
from aiokafka.record.memory_records import MemoryRecords as AioRecords
from kafka.record.default_records import DefaultRecordBatchBuilder as KafkaPythonBuilder
from kafka.record.memory_records import MemoryRecords as KafkaPythonRecords

from barnabas.base.kernels import compiled_kernels
from barnabas.records.columns_read import decode_columns
from barnabas.records.columns_write import encode_columns
from barnabas.records.header import RECORDS_AT, Codec, batch_headers
from barnabas.records.lz4_blocks import Scratch, unpack_lz4
from report import Options, Row, Timing, interleave, machine, parse_options, report

RECORDS = 10_000
START_MS = 1_700_000_000_000
UNBOUNDED = 1 << 30
UNIT = "M records/s"


@dataclass(frozen=True, slots=True)
class Case:
    """The same records as tuples, as columns and as batches."""

    name: str
    codec: Codec
    per_batch: int
    tuples: list[tuple[int, bytes, bytes]]
    columns: pa.Table
    data: bytes


def make_case(size: int, per_batch: int, codec: Codec) -> Case:
    rng = random.Random(size)
    # Half of a value is noise and half repeats, so that a codec has something to do.
    tuples = [
        (START_MS + index, b"key-%06d" % index, rng.randbytes(size // 2) + bytes(size - size // 2))
        for index in range(RECORDS)
    ]
    columns = pa.table(
        {
            "timestamp": pa.array([row[0] for row in tuples], pa.timestamp("ms")),
            "key": pa.array([row[1] for row in tuples], pa.binary()),
            "value": pa.array([row[2] for row in tuples], pa.binary()),
        }
    )
    batches = encode_columns(columns, codec=codec, batch_records=per_batch, batch_bytes=UNBOUNDED)
    name = f"{size} B, {per_batch} a batch{'' if codec is Codec.NONE else f', {codec.name.lower()}'}"
    return Case(name, codec, per_batch, tuples, columns, b"".join(batches))


def peer_reader(records_of: Callable[[bytes], object], data: bytes) -> Callable[[], None]:
    """Read everything of every record, as aiokafka and kafka-python have it: their shapes are the same."""

    def read() -> None:
        records = records_of(data)
        count = 0
        while records.has_next():  # type: ignore[attr-defined]
            batch = records.next_batch()  # type: ignore[attr-defined]
            assert batch.validate_crc()
            for record in batch:
                _ = (record.offset, record.timestamp, record.key, record.value, record.headers)
                count += 1
        assert count == RECORDS

    return read


def peer_writer(new_builder: Callable[[], object], case: Case) -> Callable[[], None]:
    def write() -> None:
        # All batches are kept to the end, as we return all of them.
        built = []
        for start in range(0, RECORDS, case.per_batch):
            builder = new_builder()
            for index, (timestamp, key, value) in enumerate(case.tuples[start : start + case.per_batch]):
                builder.append(index, timestamp, key, value, [])  # type: ignore[attr-defined]
            built.append(builder.build())  # type: ignore[attr-defined]

    return write


def unpacker(case: Case, unpack: Callable[[memoryview], object]) -> Callable[[], None]:
    """Only decompress every batch: the share of the time that no decoder can save."""
    view = memoryview(case.data)
    areas = [view[at + RECORDS_AT : at + header.size] for at, header in batch_headers(case.data)]

    def run() -> None:
        for area in areas:
            unpack(area)

    return run


def our_unpacker(case: Case) -> Callable[[], None]:
    """The same with our decompressor, from where the batches lie, as the columns use it."""
    areas = [(at + RECORDS_AT, at + header.size) for at, header in batch_headers(case.data)]
    scratch = Scratch()

    def run() -> None:
        for start, end in areas:
            assert unpack_lz4(case.data, start, end, UNBOUNDED, scratch) is not None

    return run


def decode_rows(case: Case, options: Options) -> list[Row]:
    runs: dict[str, Callable[[], object]] = {
        "binary": lambda: decode_columns(case.data),
        "views": lambda: decode_columns(case.data, views=True),
        "aiokafka": peer_reader(AioRecords, case.data),
        "kafka-python": peer_reader(KafkaPythonRecords, case.data),
    }
    if case.codec is Codec.LZ4:
        runs["our lz4"] = our_unpacker(case)
        runs["their lz4"] = unpacker(case, aiokafka.codec.lz4_decode)
    timings = interleave(runs, options.rounds)
    if case.codec is Codec.LZ4:
        print(lz4_share(case, timings))
    return [
        Row.of_times(f"decode {case.name}, {kind}", kind, peer, timings, work=RECORDS / 1e6, unit=UNIT)
        for kind in ("binary", "views")
        for peer in ("aiokafka", "kafka-python")
    ]


def lz4_share(case: Case, timings: dict[str, Timing]) -> str:
    ours = timings["our lz4"].median / timings["binary"].median
    theirs = timings["their lz4"].median / timings["aiokafka"].median
    return f"decompression alone, {case.name}: {ours:.0%} of our time, {theirs:.0%} of aiokafka's"


def encode_rows(case: Case, options: Options) -> list[Row]:
    codec = int(case.codec)
    runs: dict[str, Callable[[], object]] = {
        "ours": lambda: encode_columns(
            case.columns, codec=case.codec, batch_records=case.per_batch, batch_bytes=UNBOUNDED
        ),
        "aiokafka": peer_writer(lambda: AioBuilder(2, codec, False, -1, -1, -1, UNBOUNDED), case),
        "kafka-python": peer_writer(lambda: KafkaPythonBuilder(2, codec, False, -1, -1, -1, UNBOUNDED), case),
    }
    timings = interleave(runs, options.rounds)
    return [
        Row.of_times(f"encode {case.name}", "ours", peer, timings, work=RECORDS / 1e6, unit=UNIT)
        for peer in ("aiokafka", "kafka-python")
    ]


def main() -> None:
    options = parse_options(__doc__)
    machine(options)
    plain = [name for name, compiled in compiled_kernels().items() if "records" in name and not compiled]
    print(f"kernels: {'interpreted: ' + ', '.join(plain) if plain else 'all compiled'}")
    assert AioBatch.__module__ == "aiokafka.record._crecords.default_records", (
        "aiokafka lacks its C extension"
    )
    print(f"sizes:   {RECORDS} records a round, {options.rounds} rounds, medians; p99 is of ours")
    rows: list[Row] = []
    for codec in (Codec.NONE, Codec.LZ4):
        for size in (100, 1000):
            for per_batch in (1, 100, 10_000):
                case = make_case(size, per_batch, codec)
                rows += decode_rows(case, options) + encode_rows(case, options)
    report(sorted(rows, key=lambda row: row.question.split()[0]), options)


if __name__ == "__main__":
    main()
