"""How fast are requests decoded and responses encoded?

Ours against kio and kafka-python, on the same bytes and in a version that all three have. Each is called the
way that suits it best: kio with its reader and writer looked up once, kafka-python through its message class,
ours through codec.decoder(), looked up once as the broker does, and codec.encode(). kio reads with an
extension in Rust and copies records; we hand out views of them.
Expected cost of ours: one object per struct and one view per batch when decoding; one pack per run of
fixed-size fields, one part per string and one join when encoding.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from kafka.protocol.consumer import FetchRequest as PythonFetchRequest
from kafka.protocol.consumer import FetchResponse as PythonFetchResponse
from kafka.protocol.metadata import MetadataResponse as PythonMetadataResponse
from kafka.protocol.producer import ProduceRequest as PythonProduceRequest
from kafka.protocol.producer import ProduceResponse as PythonProduceResponse
from kio.schema.fetch.v12.request import FetchRequest as KioFetchRequest
from kio.schema.fetch.v12.response import FetchResponse as KioFetchResponse
from kio.schema.metadata.v12.response import MetadataResponse as KioMetadataResponse
from kio.schema.produce.v9.request import ProduceRequest as KioProduceRequest
from kio.schema.produce.v9.response import ProduceResponse as KioProduceResponse
from kio.serial import entity_reader, entity_writer

from barnabas.base.ids import Uuid
from barnabas.base.kernels import compiled_kernels
from barnabas.protocol.messages import cluster, fetch, produce
from barnabas.protocol.schema.codec import decoder, encode
from report import Options, Row, interleave, machine, parse_options, report

# A round repeats a small message until it is long enough for the clock.
ROUND_PARTITIONS = 1000
# A small batch, and one as large as a producer makes it by default (batch.size).
SMALL_BATCH = bytes(1000)
FULL_BATCH = bytes(16384)
UNIT = "k messages/s"


@dataclass(frozen=True, slots=True)
class Case:
    """One message as all three codecs have it."""

    name: str
    message: Any
    version: int
    kio: Any
    kafka_python: Any
    partitions: int

    @classmethod
    def of(cls, which: tuple[str, int, Any, Any], size: str, message: Any, partitions: int) -> "Case":
        name, version, kio, kafka_python = which
        return cls(f"{name} v{version}, {size}", message, version, kio, kafka_python, partitions)

    @property
    def repeats(self) -> int:
        return max(1, ROUND_PARTITIONS // self.partitions)


def fetch_request(topics: int, partitions: int) -> fetch.FetchRequest:
    wanted = [
        fetch.FetchPartition(partition=index, fetch_offset=123_456_789, partition_max_bytes=1 << 20)
        for index in range(partitions)
    ]
    asked = [fetch.FetchTopic(topic=f"topic-{index}", partitions=wanted) for index in range(topics)]
    return fetch.FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=50 << 20, topics=asked)


def fetch_response(topics: int, partitions: int) -> fetch.FetchResponse:
    data = [
        fetch.PartitionData(partition_index=index, high_watermark=123_456_790, records=SMALL_BATCH)
        for index in range(partitions)
    ]
    return fetch.FetchResponse(
        responses=[
            fetch.FetchableTopicResponse(topic=f"topic-{index}", partitions=data) for index in range(topics)
        ]
    )


def produce_request(topics: int, partitions: int, batch: bytes) -> produce.ProduceRequest:
    data = [produce.PartitionProduceData(index=index, records=batch) for index in range(partitions)]
    return produce.ProduceRequest(
        acks=-1,
        timeout_ms=30_000,
        topic_data=[
            produce.TopicProduceData(name=f"topic-{index}", partition_data=data) for index in range(topics)
        ],
    )


def produce_response(topics: int, partitions: int) -> produce.ProduceResponse:
    rows = [
        produce.PartitionProduceResponse(index=index, base_offset=123_456_789, log_start_offset=0)
        for index in range(partitions)
    ]
    return produce.ProduceResponse(
        responses=[
            produce.TopicProduceResponse(name=f"topic-{index}", partition_responses=rows)
            for index in range(topics)
        ]
    )


def metadata_response(brokers: int, topics: int, partitions: int) -> cluster.MetadataResponse:
    nodes = list(range(min(brokers, 3)))
    rows = [
        cluster.MetadataResponsePartition(
            partition_index=index, leader_id=0, leader_epoch=5, replica_nodes=nodes, isr_nodes=nodes
        )
        for index in range(partitions)
    ]
    return cluster.MetadataResponse(
        brokers=[
            cluster.MetadataResponseBroker(node_id=index, host=f"broker-{index}.example.com", port=9092)
            for index in range(brokers)
        ],
        cluster_id="Some-Cluster-Id-of-22c",
        controller_id=0,
        topics=[
            cluster.MetadataResponseTopic(
                name=f"topic-{index}", topic_id=Uuid(b"sixteen bytes id"), partitions=rows
            )
            for index in range(topics)
        ],
    )


SIZES = {"1 partition": (1, 1), "10 x 10 partitions": (10, 10)}
CLUSTERS = {"1 partition": (1, 1, 1), "10 brokers, 100 x 3 partitions": (10, 100, 3)}
FETCH_REQUEST = ("FetchRequest", 12, KioFetchRequest, PythonFetchRequest)
FETCH_RESPONSE = ("FetchResponse", 12, KioFetchResponse, PythonFetchResponse)
PRODUCE_REQUEST = ("ProduceRequest", 9, KioProduceRequest, PythonProduceRequest)
PRODUCE_RESPONSE = ("ProduceResponse", 9, KioProduceResponse, PythonProduceResponse)
METADATA_RESPONSE = ("MetadataResponse", 12, KioMetadataResponse, PythonMetadataResponse)


def decode_cases() -> Iterator[Case]:
    for size, (topics, partitions) in SIZES.items():
        yield Case.of(FETCH_REQUEST, size, fetch_request(topics, partitions), topics * partitions)
    for size, (topics, partitions) in SIZES.items():
        for batch in (SMALL_BATCH, FULL_BATCH):
            sent = produce_request(topics, partitions, batch)
            yield Case.of(PRODUCE_REQUEST, f"{size} of {len(batch)} B", sent, topics * partitions)


def encode_cases() -> Iterator[Case]:
    for size, (topics, partitions) in SIZES.items():
        yield Case.of(FETCH_RESPONSE, size, fetch_response(topics, partitions), topics * partitions)
    for size, (topics, partitions) in SIZES.items():
        yield Case.of(PRODUCE_RESPONSE, size, produce_response(topics, partitions), topics * partitions)
    for size, (brokers, topics, partitions) in CLUSTERS.items():
        known = metadata_response(brokers, topics, partitions)
        yield Case.of(METADATA_RESPONSE, size, known, topics * partitions)


def repeat(case: Case, run: Callable[[], object]) -> Callable[[], None]:
    turns = range(case.repeats)

    def repeated() -> None:
        for _ in turns:
            run()

    return repeated


def rows(question: str, case: Case, runs: dict[str, Callable[[], object]], options: Options) -> list[Row]:
    timings = interleave({name: repeat(case, run) for name, run in runs.items()}, options.rounds)
    work = case.repeats / 1e3
    return [
        Row.of_times(f"{question} {case.name}", "ours", peer, timings, work=work, unit=UNIT)
        for peer in runs
        if peer != "ours"
    ]


def decode_rows(case: Case, options: Options) -> list[Row]:
    version = case.version
    data = encode(case.message, version)
    read = entity_reader(case.kio)
    peer = case.kafka_python.decode
    ours = decoder(type(case.message), version)
    assert ours(data, 0) == (case.message, len(data))
    assert peer(data, version=version).encode() == data
    assert read(data, 0)[1] == len(data)
    runs: dict[str, Callable[[], object]] = {
        "ours": lambda: ours(data, 0),
        "kio": lambda: read(data, 0),
        "kafka-python": lambda: peer(data, version=version),
    }
    return rows("decode", case, runs, options)


def encode_rows(case: Case, options: Options) -> list[Row]:
    message, version = case.message, case.version
    data = encode(message, version)
    theirs, _ = entity_reader(case.kio)(data, 0)
    write = entity_writer(case.kio)
    peer = case.kafka_python.decode(data, version=version)

    def write_kio() -> bytes:
        out = BytesIO()
        write(out, theirs)
        return out.getvalue()

    assert write_kio() == data
    assert peer.encode() == data
    runs: dict[str, Callable[[], object]] = {
        "ours": lambda: encode(message, version),
        "kio": write_kio,
        "kafka-python": peer.encode,
    }
    return rows("encode", case, runs, options)


def main() -> None:
    options = parse_options(__doc__)
    machine(options)
    plain = [name for name, compiled in compiled_kernels().items() if "protocol" in name and not compiled]
    assert not plain, f"interpreted: {', '.join(plain)}; build first: python setup.py build_ext --inplace"
    print("kernels: all compiled")
    print(f"sizes:   {options.rounds} rounds, medians; p99 is of ours")
    found: list[Row] = []
    for case in decode_cases():
        found += decode_rows(case, options)
    for case in encode_cases():
        found += encode_rows(case, options)
    report(found, options)


if __name__ == "__main__":
    main()
