"""DeleteRecords and DescribeProducers, both at the partition leaders."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from barnabas.base.ids import TopicPartition
from barnabas.base.values import value
from barnabas.client.admin.call import Call, Outcome, Spoken, judged
from barnabas.client.admin.leaders import ask_leaders, by_topic
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.messages.offsets import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from barnabas.protocol.messages.transaction_admin import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)

# In place of an offset: all records below the high watermark.
UP_TO_HIGH_WATERMARK: Final = -1
_NOTHING: Final = -1


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

    def make(_: Spoken, share: list[TopicPartition]) -> object:
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
            found[tp] = judged(entry.error_code, entry.low_watermark, about=str(tp))
    return found


async def describe_producers(
    call: Call, tps: Iterable[TopicPartition], *, broker: int | None
) -> dict[TopicPartition, Outcome[tuple[ProducerDescription, ...]]]:
    def make(_: Spoken, share: list[TopicPartition]) -> object:
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
            found[tp] = judged(entry.error_code, active, about=str(tp), message=entry.error_message)
    return found


def _or_none(number: int) -> int | None:
    return None if number == _NOTHING else number
