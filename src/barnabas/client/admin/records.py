"""Offsets and records of partitions: ListOffsets, DeleteRecords and DescribeProducers at the leaders."""

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Any, Final, Literal, TypeAlias

from barnabas.base.ids import TopicPartition
from barnabas.base.values import value
from barnabas.client.admin.call import Call, NegotiatedApi, Outcome, outcome_of
from barnabas.client.admin.leaders import ask_leaders, by_topic
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.messages.offsets import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from barnabas.protocol.messages.transaction_admin import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)

# ListOffsets


IsolationLevel: TypeAlias = Literal["read_uncommitted", "read_committed"]

_ISOLATION_LEVELS: Final[Mapping[str, int]] = {"read_uncommitted": 0, "read_committed": 1}
_ISOLATION_FROM: Final = 2
# replica_id of requests from clients.
_CONSUMER: Final = -1
_NOTHING: Final = -1


class OffsetSpec(IntEnum):
    """Special timestamps. A number >= 0 is a time in milliseconds: the first record at or after it."""

    LATEST = -1
    EARLIEST = -2
    # The record with the greatest timestamp.
    MAX_TIMESTAMP = -3
    # The first offset on the broker's local disk, and the last one in remote storage.
    EARLIEST_LOCAL = -4
    LATEST_TIERED = -5
    EARLIEST_PENDING_UPLOAD = -6


# The first ListOffsets version that supports each.
_SINCE: Final = {
    OffsetSpec.MAX_TIMESTAMP: 7,
    OffsetSpec.EARLIEST_LOCAL: 8,
    OffsetSpec.LATEST_TIERED: 9,
    OffsetSpec.EARLIEST_PENDING_UPLOAD: 11,
}


@value(kw_only=True)
class ListedOffset:
    """`offset` is None if nothing is found, for example no record at or after the timestamp.

    `timestamp_ms` is None without a record, `leader_epoch` from an old broker.
    """

    offset: int | None
    timestamp_ms: int | None
    leader_epoch: int | None


async def list_offsets(
    call: Call, wanted: Mapping[TopicPartition, int], *, isolation: IsolationLevel
) -> dict[TopicPartition, Outcome[ListedOffset]]:
    def make(api: NegotiatedApi, share: list[TopicPartition]) -> object:
        for spec in {wanted[tp] for tp in share if wanted[tp] < 0}:
            api.require(_SINCE.get(OffsetSpec(spec), 0), OffsetSpec(spec).name)
        if isolation == "read_committed":
            api.require(_ISOLATION_FROM, "read_committed")
        return ListOffsetsRequest(
            replica_id=_CONSUMER,
            isolation_level=_ISOLATION_LEVELS[isolation],
            topics=[_topic(call, topic, partitions, wanted) for topic, partitions in by_topic(share)],
            timeout_ms=call.request_timeout_ms,
        )

    return await ask_leaders(call, ApiKey.LIST_OFFSETS, wanted, make, _read)


def _topic(
    call: Call, topic: str, partitions: list[int], wanted: Mapping[TopicPartition, int]
) -> ListOffsetsTopic:
    rows = []
    for partition in partitions:
        tp = TopicPartition(topic, partition)
        leader = call.cluster.known_leader(tp)
        # The epoch keeps a former leader, which has not noticed yet, from answering.
        epoch = leader[1] if leader is not None else _NOTHING
        rows.append(
            ListOffsetsPartition(partition_index=partition, current_leader_epoch=epoch, timestamp=wanted[tp])
        )
    return ListOffsetsTopic(name=topic, partitions=rows)


def _read(answer: Any) -> dict[TopicPartition, Outcome[ListedOffset]]:
    response: ListOffsetsResponse = answer
    found: dict[TopicPartition, Outcome[ListedOffset]] = {}
    for topic in response.topics:
        for entry in topic.partitions:
            tp = TopicPartition(topic.name, entry.partition_index)
            listed = ListedOffset(
                offset=_or_none(entry.offset),
                timestamp_ms=_or_none(entry.timestamp),
                leader_epoch=_or_none(entry.leader_epoch),
            )
            found[tp] = outcome_of(entry.error_code, listed, about=str(tp))
    return found


def _or_none(number: int) -> int | None:
    return None if number == _NOTHING else number


# DeleteRecords and DescribeProducers


# In place of an offset: all records below the high watermark.
UP_TO_HIGH_WATERMARK: Final = -1


@value(kw_only=True)
class ProducerDescription:
    """A producer of a partition. None means absent, for example no open transaction."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int | None
    transaction_start_offset: int | None


async def delete_records(
    call: Call, before: Mapping[TopicPartition, int]
) -> dict[TopicPartition, Outcome[int]]:
    """Delete records and return the new low watermarks."""

    def make(_: NegotiatedApi, share: list[TopicPartition]) -> object:
        topics = [
            DeleteRecordsTopic(
                name=topic,
                partitions=[
                    DeleteRecordsPartition(
                        partition_index=partition, offset=before[TopicPartition(topic, partition)]
                    )
                    for partition in partitions
                ],
            )
            for topic, partitions in by_topic(share)
        ]
        return DeleteRecordsRequest(topics=topics, timeout_ms=call.request_timeout_ms)

    return await ask_leaders(call, ApiKey.DELETE_RECORDS, before, make, _low_watermarks)


def _low_watermarks(answer: Any) -> dict[TopicPartition, Outcome[int]]:
    response: DeleteRecordsResponse = answer
    found: dict[TopicPartition, Outcome[int]] = {}
    for topic in response.topics:
        for entry in topic.partitions:
            tp = TopicPartition(topic.name, entry.partition_index)
            found[tp] = outcome_of(entry.error_code, entry.low_watermark, about=str(tp))
    return found


async def describe_producers(
    call: Call, tps: Iterable[TopicPartition], *, broker: int | None
) -> dict[TopicPartition, Outcome[tuple[ProducerDescription, ...]]]:
    def make(_: NegotiatedApi, share: list[TopicPartition]) -> object:
        return DescribeProducersRequest(
            topics=[
                TopicRequest(name=topic, partition_indexes=partitions)
                for topic, partitions in by_topic(share)
            ]
        )

    return await ask_leaders(call, ApiKey.DESCRIBE_PRODUCERS, tps, make, _producers, node=broker)


def _producers(answer: Any) -> dict[TopicPartition, Outcome[tuple[ProducerDescription, ...]]]:
    response: DescribeProducersResponse = answer
    found: dict[TopicPartition, Outcome[tuple[ProducerDescription, ...]]] = {}
    for topic in response.topics:
        for entry in topic.partitions:
            tp = TopicPartition(topic.name, entry.partition_index)
            active = tuple(
                ProducerDescription(
                    producer_id=each.producer_id,
                    producer_epoch=each.producer_epoch,
                    last_sequence=each.last_sequence,
                    last_timestamp_ms=each.last_timestamp,
                    coordinator_epoch=_or_none(each.coordinator_epoch),
                    transaction_start_offset=_or_none(each.current_txn_start_offset),
                )
                for each in entry.active_producers
            )
            found[tp] = outcome_of(entry.error_code, active, about=str(tp), message=entry.error_message)
    return found
