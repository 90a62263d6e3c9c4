"""Membership in a classic group as a state machine. Pure: no IO, no clock.

The driver carries out `next_effect` and reports the result with a method below. Heartbeats are sent
independently whenever heartbeat() returns one, and heartbeat_answered() may change `next_effect`.

Eager members revoke all partitions before they join. Cooperative members keep theirs and revoke only what the
leader takes away, and then the group rebalances once more. (KIP-429)
"""

from enum import Enum, auto
from typing import Final

from barnabas.base.errors import Malformed
from barnabas.base.ids import TopicPartition
from barnabas.client.group.assignors import ASSIGNORS, Shares
from barnabas.client.group.effects import (
    Assign,
    ComputeAssignment,
    Effect,
    Fail,
    Revoke,
    SendJoin,
    SendSync,
    Wait,
)
from barnabas.client.group.errors import GroupFailed, group_failed
from barnabas.client.group.settings import GroupSettings
from barnabas.client.group.subscription import (
    NO_GENERATION,
    PROTOCOL_TYPE,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.classic_groups import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)

NO_MEMBER_ID: Final = ""


class Phase(Enum):
    # Revoke partitions where required, then join.
    PREPARING = auto()
    JOINING = auto()
    # Joined as the leader, which computes the assignment.
    COMPUTING = auto()
    SYNCING = auto()
    # The new assignment takes partitions from this cooperative member.
    REVOKING = auto()
    ASSIGNING = auto()
    STABLE = auto()
    FAILED = auto()


