"""What is asked about groups: the requests, and members who remember what they were told."""

from collections.abc import Iterable, Mapping
from typing import Any

from barnabas.protocol.messages.classic_groups import (
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from barnabas.protocol.messages.consumer_groups import ConsumerGroupDescribeRequest
from barnabas.protocol.messages.group_admin import DescribeGroupsRequest
from barnabas.protocol.stored.consumer_protocol import (
    ConsumerProtocolSubscription,
    ConsumerProtocolSubscriptionTopicPartition,
)
from barnabas.protocol.stored.framing import encode_value
from differential.broker.offset_requests import fetch_offsets
from differential.broker.talk import Talk

# So that a group of one comes together at once.
AT_ONCE = {"group.initial.rebalance.delay.ms": 0}
SESSION_MS = 30_000
REBALANCE_MS = 60_000
CONSUMER = "consumer"

_MEMBERS_LEAVE_FROM = 3
_NAMED_PROTOCOL_FROM = 5


def subscription(
    *topics: str,
    owned: Mapping[str, Iterable[int]] | None = None,
    user_data: bytes | None = None,
    version: int = 1,
) -> bytes:
    """What a consumer sends with a protocol. Kafka never answers a join with bytes that are none."""
    told = [
        ConsumerProtocolSubscriptionTopicPartition(topic=topic, partitions=list(indexes))
        for topic, indexes in (owned or {}).items()
    ]
    said = ConsumerProtocolSubscription(topics=list(topics), user_data=user_data, owned_partitions=told)
    return encode_value(said, version)


RANGE: Mapping[str, bytes] = {"range": subscription("topics")}


def ready(talk: Talk, group: str = "any") -> None:
    """Wait until groups are coordinated here: the first question makes their topic."""
    asked = FindCoordinatorRequest(coordinator_keys=[group])
    talk.until(asked, 4, lambda answer: answer.coordinators[0].error_code == 0)
    talk.until(fetch_offsets(group), 8, lambda answer: answer.groups[0].error_code == 0)


# Classic members


def join(
    group: str,
    member_id: str = "",
    *,
    protocols: Mapping[str, bytes] = RANGE,
    protocol_type: str = CONSUMER,
    instance_id: str | None = None,
    session_ms: int = SESSION_MS,
    rebalance_ms: int = REBALANCE_MS,
    reason: str | None = None,
) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=rebalance_ms,
        member_id=member_id,
        group_instance_id=instance_id,
        protocol_type=protocol_type,
        protocols=[JoinGroupRequestProtocol(name=name, metadata=data) for name, data in protocols.items()],
        reason=reason,
    )


def sync(
    group: str,
    member_id: str,
    generation: int,
    assignments: Mapping[str, bytes] | None = None,
    *,
    instance_id: str | None = None,
    protocol_type: str | None = CONSUMER,
    protocol: str | None = "range",
) -> SyncGroupRequest:
    rows = [
        SyncGroupRequestAssignment(member_id=one, assignment=what)
        for one, what in (assignments or {}).items()
    ]
    return SyncGroupRequest(
        group_id=group,
        generation_id=generation,
        member_id=member_id,
        group_instance_id=instance_id,
        protocol_type=protocol_type,
        protocol_name=protocol,
        assignments=rows,
    )


def beat(group: str, member_id: str, generation: int, instance_id: str | None = None) -> HeartbeatRequest:
    return HeartbeatRequest(
        group_id=group, generation_id=generation, member_id=member_id, group_instance_id=instance_id
    )


def leave(group: str, *members: tuple[str, str | None]) -> LeaveGroupRequest:
    """From version 3 on: several, by id or by instance id."""
    identities = [
        MemberIdentity(member_id=member_id, group_instance_id=instance_id)
        for member_id, instance_id in members
    ]
    return LeaveGroupRequest(group_id=group, members=identities)


def leave_alone(group: str, member_id: str, version: int) -> LeaveGroupRequest:
    """One, in any version."""
    if version >= _MEMBERS_LEAVE_FROM:
        return leave(group, (member_id, None))
    return LeaveGroupRequest(group_id=group, member_id=member_id)


def describe(*groups: str, operations: bool = False) -> DescribeGroupsRequest:
    return DescribeGroupsRequest(groups=list(groups), include_authorized_operations=operations)


def describe_consumer(*groups: str, operations: bool = False) -> ConsumerGroupDescribeRequest:
    return ConsumerGroupDescribeRequest(group_ids=list(groups), include_authorized_operations=operations)


class Member:
    """Of a classic group: it keeps to one version of JoinGroup, and to those of its time of the others."""

    def __init__(
        self,
        talk: Talk,
        group: str,
        version: int = 9,
        *,
        instance_id: str | None = None,
        protocols: Mapping[str, bytes] = RANGE,
    ) -> None:
        self.talk = talk
        self.group = group
        self.version = version
        self.instance_id = instance_id
        self.protocols = protocols
        self.id = ""
        self.generation = -1
        self.protocol: str | None = None

    def join_request(self) -> JoinGroupRequest:
        return join(self.group, self.id, protocols=self.protocols, instance_id=self.instance_id)

    def take_id(self, step: str) -> None:
        """Ask for an id, where that is how it goes: dynamic members, from version 4 on."""
        if self.version >= 4 and self.instance_id is None and not self.id:
            self.id = self.talk.ask(f"{step}: an id", self.join_request(), self.version).member_id

    def join(self, step: str) -> Any:
        self.take_id(step)
        return self.joined(self.talk.ask(step, self.join_request(), self.version))

    def joined(self, answer: Any) -> Any:
        """Remember what it says."""
        self.id, self.generation = answer.member_id, answer.generation_id
        self.protocol = answer.protocol_name
        return answer

    def sync_request(self, assignments: Mapping[str, bytes] | None = None) -> SyncGroupRequest:
        named = min(self.version, 5) >= _NAMED_PROTOCOL_FROM
        return sync(
            self.group,
            self.id,
            self.generation,
            assignments,
            instance_id=self.instance_id,
            protocol_type=CONSUMER if named else None,
            protocol=(self.protocol or None) if named else None,
        )

    @property
    def sync_version(self) -> int:
        return min(self.version, 5)

    def sync(self, step: str, assignments: Mapping[str, bytes] | None = None) -> Any:
        return self.talk.ask(step, self.sync_request(assignments), self.sync_version)

    def beat_request(self) -> HeartbeatRequest:
        return beat(self.group, self.id, self.generation, self.instance_id)

    def beat(self, step: str) -> Any:
        return self.talk.ask(step, self.beat_request(), min(self.version, 4))

    def hears(self, code: int) -> None:
        """Wait until its heartbeats are answered so."""
        self.talk.until(self.beat_request(), min(self.version, 4), lambda answer: answer.error_code == code)

    def leave(self, step: str) -> Any:
        version = min(self.version, 5)
        return self.talk.ask(step, leave_alone(self.group, self.id, version), version)


def alone(talk: Talk, step: str, group: str, version: int = 9, **fields: Any) -> Member:
    """A group of one, stable."""
    member = Member(talk, group, version, **fields)
    member.join(f"{step}: joins")
    member.sync(f"{step}: syncs", {member.id: b"everything"})
    return member
