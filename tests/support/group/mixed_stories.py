"""Members that speak the classic protocol, in front of a whole shard: groups of them, and mixed ones."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from barnabas.coordinators.decision.outcome import Caller
from barnabas.coordinators.group.classic.group import ClassicGroup
from barnabas.coordinators.group.settings import GroupSettings
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.classic_groups import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from barnabas.protocol.stored.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
    ConsumerProtocolSubscriptionTopicPartition,
)
from barnabas.protocol.stored.framing import decode_versioned, encode_value
from support.group.consumer_stories import AT_ONCE, ConsumerStory
from support.group.stories import HOST, Asked

CLASSIC_SESSION_MS = 10_000
CLASSIC_REBALANCE_MS = 30_000
NO_DELAY = replace(AT_ONCE, initial_rebalance_delay_ms=0)
Parts = Mapping[str, list[int]]


class Classic:
    """A client of the classic protocol with a cooperative assignor: it says what it has when it joins."""

    def __init__(
        self,
        member_id: str = "",
        *,
        topics: tuple[str, ...] = ("orders",),
        instance_id: str | None = None,
        protocol: str = "range",
    ) -> None:
        self.id = member_id
        self.topics = topics
        self.instance_id = instance_id
        self.protocol = protocol
        self.generation = -1
        self.owned: dict[str, list[int]] = {}

    def partitions(self, topic: str = "orders") -> set[int]:
        return set(self.owned.get(topic, ()))

    def metadata(self) -> bytes:
        owned = [
            ConsumerProtocolSubscriptionTopicPartition(topic=topic, partitions=partitions)
            for topic, partitions in self.owned.items()
        ]
        said = ConsumerProtocolSubscription(topics=list(self.topics), user_data=None, owned_partitions=owned)
        return encode_value(said, 1)


def assignment(parts: Parts, *, user_data: bytes | None = None) -> bytes:
    given = [
        ConsumerProtocolAssignmentTopicPartition(topic=topic, partitions=list(partitions))
        for topic, partitions in parts.items()
    ]
    return encode_value(ConsumerProtocolAssignment(assigned_partitions=given, user_data=user_data), 1)


class MixedStory(ConsumerStory):
    """A group whose members may speak either protocol."""

    def __init__(
        self,
        settings: GroupSettings = NO_DELAY,
        *,
        topics: Mapping[str, int] | None = None,
        batch_bytes_max: int = 1 << 20,
    ) -> None:
        super().__init__(settings, topics=topics, batch_bytes_max=batch_bytes_max)

    @property
    def classic_group(self) -> ClassicGroup:
        group = self.context.groups[self.group_id]
        assert isinstance(group, ClassicGroup)
        return group

    def asks_to_join_classically(self, member: Classic, *, version: int = 9, **said: Any) -> Asked:
        request = JoinGroupRequest(
            **{
                "group_id": self.group_id,
                "session_timeout_ms": CLASSIC_SESSION_MS,
                "rebalance_timeout_ms": CLASSIC_REBALANCE_MS,
                "member_id": member.id,
                "group_instance_id": member.instance_id,
                "protocol_type": "consumer",
                "protocols": [JoinGroupRequestProtocol(name=member.protocol, metadata=member.metadata())],
                **said,
            }
        )
        caller = Caller("client", HOST, version)
        return self.stage.ask(lambda to, now: self.shard.join(request, caller, to, now))

    def joins_classically(self, member: Classic) -> Classic:
        """Into a group that answers at once."""
        answer = self.asks_to_join_classically(member)
        if answer.error is ErrorCode.MEMBER_ID_REQUIRED:
            member.id = answer.answer.member_id
            answer = self.asks_to_join_classically(member)
        assert answer.error is ErrorCode.NONE, answer.answer
        member.id, member.generation = answer.answer.member_id, answer.answer.generation_id
        return member

    def asks_to_sync(self, member: Classic, parts: Mapping[str, bytes] | None = None, **said: Any) -> Asked:
        request = SyncGroupRequest(
            **{
                "group_id": self.group_id,
                "generation_id": member.generation,
                "member_id": member.id,
                "group_instance_id": member.instance_id,
                "protocol_type": "consumer",
                "protocol_name": member.protocol,
                "assignments": [
                    SyncGroupRequestAssignment(member_id=one, assignment=part)
                    for one, part in (parts or {}).items()
                ],
                **said,
            }
        )
        caller = Caller("client", HOST, 5)
        return self.stage.ask(lambda to, now: self.shard.sync(request, caller, to, now))

    def syncs(self, member: Classic, parts: Mapping[str, bytes] | None = None) -> Classic:
        answer = self.asks_to_sync(member, parts)
        assert answer.error is ErrorCode.NONE, answer.answer
        read, _ = decode_versioned(ConsumerProtocolAssignment, answer.answer.assignment)
        member.owned = {given.topic: list(given.partitions) for given in read.assigned_partitions}
        return member

    def syncs_as_leader(self, member: Classic) -> None:
        """The only member of a classic group takes everything."""
        member.generation = self.classic_group.generation
        everything = assignment({topic: list(range(count)) for topic, count in self.topics.items()})
        self.syncs(member, {member.id: everything})

    def beats_classically(self, member: Classic, **said: Any) -> ErrorCode:
        request = HeartbeatRequest(
            **{
                "group_id": self.group_id,
                "generation_id": member.generation,
                "member_id": member.id,
                "group_instance_id": member.instance_id,
                **said,
            }
        )
        caller = Caller("client", HOST, 4)
        return self.stage.ask(lambda to, now: self.shard.heartbeat(request, caller, to, now)).error

    def follows(self, *members: Classic) -> None:
        """Each asks whether there is something new, and if so joins and fetches it."""
        for member in members:
            if self.beats_classically(member) is ErrorCode.REBALANCE_IN_PROGRESS:
                self.syncs(self.joins_classically(member))

    def leaves_classically(self, *identities: MemberIdentity, version: int = 5) -> Any:
        request = LeaveGroupRequest(group_id=self.group_id, members=list(identities))
        if version < 3:
            request = LeaveGroupRequest(group_id=self.group_id, member_id=identities[0].member_id)
        caller = Caller("client", HOST, version)
        return self.stage.ask(lambda to, now: self.shard.leave(request, caller, to, now)).answer

    def is_classic_with(self, *members: Classic, parts: list[Parts]) -> None:
        """A stable classic group in which each has what it is given here."""
        joins = []
        for member in members:
            if member.instance_id is None:
                member.id = self.asks_to_join_classically(member).answer.member_id
            joins.append(self.asks_to_join_classically(member))
        self.stage.pass_time(self.settings.initial_rebalance_delay_ms)
        for member, asked in zip(members, joins, strict=True):
            member.id, member.generation = asked.answer.member_id, asked.answer.generation_id
        leader = next(one for one in members if one.id == self.classic_group.leader)
        given = {one.id: assignment(part) for one, part in zip(members, parts, strict=True)}
        for member in (leader, *(one for one in members if one is not leader)):
            self.syncs(member, given if member is leader else None)
        assert self.classic_group.state == "Stable"
