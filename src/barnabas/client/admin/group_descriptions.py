"""Group descriptions: ConsumerGroupDescribe, then DescribeGroups for groups that it does not know.

As in Kafka's client, all groups are requested with the new API first: only that tells the type of a group,
and a group may change its protocol at any time.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from barnabas.base.errors import Malformed
from barnabas.base.ids import TopicPartition
from barnabas.base.values import value
from barnabas.client.admin.call import Call, Outcome, Spoken, judged
from barnabas.client.admin.coordinators import ask_coordinators
from barnabas.client.admin.groups import GroupState, GroupType, state_of
from barnabas.client.errors import Refused, UnsupportedByBroker
from barnabas.client.metadata import Node
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.acls import AclOperation, operations_of
from barnabas.protocol.messages.consumer_groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from barnabas.protocol.messages.group_admin import DescribeGroupsRequest, DescribeGroupsResponse

# Protocol types of groups of consumers, and of groups without members that only commit.
CONSUMERS: Final = "consumer"
COMMITS_ONLY: Final = ""
_OPERATIONS_FROM: Final = 3
_CLASSIC_MEMBER, _TYPE_UNKNOWN = 0, -1
# With these codes DescribeGroups is tried.
_TRY_DESCRIBE_GROUPS: Final = (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION)


@value(kw_only=True)
class MemberDescription:
    """The last three fields are only set for groups of the consumer protocol."""

    id: str
    # Only for static members.
    instance_id: str | None
    rack: str | None
    client_id: str
    # With a leading slash, as brokers return it.
    host: str
    # Sorted.
    assignment: tuple[TopicPartition, ...]
    # The target assignment, reached once other members have revoked.
    target: tuple[TopicPartition, ...] | None
    epoch: int | None
    # Whether it uses the consumer protocol; None if the broker does not return it.
    upgraded: bool | None


@value(kw_only=True)
class GroupDescription:
    """`epoch` and `assignment_epoch` belong to the consumer protocol, None for classic groups."""

    group: str
    type: GroupType
    state: GroupState
    protocol_type: str
    # For classic groups, the protocol that the members agreed on.
    assignor: str
    coordinator: Node
    members: tuple[MemberDescription, ...]
    epoch: int | None
    assignment_epoch: int | None
    operations: frozenset[AclOperation] | None

    @property
    def is_of_consumers(self) -> bool:
        """Whether its members, if any, are consumers. Connect, for example, has groups of another type."""
        return self.protocol_type in (CONSUMERS, COMMITS_ONLY)


async def describe(
    call: Call, groups: Iterable[str], *, operations: bool
) -> dict[str, Outcome[GroupDescription]]:
    async def ask(node: Node, share: list[str]) -> Mapping[str, Outcome[GroupDescription]]:
        found = await _with_consumer_describe(call, node, share, operations)
        rest = [group for group in share if _needs_describe_groups(found.get(group))]
        if not rest:
            return found
        for group, outcome in (await _with_describe_groups(call, node, rest, operations)).items():
            found[group] = _better_error(found.get(group), outcome)
        return found

    return await ask_coordinators(call, "DESCRIBE_GROUPS", groups, ask)


def _needs_describe_groups(outcome: Outcome[GroupDescription] | None) -> bool:
    return outcome is None or (isinstance(outcome, Refused) and outcome.code in _TRY_DESCRIBE_GROUPS)


def _better_error(
    new: Outcome[GroupDescription] | None, old: Outcome[GroupDescription]
) -> Outcome[GroupDescription]:
    """If neither API knows the group, prefer the error of the new one: its message is better."""
    unknown = ErrorCode.GROUP_ID_NOT_FOUND
    if isinstance(old, Refused) and old.code is unknown and isinstance(new, Refused) and new.code is unknown:
        return new
    return old


# ConsumerGroupDescribe


async def _with_consumer_describe(
    call: Call, node: Node, share: list[str], operations: bool
) -> dict[str, Outcome[GroupDescription]]:
    """Describe with ConsumerGroupDescribe; {} if the broker does not support it."""
    request = ConsumerGroupDescribeRequest(group_ids=share, include_authorized_operations=operations)
    try:
        answer: ConsumerGroupDescribeResponse = await call.ask(
            ApiKey.CONSUMER_GROUP_DESCRIBE, lambda _: request, node.id
        )
    except UnsupportedByBroker:
        return {}
    return {
        entry.group_id: judged(
            entry.error_code,
            _consumer_group(entry, node),
            about=f"group {entry.group_id}",
            message=entry.error_message,
        )
        for entry in answer.groups
    }


def _consumer_group(entry: Any, node: Node) -> GroupDescription:
    return GroupDescription(
        group=entry.group_id,
        type=GroupType.CONSUMER,
        state=state_of(entry.group_state),
        protocol_type=CONSUMERS,
        assignor=entry.assignor_name,
        coordinator=node,
        members=tuple(map(_consumer_member, entry.members)),
        epoch=entry.group_epoch,
        assignment_epoch=entry.assignment_epoch,
        operations=operations_of(entry.authorized_operations),
    )


def _consumer_member(entry: Any) -> MemberDescription:
    kind = entry.member_type
    return MemberDescription(
        id=entry.member_id,
        instance_id=entry.instance_id,
        rack=entry.rack_id,
        client_id=entry.client_id,
        host=entry.client_host,
        assignment=_partitions(entry.assignment),
        target=_partitions(entry.target_assignment),
        epoch=entry.member_epoch,
        upgraded=None if kind == _TYPE_UNKNOWN else kind != _CLASSIC_MEMBER,
    )


def _partitions(entry: Any) -> tuple[TopicPartition, ...]:
    return tuple(
        sorted(
            TopicPartition(topic.topic_name, partition)
            for topic in entry.topic_partitions
            for partition in topic.partitions
        )
    )


# DescribeGroups


async def _with_describe_groups(
    call: Call, node: Node, share: list[str], operations: bool
) -> dict[str, Outcome[GroupDescription]]:
    def make(spoken: Spoken) -> object:
        if operations:
            spoken.needs(_OPERATIONS_FROM, "authorized operations of a group")
        return DescribeGroupsRequest(groups=share, include_authorized_operations=operations)

    answer: DescribeGroupsResponse = await call.ask(ApiKey.DESCRIBE_GROUPS, make, node.id)
    return {
        entry.group_id: judged(
            entry.error_code,
            _classic_group(entry, node),
            about=f"group {entry.group_id}",
            message=entry.error_message,
        )
        for entry in answer.groups
    }


def _classic_group(entry: Any, node: Node) -> GroupDescription:
    return GroupDescription(
        group=entry.group_id,
        type=GroupType.CLASSIC,
        state=state_of(entry.group_state),
        protocol_type=entry.protocol_type,
        assignor=entry.protocol_data,
        coordinator=node,
        members=tuple(_classic_member(member, entry.protocol_type) for member in entry.members),
        epoch=None,
        assignment_epoch=None,
        operations=operations_of(entry.authorized_operations),
    )


def _classic_member(entry: Any, protocol_type: str) -> MemberDescription:
    # Assignments of other protocol types have formats of their own.
    readable = protocol_type in (CONSUMERS, COMMITS_ONLY) and entry.member_assignment
    return MemberDescription(
        id=entry.member_id,
        instance_id=entry.group_instance_id,
        rack=None,
        client_id=entry.client_id,
        host=entry.client_host,
        assignment=_assigned(entry.member_assignment) if readable else (),
        target=None,
        epoch=None,
        upgraded=None,
    )


def _assigned(data: bytes) -> tuple[TopicPartition, ...]:
    """Decode an assignment; () if malformed, because brokers store anything that a leader sends."""
    from barnabas.protocol.stored.consumer_protocol import ConsumerProtocolAssignment
    from barnabas.protocol.stored.framing import decode_versioned

    try:
        assignment, _ = decode_versioned(ConsumerProtocolAssignment, data, newer_as_last=True)
    except Malformed:
        return ()
    return tuple(
        sorted(
            TopicPartition(topic.topic, partition)
            for topic in assignment.assigned_partitions
            for partition in topic.partitions
        )
    )