class ClassicMembership:
    def __init__(self, settings: GroupSettings, group_id: str, rack: str | None) -> None:
        self._settings = settings
        self._group_id = group_id
        self._rack = rack
        self._assignors = [ASSIGNORS[name] for name in settings.assignors]
        # All assignors must be cooperative: the group chooses one after all members have joined.
        self.cooperative: Final = all(each.cooperative for each in self._assignors)
        self.topics: frozenset[str] = frozenset()
        self.owned: frozenset[TopicPartition] = frozenset()
        self.member_id = NO_MEMBER_ID
        self.generation = NO_GENERATION
        # The reason sent with JoinGroup.
        self._reason: str | None = "first join"
        self._protocol: str | None = None
        self._shares: Shares = {}
        # The last assignment, even if revoked: sticky assignors use it.
        self._last_assignment: tuple[frozenset[TopicPartition], int] = (frozenset(), NO_GENERATION)
        self.phase = Phase.PREPARING
        self.is_leader = False
        # Number of times the membership was lost: work started before is invalid.
        self.losses = 0
        # The last valid generation and member id.
        self._last_identity = (NO_GENERATION, NO_MEMBER_ID)
        self._failure: GroupFailed | None = None
        # Topics of the last JoinGroup; the subscription may have changed while the broker waited.
        self._joined_for: frozenset[str] = frozenset()
        self._assigned: frozenset[TopicPartition] = frozenset()
        self._members: dict[str, Subscription] = {}

    # State

    @property
    def is_settled(self) -> bool:
        """Whether no rebalance is in progress."""
        return self.phase in (Phase.STABLE, Phase.FAILED)

    @property
    def is_joining(self) -> bool:
        """Whether it waits for the broker."""
        return self.phase in (Phase.JOINING, Phase.COMPUTING, Phase.SYNCING)

    @property
    def is_lost(self) -> bool:
        """Whether the owned partitions may belong to another member."""
        return self.generation == NO_GENERATION

    @property
    def identity(self) -> tuple[int, str]:
        """Generation and member id for commits.

        A lost member keeps its last ones, which brokers reject. Without them, a transaction could commit
        offsets of records that another member has processed in the meantime.
        """
        return self._last_identity if self.is_lost else (self.generation, self.member_id)

    @property
    def next_effect(self) -> Effect:
        match self.phase:
            case Phase.PREPARING:
                return Revoke(self._to_revoke())
            case Phase.JOINING:
                return SendJoin(self._join())
            case Phase.COMPUTING:
                assert self._protocol is not None
                return ComputeAssignment(self._protocol, self._members)
            case Phase.SYNCING:
                return SendSync(self._sync())
            case Phase.REVOKING:
                return Revoke(self.owned - self._assigned)
            case Phase.ASSIGNING:
                return Assign(self._assigned, self._assigned - self.owned)
            case Phase.STABLE:
                return Wait()
            case Phase.FAILED:
                assert self._failure is not None
                return Revoke(self.owned) if self.owned else Fail(self._failure)

    def _to_revoke(self) -> frozenset[TopicPartition]:
        if self.is_lost or not self.cooperative:
            return self.owned
        return frozenset(tp for tp in self.owned if tp.topic not in self.topics)

    # Events

    def subscribe(self, topics: frozenset[str]) -> None:
        if self._failure is not None:
            # The user subscribes again after a fatal error.
            self._failure, self.phase = None, Phase.PREPARING
            self._forget(keeps_id=False)
        self.follow(topics)

    def follow(self, topics: frozenset[str]) -> None:
        """The pattern now matches these topics."""
        if topics != self.topics:
            self.topics = topics
            self.rejoin("the subscription has changed")

    def rejoin(self, reason: str) -> None:
        """Join again, now or after the rebalance in progress."""
        self._reason = reason
        if self.phase is Phase.STABLE:
            self.phase = Phase.PREPARING

    def partitions_revoked(self, tps: frozenset[TopicPartition]) -> None:
        self.owned -= tps
        if self.phase is Phase.PREPARING:
            self.phase, self._joined_for = Phase.JOINING, self.topics
        elif self.phase is Phase.REVOKING:
            self.phase = Phase.ASSIGNING
            # The new owner gets the revoked partitions in the next rebalance.
            self._reason = "partitions were revoked"

    def partitions_assigned(self, tps: frozenset[TopicPartition]) -> None:
        if self.phase is Phase.ASSIGNING:
            self.owned = tps
            self._last_assignment = (self.owned, self.generation)
            self.phase = Phase.STABLE if self._reason is None else Phase.PREPARING

    def join_lost(self) -> None:
        """JoinGroup had no response: send the same request again."""

    def join_answered(self, answer: JoinGroupResponse) -> bool:
        """Handle the response. Return True to back off before the next step."""
        code = ErrorCode.of(answer.error_code)
        match code:
            case ErrorCode.NONE:
                return self._joined(answer)
            case ErrorCode.MEMBER_ID_REQUIRED:
                # The id keeps a retried first join from leaving a dead member behind. (KIP-394)
                self.member_id = answer.member_id
                return False
            case ErrorCode.UNKNOWN_MEMBER_ID | ErrorCode.ILLEGAL_GENERATION:
                self._start_over(keeps_id=code is ErrorCode.ILLEGAL_GENERATION)
                return False
            case ErrorCode.REBALANCE_IN_PROGRESS:
                return True
            case _:
                return self._wait_or_fail(code)

    def _joined(self, answer: JoinGroupResponse) -> bool:
        self.member_id, self.generation = answer.member_id, answer.generation_id
        self._protocol = answer.protocol_name
        self._reason = None if self._joined_for == self.topics else "the subscription has changed"
        self.is_leader = answer.leader == answer.member_id
        self._shares, self._members = {}, {}
        self.phase = Phase.SYNCING
        if self.is_leader and not answer.skip_assignment:
            if self._protocol not in ASSIGNORS:
                return self._fail(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
            try:
                self._members = {
                    each.member_id: decode_subscription(each.metadata, instance_id=each.group_instance_id)
                    for each in answer.members
                }
            except Malformed as error:
                return self._fail(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, str(error))
            self.phase = Phase.COMPUTING
        return False

    def assignment_computed(self, shares: Shares) -> None:
        if self.phase is Phase.COMPUTING:
            self._shares, self.phase = shares, Phase.SYNCING

    def sync_lost(self) -> None:
        """SyncGroup had no response: the generation may have ended, so join again."""
        if self.phase is Phase.SYNCING:
            self._prepare("SyncGroup response was lost")

    def sync_answered(self, answer: SyncGroupResponse) -> bool:
        """Handle the response. Return True to back off before the next step."""
        if self.phase is not Phase.SYNCING:
            # The membership changed in the meantime.
            return False
        code = ErrorCode.of(answer.error_code)
        match code:
            case ErrorCode.NONE:
                return self._synced(answer)
            case ErrorCode.REBALANCE_IN_PROGRESS:
                self._prepare("another rebalance started")
                return False
            case ErrorCode.UNKNOWN_MEMBER_ID | ErrorCode.ILLEGAL_GENERATION:
                self._start_over(keeps_id=code is ErrorCode.ILLEGAL_GENERATION)
                return False
            case _:
                if code.retriable:
                    self._prepare(f"SyncGroup failed: {code.name}")
                return self._wait_or_fail(code)

    def _synced(self, answer: SyncGroupResponse) -> bool:
        try:
            self._assigned = decode_assignment(answer.assignment)
        except Malformed as error:
            return self._fail(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, str(error))
        self.phase = Phase.REVOKING if self.owned - self._assigned else Phase.ASSIGNING
        return False

    def heartbeat_answered(self, generation: int, code: ErrorCode) -> None:
        """Handle the error code of a heartbeat of this generation."""
        if generation != self.generation:
            return
        match code:
            case ErrorCode.REBALANCE_IN_PROGRESS:
                self.rejoin(self._reason or "the group is rebalancing")
            case ErrorCode.UNKNOWN_MEMBER_ID | ErrorCode.ILLEGAL_GENERATION:
                self._start_over(keeps_id=code is ErrorCode.ILLEGAL_GENERATION)
            case _ if code is not ErrorCode.NONE:
                self._wait_or_fail(code)

    def left(self) -> None:
        """The member has left; it joins again when the reader polls again."""
        self._start_over(keeps_id=False)

    def _start_over(self, *, keeps_id: bool) -> None:
        self._forget(keeps_id=keeps_id)
        self._prepare("the membership was lost")

    def _forget(self, *, keeps_id: bool) -> None:
        self.losses += 1
        if not self.is_lost:
            self._last_identity = self.generation, self.member_id
        self.generation, self.is_leader = NO_GENERATION, False
        if not keeps_id:
            self.member_id = NO_MEMBER_ID

    def _prepare(self, reason: str) -> None:
        self.phase, self._reason = Phase.PREPARING, reason

    def _wait_or_fail(self, code: ErrorCode) -> bool:
        return True if code.retriable else self._fail(code)

    def _fail(self, code: ErrorCode, message: str | None = None) -> bool:
        self._failure = group_failed(code, group=self._group_id, message=message)
        self._forget(keeps_id=False)
        self.phase, self._reason = Phase.FAILED, None
        return False

    # Requests

    def _join(self) -> JoinGroupRequest:
        protocols = [
            JoinGroupRequestProtocol(
                name=each.name,
                metadata=encode_subscription(
                    Subscription(
                        topics=self.topics,
                        owned=self.owned,
                        generation=self.generation,
                        user_data=each.user_data(*self._last_assignment),
                        rack=self._rack,
                    )
                ),
            )
            for each in self._assignors
        ]
        return JoinGroupRequest(
            group_id=self._group_id,
            session_timeout_ms=self._settings.session_timeout_ms,
            rebalance_timeout_ms=self._settings.max_poll_interval_ms,
            member_id=self.member_id,
            group_instance_id=self._settings.group_instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=protocols,
            reason=self._reason,
        )

    def _sync(self) -> SyncGroupRequest:
        return SyncGroupRequest(
            group_id=self._group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self._settings.group_instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=self._protocol,
            assignments=[
                SyncGroupRequestAssignment(member_id=member, assignment=encode_assignment(share))
                for member, share in self._shares.items()
            ],
        )

    def heartbeat(self) -> HeartbeatRequest | None:
        """Return a heartbeat; None without a generation and while a join waits at the broker."""
        if self.is_lost or self.phase in (Phase.JOINING, Phase.FAILED):
            return None
        return HeartbeatRequest(
            group_id=self._group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self._settings.group_instance_id,
        )

    def leave(self, reason: str) -> LeaveGroupRequest | None:
        """Build LeaveGroup; None without a member id, and for static members, which may come back."""
        if self.member_id == NO_MEMBER_ID or self._settings.group_instance_id is not None:
            return None
        member = MemberIdentity(member_id=self.member_id, reason=reason)
        return LeaveGroupRequest(group_id=self._group_id, members=[member])
