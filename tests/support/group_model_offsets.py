"""Committed offsets as a dictionary: what a shard's must be, but for what is old enough to be gone."""

from collections.abc import Iterable
from typing import NamedTuple

from barnabas.base.ids import Uuid
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetFetchRequestGroup,
)
from support.group_model import Gone, GroupWorld
from support.group_model_clients import GroupClient

# Stands for metadata that no commit may have.
TOO_LONG = "..."
_NO_RETENTION = -1


class Committed(NamedTuple):
    """A commit of one partition. `retention_ms` is what old clients say of themselves."""

    offset: int
    metadata: str
    now_ms: int
    retention_ms: int

    def request(
        self, group: str, who: GroupClient | None, topic: str, topic_id: Uuid, partition: int
    ) -> OffsetCommitRequest:
        one = OffsetCommitRequestPartition(
            partition_index=partition,
            committed_offset=self.offset,
            committed_metadata=self.metadata * 2_000 if self.metadata == TOO_LONG else self.metadata,
        )
        return OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=-1 if who is None else who.epoch_or_generation,
            member_id="" if who is None else who.id,
            group_instance_id=None if who is None else who.instance_id,
            retention_time_ms=self.retention_ms,
            topics=[OffsetCommitRequestTopic(name=topic, topic_id=topic_id, partitions=[one])],
        )


def commit_code(answer: object) -> ErrorCode:
    if isinstance(answer, OffsetCommitResponse):
        return ErrorCode(answer.topics[0].partitions[0].error_code)
    assert isinstance(answer, Gone)
    return ErrorCode(answer.error_code)


class OffsetModel:
    """Committed offsets as a dictionary: group, topic and partition."""

    def __init__(self) -> None:
        self.committed: dict[tuple[str, str, int], Committed] = {}

    def forget(self, group: str, topics: Iterable[str] | None = None) -> None:
        self.committed = {
            key: one
            for key, one in self.committed.items()
            if key[0] != group or (topics is not None and key[1] not in topics)
        }

    def forget_topics(self, names: Iterable[str]) -> None:
        gone = set(names)
        self.committed = {key: one for key, one in self.committed.items() if key[1] not in gone}

    def check(self, world: GroupWorld, groups: Iterable[str]) -> None:
        """The shard has these, but for what is old enough to be gone."""
        found: dict[tuple[str, str, int], tuple[int, str]] = {}
        for group in groups:
            answer = world.shard.fetch(
                OffsetFetchRequestGroup(group_id=group, topics=None), require_stable=True
            )
            assert answer.error_code == 0, answer
            for topic in answer.topics:
                for one in topic.partitions:
                    key = (group, topic.name, one.partition_index)
                    found[key] = (one.committed_offset, one.metadata or "")
        for key in [key for key in self.committed if key not in found]:
            gone = self.committed[key]
            retention_ms = gone.retention_ms
            if retention_ms == _NO_RETENTION:
                retention_ms = world.settings.offsets_retention_ms
            assert world.now.ms >= gone.now_ms + retention_ms, f"{key} is lost: {gone}"
            del self.committed[key]
        assert found == {key: (one.offset, one.metadata) for key, one in self.committed.items()}
