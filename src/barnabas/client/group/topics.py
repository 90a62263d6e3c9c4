"""Looks up the topics of a subscription, by name or by pattern, and their partition counts.

In a classic group the leader watches all subscribed topics, and each member the topics that match its own
pattern. In a group of the consumer protocol the broker does both.
"""

import re
from collections.abc import Iterable
from typing import Final

from barnabas.base.ids import Uuid
from barnabas.client.cluster import Cluster
from barnabas.client.errors import refused
from barnabas.client.group.subscription import Subscription
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.cluster import MetadataRequest, MetadataRequestTopic, MetadataResponse

# Kafka's limit of topic names.
_NAME_MAX: Final = 249
_FLAGS = {re.IGNORECASE: "i", re.DOTALL: "s", re.MULTILINE: "m"}


class TopicSelection:
    """The user's subscription: names, or a pattern that must match the full name."""

    def __init__(self, names: Iterable[str], pattern: "re.Pattern[str] | None") -> None:
        self.names = frozenset(names)
        self.pattern = pattern

    def matches(self, name: str) -> bool:
        return self.pattern is not None and self.pattern.fullmatch(name) is not None


def subscription_of(topics: Iterable[str], pattern: "re.Pattern[str] | str | None") -> TopicSelection:
    """Check the arguments of subscribe(); ValueError if they are invalid."""
    names = [topics] if isinstance(topics, str) else list(topics)
    compiled = re.compile(pattern) if isinstance(pattern, str) else pattern
    if bool(names) == (compiled is not None):
        raise ValueError("subscribe() takes either topic names or a pattern")
    for name in names:
        if not name or len(name) > _NAME_MAX:
            raise ValueError(f"{name[:_NAME_MAX]!r} is not a valid topic name")
    return TopicSelection(names, compiled)


def re2_of(pattern: "re.Pattern[str]") -> str:
    """Convert a pattern to RE2 syntax for brokers, with its flags as a prefix."""
    unsupported = pattern.flags & ~(re.UNICODE | re.IGNORECASE | re.DOTALL | re.MULTILINE)
    if unsupported:
        raise ValueError(f"pattern {pattern.pattern}: brokers do not support {re.RegexFlag(unsupported)!r}")
    flags = "".join(letter for flag, letter in _FLAGS.items() if pattern.flags & flag)
    return f"(?{flags}){pattern.pattern}" if flags else pattern.pattern


async def partition_counts(
    cluster: Cluster, names: frozenset[str], *, create: bool = False
) -> dict[str, int]:
    """Return the partition counts of existing topics. One attempt."""
    metadata = await cluster.refresh(names, create=create)
    return {name: len(metadata.topics[name].partitions) for name in names if name in metadata.topics}


async def matching_topics(
    cluster: Cluster, wanted: TopicSelection, *, exclude_internal: bool
) -> frozenset[str]:
    """Return all topics of the cluster that match the pattern. One attempt."""
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
    """Return the names of topic ids, without unknown ones. One attempt."""
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
    """Return all topics that any member subscribes to."""
    return frozenset().union(*(one.topics for one in members))
