"""Committed offsets of groups: OffsetFetch, OffsetCommit and OffsetDelete at the group coordinators.

Commits are made without membership: a coordinator accepts them while the group has no members. Topics are
given by name, so versions that replace names by ids are not used.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from barnabas.base.ids import TopicPartition
from barnabas.base.values import value
from barnabas.client.admin.call import Call, NegotiatedApi, Outcome, TopicPartitionLike, check, outcome_of
from barnabas.client.admin.coordinators import ask_coordinators, coordinator_of
from barnabas.client.admin.leaders import by_topic
from barnabas.client.errors import Refused, refused
from barnabas.client.metadata import Node
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)

_ALL_FROM, _STABLE_FROM, _GROUPS_FROM = 2, 7, 8
_NAMES_UP_TO: Final = 9
_NOTHING: Final = -1


@value(kw_only=True)
class CommittedOffset:
    """The next offset that the group will read, with its metadata."""

    offset: int
    leader_epoch: int | None = None
    metadata: str = ""


# Fetch


async def fetch_offsets(
    call: Call, wanted: Mapping[str, Iterable[TopicPartitionLike] | None], *, require_stable: bool
) -> dict[str, Outcome[dict[TopicPartition, CommittedOffset | None]]]:
    """Return the committed offsets of each group, of all (None) or some partitions; None: not committed.

    With `require_stable`, wait for open transactions that contain offsets of a partition.
    """
    topics = {
        group: None if tps is None else by_topic(TopicPartition(*tp) for tp in tps)
        for group, tps in wanted.items()
    }

    async def ask(node: Node, share: list[str]) -> dict[str, Outcome[dict[TopicPartition, Any]]]:
        version = (await call.connection(node.id)).version_of(ApiKey.OFFSET_FETCH)
        if version >= _GROUPS_FROM:
            return await _fetch_several(call, node, {group: topics[group] for group in share}, require_stable)
        return {group: await _fetch_one(call, node, group, topics[group], require_stable) for group in share}

    return await ask_coordinators(call, "OFFSET_FETCH", wanted, ask)


async def _fetch_several(
    call: Call, node: Node, wanted: Mapping[str, list[tuple[str, list[int]]] | None], require_stable: bool
) -> dict[str, Outcome[dict[TopicPartition, Any]]]:
    groups = [
        OffsetFetchRequestGroup(
            group_id=group,
            topics=None
            if topics is None
            else [OffsetFetchRequestTopics(name=name, partition_indexes=rows) for name, rows in topics],
        )
        for group, topics in wanted.items()
    ]
    answer = await call.ask(
        ApiKey.OFFSET_FETCH,
        lambda _: OffsetFetchRequest(groups=groups, require_stable=require_stable),
        node.id,
        newest=_NAMES_UP_TO,
    )
    return {entry.group_id: _fetched(entry.group_id, entry) for entry in answer.groups}


async def _fetch_one(
    call: Call, node: Node, group: str, topics: list[tuple[str, list[int]]] | None, require_stable: bool
) -> Outcome[dict[TopicPartition, Any]]:
    def make(api: NegotiatedApi) -> object:
        if require_stable:
            api.require(_STABLE_FROM, "require_stable")
        if topics is None:
            api.require(_ALL_FROM, "all offsets of a group")
            return OffsetFetchRequest(group_id=group, topics=None, require_stable=require_stable)
        rows = [OffsetFetchRequestTopic(name=name, partition_indexes=numbers) for name, numbers in topics]
        return OffsetFetchRequest(group_id=group, topics=rows, require_stable=require_stable)

    answer = await call.ask(ApiKey.OFFSET_FETCH, make, node.id, newest=_GROUPS_FROM - 1)
    return _fetched(group, answer)


def _fetched(group: str, entry: Any) -> Outcome[dict[TopicPartition, CommittedOffset | None]]:
    """Return the offsets, or the first error: partial offsets of a group are of no use."""
    if entry.error_code != ErrorCode.NONE:
        return refused(entry.error_code, about=f"group {group}")
    found: dict[TopicPartition, CommittedOffset | None] = {}
    for topic in entry.topics:
        for row in topic.partitions:
            tp = TopicPartition(topic.name, row.partition_index)
            if row.error_code != ErrorCode.NONE:
                return refused(row.error_code, about=f"group {group}, {tp}")
            found[tp] = _committed(row)
    return found


def _committed(row: Any) -> CommittedOffset | None:
    if row.committed_offset < 0:
        return None
    epoch = row.committed_leader_epoch
    return CommittedOffset(
        offset=row.committed_offset,
        leader_epoch=None if epoch == _NOTHING else epoch,
        metadata=row.metadata or "",
    )


# Commit


async def commit_offsets(
    call: Call, group: str, offsets: Mapping[TopicPartition, CommittedOffset]
) -> dict[TopicPartition, Outcome[None]]:
    async def attempt(pending: list[TopicPartition]) -> dict[TopicPartition, Outcome[None]]:
        node = await coordinator_of(call, group)
        topics = [
            OffsetCommitRequestTopic(
                name=name, partitions=[_row(number, offsets[TopicPartition(name, number)]) for number in rows]
            )
            for name, rows in by_topic(pending)
        ]
        answer = await call.ask(
            ApiKey.OFFSET_COMMIT,
            lambda _: OffsetCommitRequest(group_id=group, topics=topics),
            node.id,
            newest=_NAMES_UP_TO,
        )
        return _by_partition(group, answer)

    return await call.retry_items("OFFSET_COMMIT", offsets, attempt)


def _row(partition: int, committed: CommittedOffset) -> OffsetCommitRequestPartition:
    epoch = committed.leader_epoch
    return OffsetCommitRequestPartition(
        partition_index=partition,
        committed_offset=committed.offset,
        committed_leader_epoch=_NOTHING if epoch is None else epoch,
        committed_metadata=committed.metadata,
    )


# Delete


async def delete_offsets(
    call: Call, group: str, tps: Iterable[TopicPartition]
) -> dict[TopicPartition, Outcome[None]]:
    async def attempt(pending: list[TopicPartition]) -> dict[TopicPartition, Outcome[None]]:
        node = await coordinator_of(call, group)
        topics = [
            OffsetDeleteRequestTopic(
                name=name,
                partitions=[OffsetDeleteRequestPartition(partition_index=number) for number in rows],
            )
            for name, rows in by_topic(pending)
        ]
        answer = await call.ask(
            ApiKey.OFFSET_DELETE, lambda _: OffsetDeleteRequest(group_id=group, topics=topics), node.id
        )
        check(answer.error_code, about=f"group {group}")
        return _by_partition(group, answer)

    return await call.retry_items("OFFSET_DELETE", tps, attempt)


def _by_partition(group: str, answer: Any) -> dict[TopicPartition, Outcome[None]]:
    found: dict[TopicPartition, Outcome[None]] = {}
    for topic in answer.topics:
        for row in topic.partitions:
            tp = TopicPartition(topic.name, row.partition_index)
            outcome = outcome_of(row.error_code, None, about=f"group {group}, {tp}")
            if isinstance(outcome, Refused) and outcome.code is ErrorCode.REBALANCE_IN_PROGRESS:
                # A member would rejoin before it commits; a non-member waits for the end of the rebalance.
                outcome.retriable = True
            found[tp] = outcome
    return found
