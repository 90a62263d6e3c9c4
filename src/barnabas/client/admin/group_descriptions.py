"""Groups of consumers in detail: ConsumerGroupDescribe, and DescribeGroups for those that it does not know.

A coordinator is asked for all groups in the new way first, as Kafka's client does it: what a group is can be
told by nothing else, and a group may change from one protocol to the other at any time.
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
from barnabas.protocol.acl_operations import AclOperation, operations_of
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.consumer_groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from barnabas.protocol.messages.group_admin import DescribeGroupsRequest, DescribeGroupsResponse

# The protocol type of groups whose members are consumers, and of those that only commit.
CONSUMERS: Final = "consumer"
COMMITS_ONLY: Final = ""
_OPERATIONS_FROM: Final = 3
_CLASSIC_MEMBER, _TYPE_NOT_TOLD = 0, -1
# With these a group is asked for again, in the old way.
_NOT_IN_NEW_WAY: Final = (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION)


@value(kw_only=True)
class MemberDescription:
    """The last three are told of groups of the new protocol only."""

    id: str
    # Of a static member.
    instance_id: str | None
    rack: str | None
    client_id: str
    # With a slash before it, as brokers tell it.
    host: str
    # In order.
    assignment: tuple[TopicPartition, ...]
    # What it is to have as soon as others have let go.
    target: tuple[TopicPartition, ...] | None
    epoch: int | None
    # Whether it speaks the new protocol; None if an older broker does not tell.
    upgraded: bool | None


@value(kw_only=True)
class GroupDescription:
    """`epoch` and `assignment_epoch` are those of the new protocol, None for classic groups."""

    group: str
    type: GroupType
    state: GroupState
    protocol_type: str
    # Classic groups: the protocol that their members have agreed on.
    assignor: str
    coordinator: Node
    members: tuple[MemberDescription, ...]
    epoch: int | None
    assignment_epoch: int | None
    operations: frozenset[AclOperation] | None

    @property
    def is_of_consumers(self) -> bool:
        """Whether members are consumers, if there are any. Connect, for one, has groups of other kinds."""
        return self.protocol_type in (CONSUMERS, COMMITS_ONLY)


async def describe(
    call: Call, groups: Iterable[str], *, operations: bool
) -> dict[str, Outcome[GroupDescription]]:
    async def ask(node: Node, share: list[str]) -> Mapping[str, Outcome[GroupDescription]]:
        found = await _in_new_way(call, node, share, operations)
        rest = [group for group in share if _is_for_old_way(found.get(group))]
        if not rest:
            return found
        for group, outcome in (await _in_old_way(call, node, rest, operations)).items():
            found[group] = _clearer(found.get(group), outcome)
        return found

    return await ask_coordinators(call, "DESCRIBE_GROUPS", groups, ask)


def _is_for_old_way(outcome: Outcome[GroupDescription] | None) -> bool:
    return outcome is None or (isinstance(outcome, Refused) and outcome.code in _NOT_IN_NEW_WAY)


def _clearer(
    new: Outcome[GroupDescription] | None, old: Outcome[GroupDescription]
) -> Outcome[GroupDescription]:
    """What is known in neither way was refused in the new one with the better reason."""
    unknown = ErrorCode.GROUP_ID_NOT_FOUND
    if isinstance(old, Refused) and old.code is unknown and isinstance(new, Refused) and new.code is unknown:
        return new
    return old


# ConsumerGroupDescribe


async def _in_new_way(
    call: Call, node: Node, share: list[str], operations: bool
) -> dict[str, Outcome[GroupDescription]]:
    """Nothing from a broker that does not have it."""
    request = ConsumerGroupDescribeRequest(group_ids=share, include_authorized_operations=operations)
    try:
        answer: ConsumerGroupDescribeResponse = await call.ask(
            ApiKey.CONSUMER_GROUP_DESCRIBE, lambda _: request, node.id
        )
    except UnsupportedByBroker:
        return {}
    return {
        told.group_id: judged(
            told.error_code,
            _consumer_group(told, node),
            about=f"group {told.group_id}",
            message=told.error_message,
        )
        for told in answer.groups
    }


def _consumer_group(told: Any, node: Node) -> GroupDescription:
    return GroupDescription(
        group=told.group_id,
        type=GroupType.CONSUMER,
        state=state_of(told.group_state),
        protocol_type=CONSUMERS,
        assignor=told.assignor_name,
        coordinator=node,
        members=tuple(map(_consumer_member, told.members)),
        epoch=told.group_epoch,
        assignment_epoch=told.assignment_epoch,
        operations=operations_of(told.authorized_operations),
    )


def _consumer_member(told: Any) -> MemberDescription:
    kind = told.member_type
    return MemberDescription(
        id=told.member_id,
        instance_id=told.instance_id,
        rack=told.rack_id,
        client_id=told.client_id,
        host=told.client_host,
        assignment=_partitions(told.assignment),
        target=_partitions(told.target_assignment),
        epoch=told.member_epoch,
        upgraded=None if kind == _TYPE_NOT_TOLD else kind != _CLASSIC_MEMBER,
    )


def _partitions(told: Any) -> tuple[TopicPartition, ...]:
    return tuple(
        sorted(
            TopicPartition(topic.topic_name, partition)
            for topic in told.topic_partitions
            for partition in topic.partitions
        )
    )


# DescribeGroups


async def _in_old_way(
    call: Call, node: Node, share: list[str], operations: bool
) -> dict[str, Outcome[GroupDescription]]:
    def make(spoken: Spoken) -> object:
        if operations:
            spoken.needs(_OPERATIONS_FROM, "authorized operations of a group")
        return DescribeGroupsRequest(groups=share, include_authorized_operations=operations)

    answer: DescribeGroupsResponse = await call.ask(ApiKey.DESCRIBE_GROUPS, make, node.id)
    return {
        told.group_id: judged(
            told.error_code,
            _classic_group(told, node),
            about=f"group {told.group_id}",
            message=told.error_message,
        )
        for told in answer.groups
    }


def _classic_group(told: Any, node: Node) -> GroupDescription:
    return GroupDescription(
        group=told.group_id,
        type=GroupType.CLASSIC,
        state=state_of(told.group_state),
        protocol_type=told.protocol_type,
        assignor=told.protocol_data,
        coordinator=node,
        members=tuple(_classic_member(member, told.protocol_type) for member in told.members),
        epoch=None,
        assignment_epoch=None,
        operations=operations_of(told.authorized_operations),
    )


def _classic_member(told: Any, protocol_type: str) -> MemberDescription:
    # What members of other kinds assign to each other is in a language of theirs.
    readable = protocol_type in (CONSUMERS, COMMITS_ONLY) and told.member_assignment
    return MemberDescription(
        id=told.member_id,
        instance_id=told.group_instance_id,
        rack=None,
        client_id=told.client_id,
        host=told.client_host,
        assignment=_assigned(told.member_assignment) if readable else (),
        target=None,
        epoch=None,
        upgraded=None,
    )


def _assigned(data: bytes) -> tuple[TopicPartition, ...]:
    """Nothing if it cannot be read: whatever a leader sends is kept, and is no reason to hide the group."""
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
