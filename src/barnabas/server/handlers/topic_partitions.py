"""DescribeTopicPartitions (key 75), version 0.

Supported: the requested topics, or all, sorted by name and paginated: a response has a limited number of
partitions and the cursor of the next page. Includes eligible leader replicas (KIP-966).
"""

from collections.abc import Iterable
from heapq import merge
from itertools import islice
from typing import Final

from barnabas.controller.topic_names import topic_name_error
from barnabas.metadata.image import MetadataImage, TopicImage
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import Request
from barnabas.protocol.messages.acls import OF_TOPIC
from barnabas.protocol.messages.cluster import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from barnabas.server.cluster.brokers import ReachableBrokers
from barnabas.server.requests.api import Answer, Api, Context
from barnabas.server.requests.slices import AT_ONCE
from barnabas.server.topic_rows import INTERNAL_TOPICS

_START: Final = Cursor(topic_name="", partition_index=0)


def handle(ctx: Context, request: Request) -> Answer:
    body: DescribeTopicPartitionsRequest = request.body
    image = ctx.broker.image
    asked = {topic.name for topic in body.topics}
    cursor = body.cursor
    if cursor is not None and (cursor.partition_index < 0 or (asked and cursor.topic_name not in asked)):
        return refuse(body, request.version, ErrorCode.INVALID_REQUEST)
    start = cursor or _START
    if "" in asked and start.topic_name == "":
        # As in Kafka, a topic without a name fails the whole request.
        return refuse(body, request.version, ErrorCode.UNKNOWN_SERVER_ERROR)
    most = ctx.broker.settings.now.max_request_partition_size_limit
    page = _Page(
        image, ReachableBrokers(image, ctx.listener), limit=max(1, min(most, body.response_partition_limit))
    )
    names = [name for name in asked or image.topics if name >= start.topic_name]
    if len(asked) > AT_ONCE:
        return _fill_long(ctx, page, names, start)
    page.fill(sorted(names), start)
    return page.response()


async def _fill_long(
    ctx: Context, page: "_Page", names: list[str], start: Cursor
) -> DescribeTopicPartitionsResponse:
    """Fill the page in slices: there may be many unknown topics, which do not count towards the partition
    limit."""
    turns = ctx.broker.long_requests
    pieces = []
    for at in range(0, len(names), AT_ONCE):
        pieces.append(sorted(names[at : at + AT_ONCE]))
        await turns.pause()
    in_order = merge(*pieces)
    while page.next_cursor is None and (piece := list(islice(in_order, AT_ONCE))):
        page.fill(piece, start)
        await turns.pause()
    return page.response()


class _Page:
    """One response, filled topic by topic up to the partition limit."""

    def __init__(self, image: MetadataImage, reachable: ReachableBrokers, *, limit: int) -> None:
        self.topics: list[DescribeTopicPartitionsResponseTopic] = []
        self.next_cursor: Cursor | None = None
        self._image = image
        self._reachable = reachable
        self._left = limit

    def response(self) -> DescribeTopicPartitionsResponse:
        return DescribeTopicPartitionsResponse(topics=self.topics, next_cursor=self.next_cursor)

    def fill(self, names: Iterable[str], start: Cursor) -> None:
        for name in names:
            if self._left == 0:
                # The topic may not exist: the next page reports it.
                self.next_cursor = Cursor(topic_name=name, partition_index=0)
                return
            topic = self._image.topics.get(name)
            if topic is None:
                self.topics.append(_unknown(name))
                continue
            self._add(topic, start.partition_index if name == start.topic_name else 0)
            if self.next_cursor is not None:
                return

    def _add(self, topic: TopicImage, first: int) -> None:
        end = min(len(topic.partitions), first + self._left)
        partitions = [self._partition(topic, index) for index in range(first, end)]
        self.topics.append(
            DescribeTopicPartitionsResponseTopic(
                name=topic.name,
                topic_id=topic.id,
                is_internal=topic.name in INTERNAL_TOPICS,
                partitions=partitions,
                topic_authorized_operations=OF_TOPIC,
            )
        )
        self._left -= len(partitions)
        if end < len(topic.partitions):
            self.next_cursor = Cursor(topic_name=topic.name, partition_index=end)

    def _partition(self, topic: TopicImage, index: int) -> DescribeTopicPartitionsResponsePartition:
        partition = topic.partitions[index]
        leader = self._reachable.leader(partition)
        return DescribeTopicPartitionsResponsePartition(
            partition_index=index,
            leader_id=-1 if leader is None else leader,
            leader_epoch=partition.leader_epoch,
            replica_nodes=list(partition.replicas),
            isr_nodes=list(partition.isr),
            eligible_leader_replicas=list(partition.elr),
            last_known_elr=list(partition.last_known_elr),
            offline_replicas=self._reachable.offline(partition),
        )


def _unknown(name: str) -> DescribeTopicPartitionsResponseTopic:
    is_legal = topic_name_error(name) is None
    return DescribeTopicPartitionsResponseTopic(
        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_legal else ErrorCode.INVALID_TOPIC_EXCEPTION,
        name=name,
        is_internal=name in INTERNAL_TOPICS,
        topic_authorized_operations=OF_TOPIC,
    )


def refuse(body: DescribeTopicPartitionsRequest, version: int, code: ErrorCode) -> object:
    return DescribeTopicPartitionsResponse(
        topics=[
            DescribeTopicPartitionsResponseTopic(error_code=code, name=topic.name) for topic in body.topics
        ]
    )


API = Api(
    ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    versions=range(1),
    handle=handle,
    refuse=refuse,
    pauses=True,
    long_lists=(("topics", "partitions"),),
)
