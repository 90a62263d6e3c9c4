"""Descriptions of topics, as the lines of Kafka's tool or as JSON. Pure.

The filters are those of kafka-topics.sh --describe. Partition filters omit the line of the topic;
--topics-with-overrides omits the partitions.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from barnabas.base.ids import format_uuid
from barnabas.base.values import value
from barnabas.cli.tool import ToolFailed

if TYPE_CHECKING:
    from barnabas.client.admin.configs import ConfigEntry
    from barnabas.client.admin.topic_descriptions import PartitionDescription, TopicDescription

MIN_ISR: Final = "min.insync.replicas"
_NO_LEADER: Final = -1


@value(kw_only=True)
class Moving:
    """An ongoing reassignment of a partition."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


@value(kw_only=True)
class Filters:
    """Selects partitions that match any of the filters; without a filter, all partitions."""

    under_replicated: bool = False
    unavailable: bool = False
    under_min_isr: bool = False
    at_min_isr: bool = False
    overrides_only: bool = False

    @property
    def shows_topics(self) -> bool:
        return not (self.under_replicated or self.unavailable or self.under_min_isr or self.at_min_isr)


@value(kw_only=True)
class Described:
    """A topic with all data that may be printed."""

    topic: "TopicDescription"
    # In the order of the broker's response, defaults included.
    settings: Mapping[str, "ConfigEntry"]
    moving: Mapping[int, Moving]
    live_brokers: frozenset[int]

    @property
    def overrides(self) -> dict[str, str | None]:
        return {name: entry.value for name, entry in self.settings.items() if not entry.is_default}

    @property
    def replication_factor(self) -> int:
        return self._factor(self.topic.partitions[0]) if self.topic.partitions else 0

    def _factor(self, partition: "PartitionDescription") -> int:
        """Return the replication factor, without replicas that a reassignment is adding."""
        moving = self.moving.get(partition.partition)
        if moving is not None and set(partition.replicas) & {*moving.adding, *moving.removing}:
            return len(moving.replicas) - len(moving.adding)
        return len(partition.replicas)

    def partitions(self, filters: Filters) -> "list[PartitionDescription]":
        if filters.overrides_only:
            return []
        return [
            each for each in self.topic.partitions if filters.shows_topics or self._matches(each, filters)
        ]

    def _matches(self, one: "PartitionDescription", filters: Filters) -> bool:
        has_leader = one.leader != _NO_LEADER
        return (
            (filters.under_replicated and len(one.isr) < self._factor(one))
            or (filters.unavailable and (not has_leader or one.leader not in self.live_brokers))
            or (filters.under_min_isr and (not has_leader or len(one.isr) < self._min_isr))
            or (filters.at_min_isr and len(one.isr) == self._min_isr)
        )

    @property
    def _min_isr(self) -> int:
        entry = self.settings.get(MIN_ISR)
        if entry is None or entry.value is None:
            raise ToolFailed(f"the broker did not return {MIN_ISR} of topic {self.topic.name}")
        return int(entry.value)

    def shows_topic(self, filters: Filters) -> bool:
        return filters.shows_topics and (not filters.overrides_only or bool(self.overrides))


def lines(described: Iterable[Described], filters: Filters) -> Iterator[str]:
    """Return the lines of Kafka's tool."""
    for each in described:
        if each.shows_topic(filters):
            yield _topic_line(each)
        for partition in each.partitions(filters):
            yield _partition_line(each.topic.name, partition, each.moving.get(partition.partition))


def _topic_line(each: Described) -> str:
    topic = each.topic
    settings = ",".join(
        f"{name}={'null' if value is None else value}" for name, value in each.overrides.items()
    )
    parts = [f"Topic: {topic.name}"]
    if topic.topic_id is not None:
        parts.append(f"TopicId: {format_uuid(topic.topic_id)}")
    parts += [
        f"PartitionCount: {len(topic.partitions)}",
        f"ReplicationFactor: {each.replication_factor}",
        f"Configs: {settings}",
    ]
    return "\t".join(parts)


def _partition_line(topic: str, one: "PartitionDescription", moving: Moving | None) -> str:
    parts = [
        f"\tTopic: {topic}",
        f"Partition: {one.partition}",
        f"Leader: {one.leader if one.leader != _NO_LEADER else 'none'}",
        f"Replicas: {_ids(one.replicas)}",
        f"Isr: {_ids(one.isr)}",
    ]
    if moving is not None:
        parts += [f"Adding Replicas: {_ids(moving.adding)}", f"Removing Replicas: {_ids(moving.removing)}"]
    parts += [f"Elr: {_known_ids(one.elr)}", f"LastKnownElr: {_known_ids(one.last_known_elr)}"]
    return "\t".join(parts)


def _ids(ids: Iterable[int]) -> str:
    return ",".join(map(str, ids))


def _known_ids(ids: Iterable[int] | None) -> str:
    return "N/A" if ids is None else _ids(ids)


def document(described: Iterable[Described], filters: Filters) -> dict[str, Any]:
    """Return the same data as a JSON document. Topics without output are omitted."""
    topics = []
    for each in described:
        partitions = each.partitions(filters)
        if each.shows_topic(filters) or partitions:
            topics.append(_topic_document(each, partitions, with_partitions=not filters.overrides_only))
    return {"topics": topics}


def _topic_document(
    each: Described, partitions: "list[PartitionDescription]", *, with_partitions: bool
) -> dict[str, Any]:
    topic = each.topic
    found: dict[str, Any] = {
        "topic": topic.name,
        "topicId": None if topic.topic_id is None else format_uuid(topic.topic_id),
        "internal": topic.internal,
        "partitionCount": len(topic.partitions),
        "replicationFactor": each.replication_factor,
        "configs": each.overrides,
    }
    if with_partitions:
        found["partitions"] = [_partition_document(one, each.moving.get(one.partition)) for one in partitions]
    return found


def _partition_document(one: "PartitionDescription", moving: Moving | None) -> dict[str, Any]:
    found: dict[str, Any] = {
        "partition": one.partition,
        "leader": one.leader if one.leader != _NO_LEADER else None,
        "leaderEpoch": one.leader_epoch,
        "replicas": list(one.replicas),
        "isr": list(one.isr),
        "elr": None if one.elr is None else list(one.elr),
        "lastKnownElr": None if one.last_known_elr is None else list(one.last_known_elr),
    }
    if moving is not None:
        found |= {"addingReplicas": list(moving.adding), "removingReplicas": list(moving.removing)}
    return found
