"""Topic descriptions: DescribeTopicPartitions, page by page, or Metadata from older brokers.

Only the former has eligible leader replicas (KIP-966); only the latter finds topics by id.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

from barnabas.base.ids import ZERO_UUID, Uuid
from barnabas.base.values import value
from barnabas.client.admin.call import Call, NegotiatedApi, Outcome, check, name_of, outcome_of
from barnabas.client.admin.topics import Topic
from barnabas.client.errors import NotKafka, Refused, UnsupportedByBroker
from barnabas.client.metadata import NO_LEADER
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.acls import AclOperation, operations_of
from barnabas.protocol.messages.cluster import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseTopic,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
    TopicRequest,
)

# As in Kafka's client; brokers have a limit of their own.
PAGE_PARTITIONS: Final = 2000
_OPERATIONS_FROM, _IDS_FROM = 8, 12


@value(kw_only=True)
class PartitionDescription:
    """Brokers are given by id. `elr` and `last_known_elr` are None if the broker does not return them."""

    partition: int
    # -1 while there is none.
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...]
    elr: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None


@value(kw_only=True)
class TopicDescription:
    """`operations` are the authorized operations, None if they were not requested."""

    name: str
    topic_id: Uuid | None
    internal: bool
    # By number.
    partitions: tuple[PartitionDescription, ...]
    operations: frozenset[AclOperation] | None


async def describe_topics(
    call: Call, topics: Iterable[Topic] | None, *, operations: bool, page_partitions: int
) -> dict[Topic, Outcome[TopicDescription]]:
    """Describe topics by name or id; None: all topics."""
    if topics is None:
        everything = await call.retry_single("all topics", lambda: _all(call, operations, page_partitions))
        return {name: outcome for name, outcome in everything.items()}  # noqa: C416 (its keys are Topics)
    wanted = list(topics)
    ids: list[Uuid] = [topic for topic in wanted if not isinstance(topic, str)]
    names = [topic for topic in wanted if isinstance(topic, str)]

    async def named(pending: list[str]) -> dict[str, Outcome[TopicDescription]]:
        return await _by_name(call, pending, operations, page_partitions)

    async def identified(pending: list[Uuid]) -> dict[Uuid, Outcome[TopicDescription]]:
        return await _by_id(call, pending, operations)

    by_name = await call.retry_items("DESCRIBE_TOPIC_PARTITIONS", names, named)
    by_id = await call.retry_items("METADATA", ids, identified)
    return {topic: by_name[topic] if isinstance(topic, str) else by_id[topic] for topic in wanted}


async def _all(call: Call, operations: bool, page_partitions: int) -> dict[str, Outcome[TopicDescription]]:
    if await _has_pages(call):
        return await _pages(call, [], page_partitions)
    answer = await _metadata(call, None, operations)
    return {entry.name: _from_metadata(entry) for entry in answer.topics if entry.name is not None}


async def _by_name(
    call: Call, names: list[str], operations: bool, page_partitions: int
) -> dict[str, Outcome[TopicDescription]]:
    if await _has_pages(call):
        return await _pages(call, names, page_partitions)
    answer = await _metadata(call, [MetadataRequestTopic(name=name) for name in names], operations)
    return {entry.name: _from_metadata(entry) for entry in answer.topics if entry.name is not None}


async def _by_id(call: Call, ids: list[Uuid], operations: bool) -> dict[Uuid, Outcome[TopicDescription]]:
    wanted = [MetadataRequestTopic(topic_id=topic_id, name=None) for topic_id in ids]
    answer = await _metadata(call, wanted, operations, least=_IDS_FROM)
    return {entry.topic_id: _from_metadata(entry) for entry in answer.topics}


# DescribeTopicPartitions


async def _has_pages(call: Call) -> bool:
    try:
        (await call.connection()).version_of(ApiKey.DESCRIBE_TOPIC_PARTITIONS)
    except UnsupportedByBroker:
        return False
    return True


async def _pages(call: Call, names: list[str], limit: int) -> dict[str, Outcome[TopicDescription]]:
    """Fetch all pages. A topic that spans pages comes in parts, each with some of its partitions."""
    found: dict[str, DescribeTopicPartitionsResponseTopic] = {}
    cursor: Cursor | None = None
    while True:
        start = cursor.topic_name if cursor is not None else ""
        request = DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=name) for name in names if name >= start],
            response_partition_limit=limit,
            cursor=cursor,
        )
        page: DescribeTopicPartitionsResponse = await call.ask(
            ApiKey.DESCRIBE_TOPIC_PARTITIONS, _always(request)
        )
        for topic in page.topics:
            name = topic.name or ""
            before = found.setdefault(name, topic)
            if before is not topic:
                if before.topic_id != topic.topic_id:
                    why = "the topic was deleted or recreated while it was being described"
                    raise Refused(ErrorCode.INCONSISTENT_TOPIC_ID, about=f"topic {name}", message=why)
                before.partitions += topic.partitions
        following = page.next_cursor
        if following is None:
            return {name: _from_page(topic) for name, topic in found.items()}
        if cursor is not None and _place(following) <= _place(cursor):
            where = (await call.connection()).address
            raise NotKafka(where, f"pages are out of order: {_place(following)} follows {_place(cursor)}")
        cursor = following


def _always(request: object) -> Callable[[NegotiatedApi], object]:
    """Return a request builder for a request that is the same in every version."""
    return lambda _: request


def _place(cursor: Cursor) -> tuple[str, int]:
    return cursor.topic_name, cursor.partition_index


def _from_page(entry: DescribeTopicPartitionsResponseTopic) -> Outcome[TopicDescription]:
    partitions = tuple(
        PartitionDescription(
            partition=row.partition_index,
            leader=row.leader_id,
            leader_epoch=row.leader_epoch,
            replicas=tuple(row.replica_nodes),
            isr=tuple(row.isr_nodes),
            offline=tuple(row.offline_replicas),
            elr=tuple(row.eligible_leader_replicas or ()),
            last_known_elr=tuple(row.last_known_elr or ()),
        )
        for row in sorted(entry.partitions, key=lambda row: row.partition_index)
    )
    return _described(entry, partitions)


# Metadata


async def _metadata(
    call: Call, topics: list[MetadataRequestTopic] | None, operations: bool, *, least: int = 0
) -> MetadataResponse:
    def make(api: NegotiatedApi) -> object:
        api.require(least, "topic ids")
        if operations:
            api.require(_OPERATIONS_FROM, "authorized operations of a topic")
        return MetadataRequest(
            topics=topics,
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=operations,
        )

    answer: MetadataResponse = await call.ask(ApiKey.METADATA, make)
    check(answer.error_code, about="the description of topics")
    return answer


def _from_metadata(entry: MetadataResponseTopic) -> Outcome[TopicDescription]:
    partitions = tuple(
        PartitionDescription(
            partition=row.partition_index,
            leader=NO_LEADER if row.error_code == ErrorCode.LEADER_NOT_AVAILABLE else row.leader_id,
            leader_epoch=row.leader_epoch,
            replicas=tuple(row.replica_nodes),
            isr=tuple(row.isr_nodes),
            offline=tuple(row.offline_replicas),
        )
        for row in sorted(entry.partitions, key=lambda row: row.partition_index)
    )
    return _described(entry, partitions)


def _described(entry: Any, partitions: tuple[PartitionDescription, ...]) -> Outcome[TopicDescription]:
    topic_id: Uuid = entry.topic_id
    found = TopicDescription(
        name=entry.name or "",
        topic_id=None if topic_id == ZERO_UUID else topic_id,
        internal=entry.is_internal,
        partitions=partitions,
        operations=operations_of(entry.topic_authorized_operations),
    )
    return outcome_of(entry.error_code, found, about=f"topic {entry.name or name_of(topic_id)}")
