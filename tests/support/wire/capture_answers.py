"""What the capture broker answers: one function per API, and the table that ApiVersions is made from.

Each gets the broker, whose lock is held, and the request, and returns the response or None for no answer.
An unknown topic is answered as Kafka does. What no test needs fails loudly, because a client that got a
made-up answer would prove nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import monotonic
from typing import TYPE_CHECKING, Any

from barnabas.base.ids import ZERO_UUID, Uuid
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages import classic_groups, cluster, fetch, offsets, produce, transactions

if TYPE_CHECKING:
    from support.wire.capture_broker import CaptureBroker, PartitionLog

HOST = "127.0.0.1"
NODE_ID = 1
LEADER_EPOCH = 5
PRODUCER_ID = 4711
PRODUCER_EPOCH = 0
FETCH_WAIT_SECONDS_MAX = 1.0
EARLIEST, LATEST = -2, -1
READ_COMMITTED = 1


def api_versions(broker: CaptureBroker, _: cluster.ApiVersionsRequest) -> cluster.ApiVersionsResponse:
    rows = [
        # Produce is advertised from 0, as Kafka does: librdkafka reads a higher start as "no compression".
        cluster.ApiVersion(
            api_key=key, min_version=0 if key is ApiKey.PRODUCE else spoken.first, max_version=spoken.last
        )
        for key, spoken in broker.versions.items()
    ]
    return cluster.ApiVersionsResponse(api_keys=rows)


def metadata(broker: CaptureBroker, asked: cluster.MetadataRequest) -> cluster.MetadataResponse:
    # Null means all topics. An empty list means all in version 0 and none later; here it is none in each.
    names = list(broker.topic_ids)
    if asked.topics is not None:
        names = [topic.name or _name_of(broker, topic.topic_id) for topic in asked.topics]
    return cluster.MetadataResponse(
        brokers=[cluster.MetadataResponseBroker(node_id=NODE_ID, host=HOST, port=broker.port)],
        cluster_id="capture",
        controller_id=NODE_ID,
        topics=[_topic_metadata(broker, name) for name in names],
    )


def _topic_metadata(broker: CaptureBroker, name: str) -> cluster.MetadataResponseTopic:
    if name not in broker.topic_ids:
        return cluster.MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name=name)
    partitions = [
        cluster.MetadataResponsePartition(
            partition_index=index,
            leader_id=NODE_ID,
            leader_epoch=LEADER_EPOCH,
            replica_nodes=[NODE_ID],
            isr_nodes=[NODE_ID],
        )
        for topic, index in broker.logs
        if topic == name
    ]
    return cluster.MetadataResponseTopic(name=name, topic_id=broker.topic_ids[name], partitions=partitions)


def produce_batches(broker: CaptureBroker, asked: produce.ProduceRequest) -> produce.ProduceResponse | None:
    responses = []
    for topic in asked.topic_data:
        name = topic.name or _name_of(broker, topic.topic_id)
        rows = []
        for partition in topic.partition_data:
            log = broker.logs[name, partition.index]
            assert partition.records is not None, "a producer sent no records"
            batch = bytes(partition.records)
            log.produced.append(batch)
            rows.append(
                produce.PartitionProduceResponse(
                    index=partition.index, base_offset=log.append(batch), log_start_offset=log.start
                )
            )
        responses.append(
            produce.TopicProduceResponse(name=name, topic_id=broker.topic_ids[name], partition_responses=rows)
        )
    broker.changed.notify_all()
    return None if asked.acks == 0 else produce.ProduceResponse(responses=responses)


def list_offsets(broker: CaptureBroker, asked: offsets.ListOffsetsRequest) -> offsets.ListOffsetsResponse:
    topics = []
    for topic in asked.topics:
        rows = []
        for partition in topic.partitions:
            assert partition.timestamp in (EARLIEST, LATEST), f"offset for time {partition.timestamp}"
            log = broker.logs[topic.name, partition.partition_index]
            rows.append(
                offsets.ListOffsetsPartitionResponse(
                    partition_index=partition.partition_index,
                    offset=log.end if partition.timestamp == LATEST else log.start,
                )
            )
        topics.append(offsets.ListOffsetsTopicResponse(name=topic.name, partitions=rows))
    return offsets.ListOffsetsResponse(topics=topics)


def fetch_batches(broker: CaptureBroker, asked: fetch.FetchRequest) -> fetch.FetchResponse:
    """Wait for records if there are none. Session id 0 says that there is no session to build on."""
    deadline = monotonic() + min(asked.max_wait_ms / 1000, FETCH_WAIT_SECONDS_MAX)
    while not broker.closing and not any(_has_records(*wanted) for wanted in _wanted(broker, asked)):
        if not broker.changed.wait(deadline - monotonic()):
            break
    committed = asked.isolation_level == READ_COMMITTED
    responses = []
    for topic in asked.topics:
        name = topic.topic or _name_of(broker, topic.topic_id)
        rows = [
            _fetched(broker.logs[name, wanted.partition], wanted, committed) for wanted in topic.partitions
        ]
        responses.append(
            fetch.FetchableTopicResponse(topic=name, topic_id=broker.topic_ids[name], partitions=rows)
        )
    return fetch.FetchResponse(responses=responses)


def _wanted(
    broker: CaptureBroker, asked: fetch.FetchRequest
) -> Iterator[tuple[PartitionLog, fetch.FetchPartition]]:
    for topic in asked.topics:
        name = topic.topic or _name_of(broker, topic.topic_id)
        for partition in topic.partitions:
            yield broker.logs[name, partition.partition], partition


def _has_records(log: PartitionLog, wanted: fetch.FetchPartition) -> bool:
    return wanted.fetch_offset != log.end


def _fetched(log: PartitionLog, wanted: fetch.FetchPartition, committed: bool) -> fetch.PartitionData:
    in_range = log.start <= wanted.fetch_offset <= log.end
    aborted = [
        fetch.AbortedTransaction(producer_id=producer_id, first_offset=first)
        for producer_id, first in log.aborted
    ]
    return fetch.PartitionData(
        partition_index=wanted.partition,
        error_code=ErrorCode.NONE if in_range else ErrorCode.OFFSET_OUT_OF_RANGE,
        high_watermark=log.end,
        last_stable_offset=log.end,
        log_start_offset=log.start,
        aborted_transactions=aborted if committed else None,
        records=log.read(wanted.fetch_offset, wanted.partition_max_bytes) if in_range else b"",
    )


def init_producer_id(
    _: CaptureBroker, asked: transactions.InitProducerIdRequest
) -> transactions.InitProducerIdResponse:
    assert asked.transactional_id is None, "transactions need a coordinator, which is not here"
    return transactions.InitProducerIdResponse(producer_id=PRODUCER_ID, producer_epoch=PRODUCER_EPOCH)


def find_coordinator(
    broker: CaptureBroker, asked: classic_groups.FindCoordinatorRequest
) -> classic_groups.FindCoordinatorResponse:
    """librdkafka looks for the coordinator of its group even if it never joins."""
    none = ErrorCode.COORDINATOR_NOT_AVAILABLE
    rows = [
        classic_groups.Coordinator(key=key, node_id=-1, port=-1, error_code=none)
        for key in asked.coordinator_keys
    ]
    if rows:
        return classic_groups.FindCoordinatorResponse(coordinators=rows)
    return classic_groups.FindCoordinatorResponse(error_code=none, node_id=-1, port=-1)


def _name_of(broker: CaptureBroker, topic_id: Uuid) -> str:
    assert topic_id != ZERO_UUID, "a topic has neither name nor id"
    return next(name for name, known in broker.topic_ids.items() if known == topic_id)


ANSWERS: dict[ApiKey, Callable[[CaptureBroker, Any], object | None]] = {
    ApiKey.PRODUCE: produce_batches,
    ApiKey.FETCH: fetch_batches,
    ApiKey.LIST_OFFSETS: list_offsets,
    ApiKey.METADATA: metadata,
    ApiKey.FIND_COORDINATOR: find_coordinator,
    ApiKey.API_VERSIONS: api_versions,
    ApiKey.INIT_PRODUCER_ID: init_producer_id,
}
