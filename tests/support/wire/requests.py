"""Requests as stories of a broker send them, and what their answers say."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.protocol.messages.topics import CreatableTopic, CreatableTopicConfig
from barnabas.records.builder import build_batch
from barnabas.records.header import BatchHeader, Codec, batch_headers, whole_batches
from barnabas.records.record import Record
from support.log.logs import records_in

TIMEOUT_MS = 10_000


class Producer(NamedTuple):
    """An idempotent producer's identity."""

    id: int
    epoch: int = 0


def batch(
    *values: bytes,
    producer: Producer | None = None,
    sequence: int = 0,
    time: int = 1_767_225_600_000,
    key: bytes | None = None,
    codec: Codec = Codec.NONE,
) -> bytes:
    records = [(time, key, value, ()) for value in values or (b"v",)]
    if producer is None:
        return build_batch(records, codec=codec)
    return build_batch(
        records,
        codec=codec,
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        base_sequence=sequence,
    )


def fetch_of(
    topic: str,
    offsets: Mapping[int, int],
    *,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 50 << 20,
    partition_max_bytes: int = 1 << 20,
    current_leader_epoch: int = -1,
    session_id: int = 0,
    session_epoch: int = -1,
) -> FetchRequest:
    """A fetch of several partitions of one topic."""
    partitions = [
        FetchPartition(
            partition=index,
            fetch_offset=offset,
            partition_max_bytes=partition_max_bytes,
            current_leader_epoch=current_leader_epoch,
        )
        for index, offset in offsets.items()
    ]
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        session_id=session_id,
        session_epoch=session_epoch,
        topics=[FetchTopic(topic=topic, partitions=partitions)] if partitions else [],
    )


def produced(response: Any) -> PartitionProduceResponse:
    """The only partition of an answer."""
    (topic,) = response.responses
    (partition,) = topic.partition_responses
    assert isinstance(partition, PartitionProduceResponse)
    return partition


def fetched(response: Any) -> PartitionData:
    """The only partition of an answer."""
    assert response.error_code == 0, ErrorCode(response.error_code).name
    (topic,) = response.responses
    (partition,) = topic.partitions
    assert isinstance(partition, PartitionData)
    return partition


def headers_of(data: PartitionData) -> list[BatchHeader]:
    """The headers of the whole batches of an answer."""
    return [header for _, header in batch_headers(_whole(data))]


def records_of(data: PartitionData) -> list[Record]:
    """The records of the whole batches of an answer, each batch checked."""
    return records_in(_whole(data))


def values_of(data: PartitionData) -> list[bytes | None]:
    return [record.value for record in records_of(data)]


def _whole(data: PartitionData) -> bytes:
    found = bytes(data.records or b"")
    return found[: whole_batches(found).size]


def dotted(name: str) -> str:
    """The name of a setting, as a keyword argument can have it."""
    return name.replace("_", ".")


def new_topic(topic: str, partitions: int, configs: Mapping[str, object]) -> CreatableTopic:
    return CreatableTopic(
        name=topic,
        num_partitions=partitions,
        replication_factor=1,
        configs=[CreatableTopicConfig(name=dotted(one), value=str(value)) for one, value in configs.items()],
    )


def produce_of(topic: str, partition: int, data: bytes, acks: int) -> ProduceRequest:
    sent = PartitionProduceData(index=partition, records=data)
    return ProduceRequest(
        acks=acks, timeout_ms=TIMEOUT_MS, topic_data=[TopicProduceData(name=topic, partition_data=[sent])]
    )


def went_well(answer: Any) -> Any:
    text = f"{ErrorCode(answer.error_code).name}: {getattr(answer, 'error_message', None)}"
    assert answer.error_code == 0, text
    return answer
