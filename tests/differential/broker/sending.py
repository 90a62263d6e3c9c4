"""Produce and fetch requests of the stories, and the records that stories start from."""

from collections.abc import Sequence
from typing import Any

from barnabas.base.ids import ZERO_UUID, Uuid
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from differential.broker.talk import Talk


def produce(
    name: str,
    records: bytes | None,
    *,
    topic_id: Uuid = ZERO_UUID,
    partition: int = 0,
    acks: int = -1,
    transactional_id: str | None = None,
) -> ProduceRequest:
    """One partition's batches. Versions to 12 look at the name, later ones at the id."""
    data = PartitionProduceData(index=partition, records=records)
    topic = TopicProduceData(name=name, topic_id=topic_id, partition_data=[data])
    return ProduceRequest(transactional_id=transactional_id, acks=acks, timeout_ms=5_000, topic_data=[topic])


def send(talk: Talk, name: str, records: bytes, *, partition: int = 0) -> int:
    """Produce so that it must succeed, and keep no answer. The base offset."""
    answer = talk.quietly(produce(name, records, partition=partition), 9)
    done = answer.responses[0].partition_responses[0]
    assert done.error_code == 0, done
    offset: int = done.base_offset
    return offset


def fetch_partition(partition: int = 0, offset: int = 0, **more: Any) -> FetchPartition:
    values = {"partition_max_bytes": 1_000_000, **more}
    return FetchPartition(partition=partition, fetch_offset=offset, **values)


def fetch(
    name: str,
    offset: int = 0,
    *,
    topic_id: Uuid = ZERO_UUID,
    partitions: Sequence[FetchPartition] | None = None,
    partition: int = 0,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 50_000_000,
    isolation_level: int = 0,
    session_id: int = 0,
    session_epoch: int = -1,
    replica_id: int = -1,
    **more: Any,
) -> FetchRequest:
    """A consumer's fetch of one topic. Versions to 12 look at the name, later ones at the id."""
    asked = list(partitions) if partitions is not None else [fetch_partition(partition, offset, **more)]
    return FetchRequest(
        replica_id=replica_id,
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        session_id=session_id,
        session_epoch=session_epoch,
        topics=[FetchTopic(topic=name, topic_id=topic_id, partitions=asked)],
    )
