"""OffsetFetch for one group."""

from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter
from typing import Final

from barnabas.base.ids import ZERO_UUID, Uuid
from barnabas.coordinators.group.context import ShardContext
from barnabas.coordinators.group.group import GroupError
from barnabas.coordinators.group.offsets.pending import PendingOffsets
from barnabas.coordinators.group.offsets.record import read_offset
from barnabas.coordinators.group.offsets.table import OffsetTable
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.group_offsets import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)

_NO_OFFSET: Final = -1
_NO_LEADER_EPOCH: Final = -1


class OffsetReader:
    """Reads committed offsets and reports unstable ones."""

    def __init__(self, context: ShardContext, table: OffsetTable, pending: PendingOffsets) -> None:
        self._context = context
        self._table = table
        self._pending = pending

    def read(self, asked: OffsetFetchRequestGroup, *, require_stable: bool) -> OffsetFetchResponseGroup:
        group = self._context.groups.get(asked.group_id)
        response = OffsetFetchResponseGroup(group_id=asked.group_id, topics=[])
        # An unknown group has no offsets, which is not an error.
        is_there = group is not None
        if group is not None:
            try:
                group.check_fetch(asked.member_id, asked.member_epoch)
            except GroupError as refused:
                if refused.code != ErrorCode.GROUP_ID_NOT_FOUND:
                    response.error_code = refused.code
                    return response
                is_there = False
        if asked.topics is not None:
            response.topics = [
                self._topic(asked.group_id, one, is_there, require_stable) for one in asked.topics
            ]
        elif is_there:
            response.topics = self._all_topics(asked.group_id, require_stable)
        return response

    def _topic(
        self, group_id: str, asked: OffsetFetchRequestTopics, is_there: bool, require_stable: bool
    ) -> OffsetFetchResponseTopics:
        found: Iterable[tuple[int, bytes | None]] = (
            (index, self._table.get(group_id, asked.name, index) if is_there else None)
            for index in asked.partition_indexes
        )
        return OffsetFetchResponseTopics(
            name=asked.name,
            topic_id=asked.topic_id,
            partitions=[
                self._partition(group_id, asked.name, asked.topic_id, index, value, require_stable)
                for index, value in found
            ],
        )

    def _all_topics(self, group_id: str, require_stable: bool) -> list[OffsetFetchResponseTopics]:
        return [
            OffsetFetchResponseTopics(
                name=topic,
                partitions=[
                    self._partition(group_id, topic, ZERO_UUID, index, value, require_stable)
                    for _, index, value in offsets
                ],
            )
            for topic, offsets in groupby(self._table.of_group(group_id), key=itemgetter(0))
        ]

    def _partition(
        self, group_id: str, topic: str, topic_id: Uuid, index: int, value: bytes | None, require_stable: bool
    ) -> OffsetFetchResponsePartitions:
        if require_stable and self._pending.is_unstable(group_id, topic, index):
            return _nothing(index, ErrorCode.UNSTABLE_OFFSET_COMMIT)
        if value is None:
            return _nothing(index)
        found = read_offset(value)
        # The offset belongs to a deleted topic of the same name. (KIP-848)
        if ZERO_UUID not in (topic_id, found.topic_id) and topic_id != found.topic_id:
            return _nothing(index)
        return OffsetFetchResponsePartitions(
            partition_index=index,
            committed_offset=found.offset,
            committed_leader_epoch=found.leader_epoch,
            metadata=found.metadata,
        )


def _nothing(index: int, code: ErrorCode = ErrorCode.NONE) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=_NO_OFFSET,
        committed_leader_epoch=_NO_LEADER_EPOCH,
        metadata="",
        error_code=code,
    )
