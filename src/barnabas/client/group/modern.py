"""Membership in a group of the consumer protocol (KIP-848) as a state machine. Pure: no IO, no clock.

The broker computes the assignment and sends each member its target in heartbeat responses. A member revokes
partitions outside its target, takes new ones, and acknowledges that with the next heartbeat, which contains
only changes. session.py carries out `next_effect`.
"""

from enum import Enum, auto
from typing import Final

from barnabas.base.ids import TopicPartition, Uuid
from barnabas.client.group.effects import Assign, Effect, Fail, ResolveTopicIds, Revoke, Wait
from barnabas.client.group.errors import GroupFailed, group_failed
from barnabas.client.group.settings import GroupSettings
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseAssignment,
    ConsumerGroupHeartbeatTopicPartitions,
)

JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
# Leave epoch of a static member that may come back.
LEAVE_FOR_NOW_EPOCH: Final = -2
_TRANSIENT: Final = frozenset(
    (
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    )
)


class Phase(Enum):
    # Not known to the group: send a full heartbeat.
    JOINING = auto()
    MEMBER = auto()
    # Fenced, or left after max.poll.interval.ms: drop all partitions, then join.
    LOST = auto()
    FAILED = auto()


class ConsumerMembership:
    cooperative: Final = True
    # The broker computes the assignment, so there is no leader.
    is_leader: Final = False

    def __init__(self, settings: GroupSettings, group_id: str, rack: str | None, member_id: str) -> None:
        self._settings = settings
        self._group_id = group_id
        self._rack = rack
        self.member_id: Final = member_id
        self.phase = Phase.JOINING
        self.epoch = JOIN_EPOCH
        self.interval_ms = 0
        self.topics: frozenset[str] = frozenset()
        self.regex: str | None = None
        self.owned: frozenset[TopicPartition] = frozenset()
        self.losses = 0
        self._names: dict[Uuid, str] = {}
        self._ids: dict[str, Uuid] = {}
        self._target: frozenset[tuple[Uuid, int]] | None = None
        # The target is being applied; it is acknowledged as a whole.
        self._reconciling = False
        self._failure: GroupFailed | None = None
        self._heartbeat_due = True
        # The state last sent to the broker; None: unknown, send everything.
        self._last_sent: ConsumerGroupHeartbeatRequest | None = None

    # State

    @property
    def is_settled(self) -> bool:
        if self.phase is Phase.FAILED:
            return True
        return self.phase is Phase.MEMBER and not self._reconciling and self._target is not None

    @property
    def is_joining(self) -> bool:
        """Whether it waits for the broker."""
        return self.phase is Phase.JOINING

    @property
    def is_lost(self) -> bool:
        return self.phase in (Phase.LOST, Phase.FAILED)

    @property
    def identity(self) -> tuple[int, str]:
        return self.epoch, self.member_id

    @property
    def is_heartbeat_due(self) -> bool:
        """Whether a heartbeat should be sent without waiting for the interval."""
        return self._heartbeat_due and self.phase in (Phase.JOINING, Phase.MEMBER)

    @property
    def next_effect(self) -> Effect:
        match self.phase:
            case Phase.FAILED:
                assert self._failure is not None
                return Revoke(self.owned) if self.owned else Fail(self._failure)
            case Phase.LOST:
                return Revoke(self.owned)
            case Phase.JOINING:
                return Wait()
            case Phase.MEMBER:
                return self._reconcile()

    def _reconcile(self) -> Effect:
        if self._target is None or not self._reconciling:
            return Wait()
        wanted = frozenset(
            TopicPartition(self._names[topic_id], number)
            for topic_id, number in self._target
            if topic_id in self._names
        )
        gone, added = self.owned - wanted, wanted - self.owned
        unknown = frozenset(topic_id for topic_id, _ in self._target) - self._names.keys()
        if gone:
            return Revoke(gone)
        # A topic id without a known name (perhaps deleted) must not delay other topics.
        return ResolveTopicIds(unknown) if unknown and not added else Assign(wanted, added)

    # Events

    def subscribe(self, topics: frozenset[str], regex: str | None = None) -> None:
        if self._failure is not None:
            self._failure, self.phase = None, Phase.LOST
        if (topics, regex) != (self.topics, self.regex):
            self.topics, self.regex = topics, regex
            self._heartbeat_due = True

    def partitions_revoked(self, tps: frozenset[TopicPartition]) -> None:
        self.owned -= tps
        if self.phase is Phase.LOST and not self.owned:
            self.phase, self.epoch = Phase.JOINING, JOIN_EPOCH
            self._target, self._reconciling = None, False
            self._last_sent, self._heartbeat_due = None, True

    def partitions_assigned(self, tps: frozenset[TopicPartition]) -> None:
        if self.phase is Phase.MEMBER:
            self.owned = tps
            self._reconciling = self._owned_ids() != self._target
            self._heartbeat_due = True

    def topic_ids_resolved(self, names: dict[Uuid, str]) -> None:
        self._names |= names
        self._ids |= {name: topic_id for topic_id, name in names.items()}

    def request_heartbeat(self) -> None:
        self._heartbeat_due = True

    def heartbeat_failed(self) -> None:
        """A heartbeat failed: send a full one next."""
        self._last_sent = None

    def answered(self, sent: ConsumerGroupHeartbeatRequest, answer: ConsumerGroupHeartbeatResponse) -> bool:
        """Handle the response. Return True to back off before the next heartbeat."""
        if self.phase not in (Phase.JOINING, Phase.MEMBER) or sent.member_epoch < 0:
            return False
        code = ErrorCode.of(answer.error_code)
        if code is ErrorCode.NONE:
            self._accepted(answer)
            return False
        self._last_sent = None
        if code in _TRANSIENT:
            self._heartbeat_due = True
            return True
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH):
            self.left()
            return False
        self._failure = group_failed(code, group=self._group_id, message=answer.error_message)
        self.losses += 1
        self.phase = Phase.FAILED
        return False

    def _accepted(self, answer: ConsumerGroupHeartbeatResponse) -> None:
        self.phase, self.epoch = Phase.MEMBER, answer.member_epoch
        self.interval_ms = answer.heartbeat_interval_ms
        if answer.assignment is not None:
            self._target = _target_of(answer.assignment)
            self._reconciling = self._reconciling or self._owned_ids() != self._target

    def _owned_ids(self) -> frozenset[tuple[Uuid, int]]:
        return frozenset((self._ids[tp.topic], tp.partition) for tp in self.owned)

    def left(self) -> None:
        """The membership is lost: drop all partitions, call on_lost, then join again."""
        self.losses += 1
        self.phase = Phase.LOST

    # Requests

    def next_heartbeat(self) -> ConsumerGroupHeartbeatRequest:
        """Build the next heartbeat, without state that the broker already knows."""
        now = self._full_heartbeat()
        last, self._last_sent, self._heartbeat_due = self._last_sent, now, False
        if last is None:
            return now
        same = (
            now.subscribed_topic_names == last.subscribed_topic_names
            and now.subscribed_topic_regex == last.subscribed_topic_regex
        )
        return ConsumerGroupHeartbeatRequest(
            group_id=self._group_id,
            member_id=self.member_id,
            member_epoch=self.epoch,
            instance_id=self._settings.group_instance_id,
            rack_id=None,
            rebalance_timeout_ms=-1,
            subscribed_topic_names=None if same else now.subscribed_topic_names,
            # An empty regex withdraws the previous one.
            subscribed_topic_regex=None
            if same
            else self.regex or ("" if last.subscribed_topic_regex else None),
            server_assignor=None,
            topic_partitions=None if now.topic_partitions == last.topic_partitions else now.topic_partitions,
        )

    def _full_heartbeat(self) -> ConsumerGroupHeartbeatRequest:
        return ConsumerGroupHeartbeatRequest(
            group_id=self._group_id,
            member_id=self.member_id,
            member_epoch=self.epoch,
            instance_id=self._settings.group_instance_id,
            rack_id=self._rack,
            rebalance_timeout_ms=self._settings.max_poll_interval_ms,
            subscribed_topic_names=sorted(self.topics),
            subscribed_topic_regex=self.regex,
            server_assignor=self._settings.group_remote_assignor,
            topic_partitions=self._owned_by_id(),
        )

    def _owned_by_id(self) -> list[ConsumerGroupHeartbeatTopicPartitions]:
        grouped: dict[Uuid, list[int]] = {}
        for tp in sorted(self.owned):
            grouped.setdefault(self._ids[tp.topic], []).append(tp.partition)
        return [
            ConsumerGroupHeartbeatTopicPartitions(topic_id=topic_id, partitions=numbers)
            for topic_id, numbers in grouped.items()
        ]

    def leave(self, reason: str) -> ConsumerGroupHeartbeatRequest | None:
        """Build the leave heartbeat; None if it is not a member. This protocol has no reason field."""
        if self.phase is not Phase.MEMBER:
            return None
        is_static = self._settings.group_instance_id is not None
        return ConsumerGroupHeartbeatRequest(
            group_id=self._group_id,
            member_id=self.member_id,
            member_epoch=LEAVE_FOR_NOW_EPOCH if is_static else LEAVE_EPOCH,
            instance_id=self._settings.group_instance_id,
        )


def _target_of(assignment: ConsumerGroupHeartbeatResponseAssignment) -> frozenset[tuple[Uuid, int]]:
    return frozenset(
        (one.topic_id, number) for one in assignment.topic_partitions for number in one.partitions
    )
