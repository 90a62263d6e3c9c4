"""The topics of a subscription: which there are, by name or by pattern, and how many partitions they have.

The leader of a classic group watches all topics that anybody in it wants, and everybody watches what matches
its own pattern. In a group of the consumer protocol the broker does both.
"""

import re
from collections.abc import Iterable

from barnabas.base.ids import Uuid
from barnabas.client.cluster import Cluster
from barnabas.client.errors import refused
from barnabas.client.group.subscription import Subscription
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.cluster import MetadataRequest, MetadataRequestTopic, MetadataResponse

_FLAGS = {re.IGNORECASE: "i", re.DOTALL: "s", re.MULTILINE: "m"}


class Wanted:
    """What the user subscribed to: names, or a pattern that whole names must match."""

    def __init__(self, names: Iterable[str], pattern: "re.Pattern[str] | None") -> None:
        self.names = frozenset(names)
        self.pattern = pattern

    def matches(self, name: str) -> bool:
        return self.pattern is not None and self.pattern.fullmatch(name) is not None


def re2_of(pattern: "re.Pattern[str]") -> str:
    """The same for a broker, whose patterns are RE2's. Flags go in front, where RE2 has them too."""
    unsupported = pattern.flags & ~(re.UNICODE | re.IGNORECASE | re.DOTALL | re.MULTILINE)
    if unsupported:
        raise ValueError(f"pattern {pattern.pattern}: brokers do not support {re.RegexFlag(unsupported)!r}")
    flags = "".join(letter for flag, letter in _FLAGS.items() if pattern.flags & flag)
    return f"(?{flags}){pattern.pattern}" if flags else pattern.pattern


async def partition_counts(
    cluster: Cluster, names: frozenset[str], *, create: bool = False
) -> dict[str, int]:
    """How many partitions each of these topics has; those that are not there are left out. One try."""
    metadata = await cluster.refresh(names, create=create)
    return {name: len(metadata.topics[name].partitions) for name in names if name in metadata.topics}


async def matching_topics(cluster: Cluster, wanted: Wanted, *, exclude_internal: bool) -> frozenset[str]:
    """All topics of the cluster that the pattern matches. One try."""
    answer = await _ask(cluster, MetadataRequest(topics=None, allow_auto_topic_creation=False))
    return frozenset(
        topic.name
        for topic in answer.topics
        if topic.name is not None
        and topic.error_code == ErrorCode.NONE
        and not (exclude_internal and topic.is_internal)
        and wanted.matches(topic.name)
    )


async def names_of(cluster: Cluster, topic_ids: frozenset[Uuid]) -> dict[Uuid, str]:
    """What these topics are called; those that nobody knows are left out. One try."""
    known = {each: name for each in topic_ids if (name := cluster.metadata.names.get(each)) is not None}
    unknown = topic_ids - known.keys()
    if unknown:
        topics = [MetadataRequestTopic(topic_id=each, name=None) for each in sorted(unknown)]
        answer = await _ask(cluster, MetadataRequest(topics=topics, allow_auto_topic_creation=False))
        for topic in answer.topics:
            if topic.error_code == ErrorCode.NONE and topic.name is not None:
                known[topic.topic_id] = topic.name
    return known


async def _ask(cluster: Cluster, request: MetadataRequest) -> MetadataResponse:
    connection = await cluster.any_connection()
    answer: MetadataResponse = await connection.ask(request, timeout_ms=cluster.settings.request_timeout_ms)
    if answer.error_code != ErrorCode.NONE:
        raise refused(answer.error_code, about="metadata")
    return answer


def topics_of(members: Iterable[Subscription]) -> frozenset[str]:
    """Everything that anybody in the group wants."""
    return frozenset().union(*(one.topics for one in members))
