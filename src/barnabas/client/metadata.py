"""Immutable cluster metadata: nodes, topics, leaders. Updates return a new value.

Responses of different brokers arrive in any order, and a lagging broker returns old leaders. The leader epoch
decides which is newer, unless the topic was recreated.
"""

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from typing import Any, NamedTuple

from barnabas.base.errors import Malformed
from barnabas.base.ids import ZERO_UUID, TopicPartition, Uuid
from barnabas.base.values import value
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.cluster import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

NO_LEADER = -1


class Node(NamedTuple):
    id: int
    host: str
    port: int
    rack: str | None = None

    @property
    def address(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class PartitionMetadata(NamedTuple):
    partition: int
    # NO_LEADER if there is none.
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...]


class TopicMetadata(NamedTuple):
    name: str
    # ZERO_UUID from older brokers.
    topic_id: Uuid
    internal: bool
    # By partition number.
    partitions: tuple[PartitionMetadata, ...]

    def leader_of(self, partition: int) -> PartitionMetadata | None:
        """Return the partition if it exists and has a leader."""
        if not 0 <= partition < len(self.partitions):
            return None
        found = self.partitions[partition]
        return found if found.leader != NO_LEADER else None


@value(kw_only=True)
class Metadata:
    cluster_id: str | None = None
    controller_id: int = NO_LEADER
    nodes: Mapping[int, Node] = field(default_factory=dict)
    topics: Mapping[str, TopicMetadata] = field(default_factory=dict)
    names: Mapping[Uuid, str] = field(default_factory=dict)
    # Error codes of requested topics that are not in `topics`.
    errors: Mapping[str, ErrorCode] = field(default_factory=dict)

    def with_answer(self, answer: MetadataResponse) -> "Metadata":
        """Apply a Metadata response; topics that are not in it stay unchanged."""
        topics, errors = dict(self.topics), dict(self.errors)
        for entry in answer.topics:
            if entry.name is None:
                continue
            code = ErrorCode.of(entry.error_code)
            # While leaders are being elected, Kafka returns this error together with the partitions.
            if code is ErrorCode.NONE or (code is ErrorCode.LEADER_NOT_AVAILABLE and entry.partitions):
                topics[entry.name] = _topic(entry.name, entry, topics.get(entry.name))
                errors.pop(entry.name, None)
            else:
                errors[entry.name] = code
                topics.pop(entry.name, None)
        return Metadata(
            cluster_id=answer.cluster_id,
            controller_id=answer.controller_id,
            nodes={
                each.node_id: Node(each.node_id, each.host, each.port, each.rack) for each in answer.brokers
            },
            topics=topics,
            names=_names(topics),
            errors=errors,
        )

    def with_leader(
        self, tp: TopicPartition, leader: int, epoch: int, endpoints: Iterable[Any]
    ) -> "Metadata | None":
        """Apply a leader hint of another response; None if it is not newer."""
        topic = self.topics.get(tp.topic)
        if topic is None or not 0 <= tp.partition < len(topic.partitions) or leader < 0:
            return None
        known = topic.partitions[tp.partition]
        nodes = dict(self.nodes)
        for each in endpoints:
            nodes[each.node_id] = Node(each.node_id, each.host, each.port, each.rack)
        if epoch <= known.leader_epoch or leader not in nodes:
            return None
        partitions = list(topic.partitions)
        partitions[tp.partition] = known._replace(leader=leader, leader_epoch=epoch)
        topics = {**self.topics, tp.topic: topic._replace(partitions=tuple(partitions))}
        return replace(self, nodes=nodes, topics=topics)

    def without(self, topics: Iterable[str]) -> "Metadata":
        """Remove topics that are no longer used."""
        dropped = set(topics)
        kept = {name: topic for name, topic in self.topics.items() if name not in dropped}
        errors = {name: code for name, code in self.errors.items() if name not in dropped}
        return replace(self, topics=kept, names=_names(kept), errors=errors)


def _names(topics: Mapping[str, TopicMetadata]) -> dict[Uuid, str]:
    return {topic.topic_id: name for name, topic in topics.items() if topic.topic_id != ZERO_UUID}


def _topic(name: str, entry: MetadataResponseTopic, known: TopicMetadata | None) -> TopicMetadata:
    if known is not None and known.topic_id != entry.topic_id:
        # Recreated: its leader epochs start again.
        known = None
    rows = sorted(entry.partitions, key=lambda row: row.partition_index)
    if [row.partition_index for row in rows] != list(range(len(rows))):
        raise Malformed("partition indexes are not consecutive from 0", where=f"metadata of topic {name}")
    partitions = tuple(_partition(row, known) for row in rows)
    return TopicMetadata(name, entry.topic_id, entry.is_internal, partitions)


def _partition(entry: MetadataResponsePartition, known: TopicMetadata | None) -> PartitionMetadata:
    number = entry.partition_index
    leader = NO_LEADER if entry.error_code == ErrorCode.LEADER_NOT_AVAILABLE else entry.leader_id
    news = PartitionMetadata(
        number,
        leader,
        entry.leader_epoch,
        tuple(entry.replica_nodes),
        tuple(entry.isr_nodes),
        tuple(entry.offline_replicas),
    )
    if known is None or number >= len(known.partitions):
        return news
    old = known.partitions[number]
    # Without epochs (-1, old brokers) the latest response wins.
    return old if 0 <= news.leader_epoch < old.leader_epoch else news
