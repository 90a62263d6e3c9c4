"""Offsets with groups that answer as a test tells them to."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from barnabas.base.ids import ZERO_UUID, Uuid
from barnabas.coordinators.decision.outcome import Caller, Now, Outcome, Record, ReplyTo, StoredRecord
from barnabas.coordinators.group.context import ShardContext
from barnabas.coordinators.group.group import CLASSIC, GroupError
from barnabas.coordinators.group.offsets.offsets import Offsets
from barnabas.coordinators.group.offsets.record import CommittedOffset, OffsetRecord, pack_offset
from barnabas.coordinators.group.offsets.txn_commits import PendingOffset
from barnabas.coordinators.group.settings import GroupSettings
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from barnabas.protocol.stored.offsets import GroupMetadataKey
from barnabas.records.builder import build_batch

NOW = Now(ms=1_000_000, tick_ms=5)
VERSION = 9


def caller(version: int = VERSION) -> Caller:
    return Caller("client", "/127.0.0.1", version)


@dataclass
class ToldGroup:
    """A group that refuses what it is told to refuse; `asked` and `heard` are what came to it."""

    id: str
    kind: str = CLASSIC
    protocol_type: str = ""
    state: str = "Empty"
    is_empty: bool = True
    refuses: dict[str, ErrorCode] = field(default_factory=dict)
    subscribed: set[str] = field(default_factory=set)
    expire_from: Callable[[int], int | None] = lambda committed_ms: committed_ms
    asked: list[tuple[object, ...]] = field(default_factory=list)
    heard: list[tuple[str, Now]] = field(default_factory=list)

    def _guard(self, what: str, *facts: object) -> None:
        self.asked.append((what, *facts))
        if what in self.refuses:
            raise GroupError(self.refuses[what], what)

    def check_commit(
        self, member_id: str, instance_id: str | None, generation_or_epoch: int, *, is_txn: bool, version: int
    ) -> None:
        self._guard("commit", member_id, instance_id, generation_or_epoch, is_txn, version)

    def check_commit_of(
        self, topic_id: Uuid, partition: int, generation_or_epoch: int, member_id: str
    ) -> None:
        self._guard("commit_of", topic_id, partition, generation_or_epoch, member_id)

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        self._guard("fetch", member_id, member_epoch)

    def check_offset_delete(self) -> None:
        self._guard("offset_delete")

    def check_delete(self) -> None:
        self._guard("delete")

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.subscribed

    def offsets_expire_from(self, committed_ms: int) -> int | None:
        return self.expire_from(committed_ms)

    def tombstones(self) -> list[Record]:
        return [group_tombstone(self.id)]

    def extend_session(self, member_id: str, now: Now) -> None:
        self.heard.append((member_id, now))


def group_tombstone(group_id: str) -> StoredRecord:
    return StoredRecord(GroupMetadataKey(group=group_id), None)


def record(
    group: str, topic: str, partition: int, offset: int | None, *, topic_id: Uuid = ZERO_UUID, at_ms: int = 0
) -> OffsetRecord:
    """A commit of that offset, a tombstone for None."""
    if offset is None:
        return OffsetRecord(group, topic, partition, None)
    committed = CommittedOffset(offset, -1, "", at_ms, topic_id=topic_id)
    return OffsetRecord(group, topic, partition, pack_offset(committed))


def batch_of(records: Iterable[Record], **facts: Any) -> bytes:
    """As the log has them."""
    return build_batch([(1, *one.encoded(), ()) for one in records], **facts)


def commit_request(
    group: str, partitions: dict[tuple[str, int], int], *, metadata: str | None = "", **facts: Any
) -> OffsetCommitRequest:
    """A commit of these offsets; `facts` are fields of the request."""
    return OffsetCommitRequest(
        group_id=group,
        member_id=facts.pop("member_id", ""),
        topics=[
            OffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=partition, committed_offset=offset, committed_metadata=metadata
                    )
                ],
            )
            for (topic, partition), offset in partitions.items()
        ],
        **facts,
    )


class World:
    """One shard's offsets. What is decided is applied at once."""

    def __init__(self, **settings: Any) -> None:
        self.context = ShardContext(GroupSettings(**settings), Random(1))
        self.offsets = Offsets(self.context, self.new_group, self._apply_group_record)

    def new_group(self, group_id: str, **told: Any) -> ToldGroup:
        group = self.context.groups[group_id] = ToldGroup(group_id, **told)
        return group

    def _apply_group_record(self, record: Record) -> None:
        """Records of groups are not applied."""

    def pend(self, producer_id: int, records: Iterable[OffsetRecord]) -> None:
        """Commit offsets in a transaction."""
        for one in records:
            self.offsets.apply(PendingOffset(producer_id, one))

    def carry_out(self, outcome: Outcome) -> Any:
        """Apply the records and return the answer, None if there is none."""
        for one in outcome.records:
            self.offsets.apply(one)
        return outcome.answers[0][1] if outcome.answers else None

    def commit(self, request: OffsetCommitRequest, *, version: int = VERSION, now: Now = NOW) -> Any:
        return self.carry_out(self.offsets.commit(request, caller(version), ReplyTo(), now))

    def committed(self, group: str, topic: str, partition: int, *, stable: bool = False) -> tuple[int, int]:
        """Offset and error code, as OffsetFetch has them."""
        asked = OffsetFetchRequestGroup(
            group_id=group, topics=[OffsetFetchRequestTopics(name=topic, partition_indexes=[partition])]
        )
        found = self.offsets.fetch(asked, require_stable=stable).topics[0].partitions[0]
        return found.committed_offset, found.error_code


def codes(response: Any) -> dict[tuple[str, int], int]:
    """The error code of every partition in an answer."""
    return {
        (topic.name, partition.partition_index): partition.error_code
        for topic in response.topics
        for partition in topic.partitions
    }
