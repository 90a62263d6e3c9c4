"""Groups told as stories: time stands still between two sentences, and what is written is applied at once.

Stage carries out what any part of a shard returns. Story has one classic group on it, and members that speak
to it as a client would.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Any

from barnabas.coordinators.decision.outcome import Caller, Now, Outcome, Record, ReplyTo
from barnabas.coordinators.decision.timers import TimerKey, Timers
from barnabas.coordinators.group.classic.group import ClassicGroup
from barnabas.coordinators.group.context import ShardContext
from barnabas.coordinators.group.settings import GroupSettings
from barnabas.coordinators.group.shard import GroupShard
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.classic_groups import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from barnabas.protocol.stored.consumer_protocol import ConsumerProtocolSubscription
from barnabas.protocol.stored.framing import CONSUMER_OFFSETS, encode_value

START_MS = 1_700_000_000_000
HOST = "/127.0.0.1"
GROUP = "g"
SESSION_MS = 10_000
REBALANCE_MS = 60_000


class Asked(ReplyTo):
    """Somebody who has asked. `answer` is None as long as it waits."""

    __slots__ = ("answer",)

    def __init__(self) -> None:
        self.answer: Any = None

    @property
    def waits(self) -> bool:
        return self.answer is None

    @property
    def error(self) -> ErrorCode:
        assert not self.waits, "there is no answer yet"
        return ErrorCode(self.answer.error_code)


class Stage:
    """Carries out Outcomes: records are kept and applied, then answers are given, and timers ring in time."""

    def __init__(
        self,
        timers: Timers,
        apply: Callable[[Record], None],
        expire: Callable[[TimerKey, Now], Outcome],
    ) -> None:
        self.records: list[Record] = []
        self._timers = timers
        self._apply = apply
        self._expire = expire
        self._tick_ms = 0
        self._clock_behind_ms = 0

    @property
    def now(self) -> Now:
        return Now(START_MS + self._tick_ms - self._clock_behind_ms, self._tick_ms)

    def ask(self, call: Callable[[ReplyTo, Now], Outcome]) -> Asked:
        asked = Asked()
        self.carry_out(call(asked, self.now))
        return asked

    def carry_out(self, outcome: Outcome) -> None:
        for record in outcome.records:
            self.records.append(record)
            self._apply(record)
        for to, answer in outcome.answers:
            assert isinstance(to, Asked)
            assert to.waits, f"a second answer: {answer}"
            to.answer = answer

    def set_clock_back(self, ms: int) -> None:
        self._clock_behind_ms += ms

    def pass_time(self, ms: int) -> None:
        """Whatever is due on the way happens at its time."""
        until_ms = self._tick_ms + ms
        while (next_ms := self._timers.next_ms()) is not None and next_ms <= until_ms:
            self._tick_ms = max(self._tick_ms, next_ms)
            for key in self._timers.due(self._tick_ms):
                self.carry_out(self._expire(key, self.now))
        self._tick_ms = until_ms


class Member:
    """A client: what it knows of itself, and its last join."""

    def __init__(self, client: str, instance_id: str | None = None) -> None:
        self.client = client
        self.instance_id = instance_id
        self.id = ""
        self.generation = -1
        self.join = Asked()

    @property
    def joined(self) -> JoinGroupResponse:
        answer = self.join.answer
        assert isinstance(answer, JoinGroupResponse), "it still waits"
        return answer

    @property
    def waits(self) -> bool:
        return self.join.waits


def subscription(*topics: str, version: int = 0) -> bytes:
    """What a consumer says that it reads."""
    return encode_value(ConsumerProtocolSubscription(topics=list(topics)), version)


RANGE = (("range", subscription("orders")),)


class Story:
    """One classic group and whoever speaks to it."""

    def __init__(self, settings: GroupSettings | None = None, *, group_id: str = GROUP) -> None:
        self.settings = settings or GroupSettings()
        self.context = ShardContext(self.settings, Random(7))
        self.shard = GroupShard(self.context)
        self.classic = self.shard.classic
        self.stage = Stage(self.context.timers, self.shard.apply, self.shard.expire)
        self.group_id = group_id

    @classmethod
    def beside(cls, other: "Story", group_id: str) -> "Story":
        """Another group of the same shard."""
        beside = cls(other.settings, group_id=group_id)
        beside.context, beside.stage = other.context, other.stage
        beside.shard, beside.classic = other.shard, other.classic
        return beside

    # What there is

    @property
    def group(self) -> ClassicGroup:
        group = self.context.groups[self.group_id]
        assert isinstance(group, ClassicGroup)
        return group

    @property
    def state(self) -> str:
        return self.group.state

    @property
    def values(self) -> list[Any]:
        """What the records say, as it is read from the log."""
        return [value for _, value in decoded(self.stage.records)]

    def replayed(self) -> "Story":
        """The group after a crash: nothing but what was written. Its sessions have begun."""
        after = Story(self.settings, group_id=self.group_id)
        for key, value in decoded(self.stage.records):
            after.classic.restore(key.group, value)
        after.stage.records += self.stage.records
        after.stage.carry_out(after.classic.loaded(after.stage.now))
        return after

    # What members do

    def asks_to_join(
        self,
        member: Member,
        *,
        version: int = 9,
        protocols: Sequence[tuple[str, bytes]] = RANGE,
        protocol_type: str = "consumer",
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
    ) -> Asked:
        """One JoinGroup, whatever comes of it."""
        request = JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            member_id=member.id,
            group_instance_id=member.instance_id,
            protocol_type=protocol_type,
            protocols=[JoinGroupRequestProtocol(name=name, metadata=data) for name, data in protocols],
        )
        caller = Caller(member.client, HOST, version)
        return self.stage.ask(lambda to, now: self.classic.joins.join(request, caller, to, now))

    def joins(self, member: str | Member, **how: Any) -> Member:
        """It comes back with the id that it is given, if that is asked of it."""
        joining = Member(member) if isinstance(member, str) else member
        joining.join = self.asks_to_join(joining, **how)
        if not joining.waits and joining.join.error is ErrorCode.MEMBER_ID_REQUIRED:
            joining.id = joining.joined.member_id
            joining.join = self.asks_to_join(joining, **how)
        return joining

    def learns(self, *members: Member) -> None:
        """Each takes over what its join was answered with."""
        for member in members:
            assert member.joined.error_code == 0, member.joined
            member.id = member.joined.member_id
            member.generation = member.joined.generation_id

    def syncs(
        self, member: Member, assignments: Mapping[str, bytes] | None = None, *, version: int = 5, **odd: Any
    ) -> Asked:
        """A leader names member ids and what each gets."""
        said: dict[str, Any] = {
            "generation_id": member.generation,
            "protocol_type": "consumer",
            "protocol_name": self.group.protocol if self.group_id in self.context.groups else None,
            **odd,
        }
        request = SyncGroupRequest(
            group_id=self.group_id,
            member_id=member.id,
            group_instance_id=member.instance_id,
            assignments=[
                SyncGroupRequestAssignment(member_id=one, assignment=part)
                for one, part in (assignments or {}).items()
            ],
            **said,
        )
        caller = Caller(member.client, HOST, version)
        return self.stage.ask(lambda to, now: self.classic.sync(request, caller, to, now))

    def beats(self, member: Member, *, generation: int | None = None) -> ErrorCode:
        request = HeartbeatRequest(
            group_id=self.group_id,
            generation_id=member.generation if generation is None else generation,
            member_id=member.id,
            group_instance_id=member.instance_id,
        )
        caller = Caller(member.client, HOST, 4)
        asked = self.stage.ask(lambda to, now: self.classic.heartbeat(request, caller, to, now))
        assert isinstance(asked.answer, HeartbeatResponse)
        return asked.error

    def leaves(self, *members: Member | MemberIdentity, version: int = 5) -> LeaveGroupResponse:
        request = LeaveGroupRequest(group_id=self.group_id)
        identities = [
            MemberIdentity(member_id=one.id, group_instance_id=one.instance_id)
            if isinstance(one, Member)
            else one
            for one in members
        ]
        if version < 3:
            request.member_id = identities[0].member_id
        else:
            request.members = identities
        caller = Caller("admin", HOST, version)
        asked = self.stage.ask(lambda to, now: self.classic.leave(request, caller, to, now))
        assert isinstance(asked.answer, LeaveGroupResponse)
        return asked.answer

    def waits(self, ms: int, *beating: Member) -> None:
        """Time passes; those who are named send heartbeats all the while."""
        for _ in range(ms // 1_000):
            self.stage.pass_time(1_000)
            for member in beating:
                self.beats(member)
        self.stage.pass_time(ms % 1_000)

    # Whole rounds

    def opens(self, *members: Member) -> None:
        """The first wait is over, and all of them are in the generation."""
        self.stage.pass_time(self.settings.initial_rebalance_delay_ms)
        self.stage.pass_time(self.settings.initial_rebalance_delay_ms)
        self.learns(*members)

    def settles(self, *members: Member) -> None:
        """The leader assigns each member its own client id, and all fetch it."""
        by_id = {member.id: member for member in members}
        leader = by_id[self.group.leader or ""]
        parts = {member.id: member.client.encode() for member in members}
        followers = [member for member in members if member is not leader]
        for member in (leader, *followers):
            asked = self.syncs(member, parts if member is leader else None)
            assert asked.error is ErrorCode.NONE
            assert isinstance(asked.answer, SyncGroupResponse)
            assert asked.answer.assignment == member.client.encode()

    def is_stable_with(self, *members: str | Member, **how: Any) -> list[Member]:
        joined = [self.joins(member, **how) for member in members]
        self.opens(*joined)
        self.settles(*joined)
        assert self.state == "Stable"
        return joined


def decoded(records: Iterable[Record]) -> list[tuple[Any, Any]]:
    """Keys and values as they are read from the log; None is a tombstone."""
    found = []
    for record in records:
        key_bytes, value_bytes = record.encoded()
        key = CONSUMER_OFFSETS.decode_key(key_bytes)
        value = None if value_bytes is None else CONSUMER_OFFSETS.decode_value(key, value_bytes).message
        found.append((key, value))
    return found
