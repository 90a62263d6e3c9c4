"""All groups of one partition of __consumer_offsets: request dispatch and administration.

Requests go to classic/ or consumer/ by the kind of their group, or to offsets/. This is the only interface
for the shell.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import Final

from barnabas.coordinators.decision.outcome import (
    Caller,
    EndMarker,
    Now,
    Outcome,
    Record,
    ReplyTo,
    StoredRecord,
)
from barnabas.coordinators.decision.timers import TimerKey
from barnabas.coordinators.group.classic.group import ClassicGroup
from barnabas.coordinators.group.classic.groups import ClassicGroups
from barnabas.coordinators.group.consumer.group import ConsumerGroup
from barnabas.coordinators.group.consumer.groups import ConsumerGroups
from barnabas.coordinators.group.context import ShardContext
from barnabas.coordinators.group.group import CLASSIC, CONSUMER, Group, GroupError
from barnabas.coordinators.group.offsets.offsets import Offsets
from barnabas.coordinators.group.offsets.txn_commits import decide_end
from barnabas.metadata.image import MetadataImage
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.classic_groups import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from barnabas.protocol.messages.consumer_groups import ConsumerGroupHeartbeatRequest
from barnabas.protocol.messages.consumer_groups import DescribedGroup as DescribedConsumerGroup
from barnabas.protocol.messages.group_admin import (
    DeletableGroupResult,
    DescribedGroup,
    ListedGroup,
)
from barnabas.protocol.messages.group_offsets import (
    OffsetDeleteRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
)
from barnabas.protocol.messages.transactions import TxnOffsetCommitRequest
from barnabas.protocol.stored.framing import CONSUMER_OFFSETS, UnknownRecord
from barnabas.protocol.stored.offsets import GroupMetadataKey, GroupMetadataValue

logger = logging.getLogger(__name__)

_OFFSETS_TIMER: Final[TimerKey] = ("offsets", "", "")
# Pause between the slices of an expiration check.
_PAUSE_MS: Final = 20
_CLASSIC_TIMERS: Final = ("classic-session", "classic-join", "classic-sync")
# From this version of DescribeGroups on an unknown group is an error. (KIP-1043)
_NOT_FOUND_FROM: Final = 6
_DEAD: Final = "Dead"
# Sum of a group's topics and members and a request's topics above which a decision may take milliseconds.
LARGE_GROUP: Final = 200


class GroupShard:
    """The groups of one partition. Requests and timers return an Outcome; queries return their result.

    Handlers call `offsets` directly for commits.
    """

    def __init__(self, context: ShardContext) -> None:
        self.context: Final = context
        self.timers: Final = context.timers
        self.classic: Final = ClassicGroups(context)
        self.consumer: Final = ConsumerGroups(context, self.classic)
        self.assigning: Final = self.consumer.assigning
        self._group_records: Final = _GroupRecords(context, self.classic, self.consumer)
        self.offsets: Final = Offsets(context, self.classic.new, self._group_records.apply)
        # (record) -> None: apply a record of an Outcome. Bound to the offsets, because most records are
        # commits, and an extra call is measurable here.
        self.apply: Final = self.offsets.apply

    def __len__(self) -> int:
        """The number of groups."""
        return len(self.context.groups)

    # The classic protocol

    def join(self, request: JoinGroupRequest, caller: Caller, to: ReplyTo, now: Now) -> Outcome:
        group = self.context.groups.get(request.group_id)
        if not isinstance(group, ConsumerGroup):
            return self.classic.joins.join(request, caller, to, now)
        if not group.is_empty:
            return self.consumer.classic_members.join(group, request, caller, to, now)
        # The first classic member that joins an empty consumer group turns it into a classic one.
        outcome = Outcome()
        outcome.records += group.tombstones()
        del self.context.groups[group.id]
        outcome.add(self.classic.joins.join(request, caller, to, now))
        if request.group_id not in self.context.groups:
            # The join was refused: restore the group.
            self.context.groups[group.id] = group
            outcome.records.clear()
        return outcome

    def sync(self, request: SyncGroupRequest, caller: Caller, to: ReplyTo, now: Now) -> Outcome:
        group = self.context.groups.get(request.group_id)
        if isinstance(group, ConsumerGroup):
            return self.consumer.classic_members.sync(group, request, caller, to, now)
        return self.classic.sync(request, caller, to, now)

    def heartbeat(self, request: HeartbeatRequest, caller: Caller, to: ReplyTo, now: Now) -> Outcome:
        group = self.context.groups.get(request.group_id)
        if isinstance(group, ConsumerGroup):
            return self.consumer.classic_members.heartbeat(group, request, to, now)
        return self.classic.heartbeat(request, caller, to, now)

    def leave(self, request: LeaveGroupRequest, caller: Caller, to: ReplyTo, now: Now) -> Outcome:
        group = self.context.groups.get(request.group_id)
        if isinstance(group, ConsumerGroup):
            return self.consumer.classic_members.leave(group, request, caller, to, now)
        return self.classic.leave(request, caller, to, now)

    # The consumer protocol

    def consumer_heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, caller: Caller, to: ReplyTo, now: Now
    ) -> Outcome:
        return self.consumer.heartbeats.heartbeat(request, caller, to, now)

    def takes_long(self, group_id: str, topics: int, *, is_change: bool) -> bool:
        """Whether a request that names this many topics may recompute a large group."""
        group = self.context.groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            return topics > LARGE_GROUP
        if topics + len(group.subscriptions) + len(group.members) <= LARGE_GROUP:
            return False
        return is_change or not group.is_fresh or group.assignment_epoch < group.epoch

    # Offsets

    def commit_in_transaction(
        self, request: TxnOffsetCommitRequest, caller: Caller, to: ReplyTo, now: Now
    ) -> Outcome:
        """The offsets become visible when the transaction commits. The log may refuse them."""
        return self.offsets.commit_in_transaction(request, caller, to, now)

    def end_transaction(self, marker: EndMarker, to: ReplyTo, now: Now) -> Outcome:
        """The answer is ErrorCode.NONE. The log may refuse the marker."""
        return decide_end(marker, to)

    def fetch(self, asked: OffsetFetchRequestGroup, *, require_stable: bool) -> OffsetFetchResponseGroup:
        return self.offsets.fetch(asked, require_stable=require_stable)

    def delete_offsets(self, request: OffsetDeleteRequest, to: ReplyTo) -> Outcome:
        return self.offsets.delete(request, to)

    # Administration

    def list(self, states: Set[str], kinds: Set[str]) -> Iterator[ListedGroup | None]:
        """Yield the groups in one of the states and of one of the kinds (lower case; empty means any).

        Yields None for each other group. Iterates over a snapshot of the groups.
        """
        for group in list(self.context.groups.values()):
            if (states and group.state.lower() not in states) or (kinds and group.kind not in kinds):
                yield None
                continue
            yield ListedGroup(
                group_id=group.id,
                protocol_type=group.protocol_type,
                group_state=group.state,
                group_type=group.kind,
            )

    def describe_classic(self, group_id: str, version: int) -> DescribedGroup:
        group = self.context.groups.get(group_id)
        if isinstance(group, ClassicGroup):
            return self.classic.describe(group)
        described = DescribedGroup(
            group_id=group_id, group_state=_DEAD, protocol_type="", protocol_data="", members=[]
        )
        if version >= _NOT_FOUND_FROM:
            described.error_code = ErrorCode.GROUP_ID_NOT_FOUND
            described.error_message = _not_of_kind(group_id, group, CLASSIC)
        return described

    def describe_consumer(self, group_id: str) -> DescribedConsumerGroup:
        group = self.context.groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return self.consumer.describe(group)
        return DescribedConsumerGroup(
            group_id=group_id,
            error_code=ErrorCode.GROUP_ID_NOT_FOUND,
            error_message=_not_of_kind(group_id, group, CONSUMER),
            group_state="",
            group_epoch=0,
            assignment_epoch=0,
            assignor_name="",
            members=[],
        )

    def delete(self, group_ids: Iterable[str], to: ReplyTo) -> Outcome:
        """The answer is a list of DeletableGroupResult."""
        outcome = Outcome(is_divisible=True)
        results = []
        # Records are applied only at the end, so duplicate names are removed first.
        for group_id in dict.fromkeys(group_ids):
            code = ErrorCode.NONE
            try:
                self._delete(group_id, outcome)
            except GroupError as error:
                code = error.code
            results.append(DeletableGroupResult(group_id=group_id, error_code=code))
        outcome.answer(to, results)
        return outcome

    def _delete(self, group_id: str, outcome: Outcome) -> None:
        group = self.context.groups.get(group_id)
        if group is None:
            raise GroupError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        group.check_delete()
        outcome.records += self.offsets.forget(group_id)
        outcome.records += group.tombstones()
        if isinstance(group, ClassicGroup):
            # The group has no members, but may have pending member ids with timers.
            outcome.add(self.classic.release(group, ErrorCode.UNKNOWN_MEMBER_ID))

    # Timers and metadata

    def expire(self, key: TimerKey, now: Now) -> Outcome:
        """A timer has expired."""
        if key == _OFFSETS_TIMER:
            outcome = self.offsets.expire(now)
            self._expire_offsets_later(now)
            return outcome
        if key[0] in _CLASSIC_TIMERS:
            return self.classic.rebalances.expire(key, now)
        return self.consumer.removal.expire(key, now)

    def _expire_offsets_later(self, now: Now) -> None:
        interval_ms = self.context.settings.offsets_retention_check_interval_ms
        if self.offsets.has_more_to_expire:
            interval_ms = min(interval_ms, _PAUSE_MS)
        self.context.timers.set(_OFFSETS_TIMER, now.tick_ms + interval_ms)

    def take_image(self, image: MetadataImage, *, changed: Set[str], deleted: Set[str]) -> Outcome:
        """Take a new image. `changed` are the created and altered topics, `deleted` the deleted ones."""
        self.context.image = image
        self.consumer.topics_changed(changed | deleted)
        # A topic that was deleted and recreated starts without offsets.
        return self.offsets.topics_deleted(deleted) if deleted else Outcome()

    def abandon(self, code: ErrorCode) -> Outcome:
        """The shard is closed: answer all pending requests, write nothing."""
        return self.classic.abandon(code)

    # Records

    def replay(self, batch: bytes) -> None:
        """Apply a batch of the log while loading. Malformed if it cannot be decoded."""
        for key_bytes, value_bytes in self.offsets.replay(batch):
            try:
                key = CONSUMER_OFFSETS.decode_key(key_bytes)
                value = (
                    None if value_bytes is None else CONSUMER_OFFSETS.decode_value(key, value_bytes).message
                )
            except UnknownRecord as unknown:
                # Written by a later release; it stays in the log for that release.
                logger.warning("record skipped error=%s", unknown)
                continue
            self._group_records.apply_stored(key, value)

    def loaded(self, now: Now) -> Outcome:
        """All batches have been replayed: start sessions and timers."""
        self.offsets.loaded()
        self._expire_offsets_later(now)
        outcome = self.classic.loaded(now)
        outcome.add(self.consumer.loaded(now))
        return outcome

    def durable(self) -> tuple[object, object]:
        """The state that the records describe, as a comparable value."""
        groups = {group_id: _durable(group) for group_id, group in self.context.groups.items()}
        stored = {group_id: state for group_id, state in groups.items() if state is not None}
        return stored, self.offsets.durable()


class _GroupRecords:
    """Applies the records of groups. Not a part of the shard, which would then be a reference cycle."""

    def __init__(self, context: ShardContext, classic: ClassicGroups, consumer: ConsumerGroups) -> None:
        self._context = context
        self._classic = classic
        self._consumer = consumer

    def apply(self, record: Record) -> None:
        # Checked here: compiled code does not recognize interpreted subclasses of StoredRecord.
        assert isinstance(record, StoredRecord), f"unexpected record: {record!r}"
        self.apply_stored(record.key, record.value)

    def apply_stored(self, key: object, value: object | None) -> None:
        if not isinstance(key, GroupMetadataKey):
            self._consumer.replay.apply(key, value)
            return
        assert value is None or isinstance(value, GroupMetadataValue)
        group = self._context.groups.get(key.group)
        if not isinstance(group, ClassicGroup) or not group.apply(value):
            self._classic.restore(key.group, value)


def _durable(group: Group) -> object:
    assert isinstance(group, ClassicGroup | ConsumerGroup)
    return group.durable()


def _not_of_kind(group_id: str, group: Group | None, kind: str) -> str:
    if group is None:
        return f"Group {group_id} not found."
    return f"Group {group_id} is not a {kind} group."


def groups_of(
    shards: Sequence[GroupShard], states: Iterable[str], kinds: Iterable[str]
) -> Iterator[ListedGroup | None]:
    """Yield the rows of ListGroups, and None for groups filtered out. Unknown kinds match nothing, as in
    Kafka."""
    wanted_states = frozenset(state.lower().strip() for state in states)
    wanted_kinds = frozenset(kind.lower() for kind in kinds)
    for shard in shards:
        yield from shard.list(wanted_states, wanted_kinds)
