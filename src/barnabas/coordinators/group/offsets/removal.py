"""Removal of offsets and groups: by request, by expiry, and with deleted topics.

The functions only return tombstones; the offsets are removed when these are applied.
"""

from collections.abc import Iterator, Set
from typing import Final

from barnabas.base.ids import ZERO_UUID
from barnabas.coordinators.decision.outcome import Now, Record
from barnabas.coordinators.group.context import ShardContext
from barnabas.coordinators.group.group import Group, GroupError
from barnabas.coordinators.group.offsets.pending import PendingOffsets
from barnabas.coordinators.group.offsets.record import NO_EXPIRY, OffsetRecord, read_offset
from barnabas.coordinators.group.offsets.table import OffsetTable
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.group_offsets import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

# Maximum number of offsets and groups per slice, not counting the rest of the last group: about 10 ms.
AT_ONCE: Final = 5_000


class OffsetRemover:
    """Finds offsets to remove."""

    def __init__(self, context: ShardContext, table: OffsetTable, pending: PendingOffsets) -> None:
        self._context = context
        self._table = table
        self._pending = pending
        # Groups left in the current expiration check, in reverse order.
        self._left: list[str] = []

    def deleted(self, request: OffsetDeleteRequest) -> tuple[list[OffsetRecord], OffsetDeleteResponse]:
        """Tombstones and response for OffsetDelete. GroupError if the group refuses the whole request."""
        if not request.group_id:
            raise GroupError(ErrorCode.INVALID_GROUP_ID, "The group id is empty.")
        group = self._context.groups.get(request.group_id)
        if group is None:
            raise GroupError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {request.group_id} not found.")
        group.check_offset_delete()
        # A dict, because a partition may be named twice.
        tombstones: dict[OffsetRecord, None] = {}
        topics = []
        for topic in request.topics:
            indexes = [one.partition_index for one in topic.partitions]
            code = ErrorCode.NONE
            if group.is_subscribed_to(topic.name):
                code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
            else:
                tombstones |= dict.fromkeys(
                    _tombstone(group.id, topic.name, index)
                    for index in indexes
                    if self._is_there(group.id, topic.name, index)
                )
            partitions = [
                OffsetDeleteResponsePartition(partition_index=index, error_code=code) for index in indexes
            ]
            topics.append(OffsetDeleteResponseTopic(name=topic.name, partitions=partitions))
        return list(tombstones), OffsetDeleteResponse(topics=topics)

    def all_of(self, group_id: str) -> list[OffsetRecord]:
        """Tombstones for all offsets of a group, including pending ones."""
        places = {(topic, partition) for topic, partition, _ in self._table.of_group(group_id)}
        places.update(self._pending.partitions_of(group_id))
        return [_tombstone(group_id, topic, partition) for topic, partition in sorted(places)]

    def expired(self, now: Now) -> list[Record]:
        """Tombstones for expired offsets, and for empty groups without offsets.

        Checks a slice of the groups per call, so as not to block the loop: see `has_more`.
        """
        if not self._left:
            self._left = list(reversed(self._context.groups))
        looked_at = 0
        found: list[Record] = []
        while self._left and looked_at < AT_ONCE:
            group = self._context.groups.get(self._left.pop())
            if group is None:
                continue
            offsets = self._table.of_group(group.id)
            looked_at += 1 + len(offsets)
            has_any_left = group.id in self._pending
            for topic, partition, value in offsets:
                if self._is_expired(group, topic, partition, value, now):
                    found.append(_tombstone(group.id, topic, partition))
                else:
                    has_any_left = True
            if not has_any_left and group.is_empty:
                found += group.tombstones()
        return found

    @property
    def has_more(self) -> bool:
        """Whether the current expiration check has groups left."""
        return bool(self._left)

    def of_deleted_topics(self, names: Set[str]) -> Iterator[OffsetRecord]:
        """Tombstones for offsets of deleted topics. A recreated topic of the same name keeps its own
        offsets."""
        pending: dict[str, list[OffsetRecord]] = {}
        for _, record in self._pending.entries():
            if record.topic in names:
                pending.setdefault(record.group, []).append(record)
        groups = self._table.groups() if any(self._table.has_topic(name) for name in names) else ()
        for group_id in dict.fromkeys((*groups, *pending)):
            places = {
                (topic, partition)
                for topic, partition, value in self._table.of_group(group_id)
                if topic in names and not self._is_of_live_topic(topic, value)
            }
            places.update(
                (record.topic, record.partition)
                for record in pending.get(group_id, ())
                if record.value is not None and not self._is_of_live_topic(record.topic, record.value)
            )
            for topic, partition in sorted(places):
                yield _tombstone(group_id, topic, partition)

    def _is_there(self, group_id: str, topic: str, partition: int) -> bool:
        return self._table.get(group_id, topic, partition) is not None or self._pending.is_unstable(
            group_id, topic, partition
        )

    def _is_expired(self, group: Group, topic: str, partition: int, value: bytes, now: Now) -> bool:
        offset = read_offset(value)
        from_ms = group.offsets_expire_from(offset.commit_ms)
        if from_ms is None or group.is_subscribed_to(topic):
            return False
        if self._pending.is_unstable(group.id, topic, partition):
            return False
        if offset.expire_ms != NO_EXPIRY:
            return now.ms >= offset.expire_ms
        return now.ms - from_ms >= self._context.settings.offsets_retention_ms

    def _is_of_live_topic(self, topic: str, value: bytes) -> bool:
        live = self._context.image.topics.get(topic)
        topic_id = read_offset(value).topic_id
        return live is not None and topic_id != ZERO_UUID and topic_id == live.id


def _tombstone(group_id: str, topic: str, partition: int) -> OffsetRecord:
    return OffsetRecord(group_id, topic, partition, None)
