"""Groups and their members: ListGroups at every broker, the other requests at the coordinators.

As in Kafka's client, a group is described with ConsumerGroupDescribe first, then with DescribeGroups if that
does not know it: only the former tells the type of a group, and a group may change its protocol at any time.
Committed offsets are in group_offsets.py.
"""

from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from typing import Any, Final, NamedTuple

from barnabas.base.errors import Malformed
from barnabas.base.ids import TopicPartition
from barnabas.base.values import value
from barnabas.client.admin.call import Call, NegotiatedApi, Outcome, all_of, check, outcome_of
from barnabas.client.admin.coordinators import ask_coordinators, coordinator_of
from barnabas.client.errors import Refused, UnsupportedByBroker
from barnabas.client.metadata import Node
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.acls import AclOperation, operations_of
from barnabas.protocol.messages.classic_groups import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from barnabas.protocol.messages.consumer_groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from barnabas.protocol.messages.group_admin import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListGroupsRequest,
    ListGroupsResponse,
)

# List


_STATES_FROM, _TYPES_FROM = 4, 5


class GroupState(StrEnum):
    """Group states as in responses. UNKNOWN: not returned, or only known to newer brokers."""

    UNKNOWN = "Unknown"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"
    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    NOT_READY = "NotReady"


class GroupType(StrEnum):
    """The protocol between members and coordinator."""

    UNKNOWN = "Unknown"
    CLASSIC = "Classic"
    CONSUMER = "Consumer"
    SHARE = "Share"
    STREAMS = "Streams"


_STATES: Final = {state.lower(): state for state in GroupState}
_TYPES: Final = {kind.lower(): kind for kind in GroupType}


def state_of(text: str) -> GroupState:
    """Parse a state, ignoring case."""
    return _STATES.get(text.lower(), GroupState.UNKNOWN)


def type_of(text: str) -> GroupType:
    return _TYPES.get(text.lower(), GroupType.UNKNOWN)


@value(kw_only=True)
class GroupListing:
    """`protocol_type` is "consumer" for groups of consumers, and empty for groups that only commit."""

    group: str
    type: GroupType
    state: GroupState
    protocol_type: str


async def list_groups(
    call: Call, *, states: Collection[GroupState], types: Collection[GroupType]
) -> dict[str, GroupListing]:
    """List groups, sorted by name, in these states and of these types (empty: all)."""

    def make(api: NegotiatedApi) -> object:
        if states:
            api.require(_STATES_FROM, "filtering groups by state")
        # Older brokers have classic groups only, so the filter is not needed.
        if types and GroupType.CLASSIC not in types:
            api.require(_TYPES_FROM, "filtering groups by type")
        by_type = api.version >= _TYPES_FROM
        return ListGroupsRequest(
            states_filter=[state.value for state in states],
            types_filter=[kind.value for kind in types] if by_type else [],
        )

    async def ask(broker: int) -> list[GroupListing]:
        answer: ListGroupsResponse = await call.ask(ApiKey.LIST_GROUPS, make, broker)
        check(answer.error_code, about=f"the groups of broker {broker}")
        return [_listing(entry) for entry in answer.groups]

    shares = all_of(await call.ask_brokers("LIST_GROUPS", ask))
    # A group that moves meanwhile may be listed by two brokers.
    listed = {listing.group: listing for share in shares.values() for listing in share}
    return dict(sorted(listed.items()))


def _listing(entry: Any) -> GroupListing:
    return GroupListing(
        group=entry.group_id,
        type=type_of(entry.group_type),
        state=state_of(entry.group_state),
        protocol_type=entry.protocol_type,
    )


# Delete


async def delete_groups(call: Call, groups: Iterable[str]) -> dict[str, Outcome[None]]:
    async def ask(node: Node, share: list[str]) -> Mapping[str, Outcome[None]]:
        answer: DeleteGroupsResponse = await call.ask(
            ApiKey.DELETE_GROUPS, lambda _: DeleteGroupsRequest(groups_names=share), node.id
        )
        return {
            entry.group_id: outcome_of(entry.error_code, None, about=f"group {entry.group_id}")
            for entry in answer.results
        }

    outcomes = await ask_coordinators(call, "DELETE_GROUPS", groups, ask)
    for outcome in outcomes.values():
        if (
            call.response_lost
            and isinstance(outcome, Refused)
            and outcome.code is ErrorCode.GROUP_ID_NOT_FOUND
        ):
            outcome.add_note("an earlier attempt of this call, whose response was lost, may have deleted it")
    return outcomes


# Describe


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


async def describe_groups(
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
        entry.group_id: outcome_of(
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
    def make(api: NegotiatedApi) -> object:
        if operations:
            api.require(_OPERATIONS_FROM, "authorized operations of a group")
        return DescribeGroupsRequest(groups=share, include_authorized_operations=operations)

    answer: DescribeGroupsResponse = await call.ask(ApiKey.DESCRIBE_GROUPS, make, node.id)
    return {
        entry.group_id: outcome_of(
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


# Remove members: LeaveGroup on behalf of the member


_SEVERAL_FROM: Final = 3
# The coordinator finds a static member by its instance id.
_ANY_MEMBER: Final = ""


class MemberKey(NamedTuple):
    """A member by its id, or a static member by its instance id."""

    member_id: str = _ANY_MEMBER
    instance_id: str | None = None

    def __str__(self) -> str:
        return self.instance_id if self.instance_id is not None else self.member_id


async def remove_members(
    call: Call, group: str, members: Iterable[MemberKey], *, reason: str | None
) -> dict[MemberKey, Outcome[None]]:
    async def attempt(pending: list[MemberKey]) -> dict[MemberKey, Outcome[None]]:
        node = await coordinator_of(call, group)
        version = (await call.connection(node.id)).version_of(ApiKey.LEAVE_GROUP)
        if version >= _SEVERAL_FROM:
            return await _remove_several(call, node, group, pending, reason)
        return {member: await _remove_one(call, node, group, member) for member in pending}

    return await call.retry_items("LEAVE_GROUP", members, attempt)


async def _remove_several(
    call: Call, node: Node, group: str, members: list[MemberKey], reason: str | None
) -> dict[MemberKey, Outcome[None]]:
    rows = [
        MemberIdentity(member_id=each.member_id, group_instance_id=each.instance_id, reason=reason)
        for each in members
    ]
    answer: LeaveGroupResponse = await call.ask(
        ApiKey.LEAVE_GROUP, lambda _: LeaveGroupRequest(group_id=group, members=rows), node.id
    )
    check(answer.error_code, about=f"group {group}")
    return {_key(entry): _judged(group, _key(entry), entry.error_code) for entry in answer.members}


def _key(entry: Any) -> MemberKey:
    """Return the requested key: for an instance, the response also has its member id."""
    if entry.group_instance_id is not None:
        return MemberKey(instance_id=entry.group_instance_id)
    return MemberKey(entry.member_id)


async def _remove_one(call: Call, node: Node, group: str, member: MemberKey) -> Outcome[None]:
    def make(api: NegotiatedApi) -> object:
        if member.instance_id is not None:
            api.require(_SEVERAL_FROM, "static members")
        return LeaveGroupRequest(group_id=group, member_id=member.member_id)

    answer: LeaveGroupResponse = await call.ask(ApiKey.LEAVE_GROUP, make, node.id, newest=_SEVERAL_FROM - 1)
    return _judged(group, member, answer.error_code)


def _judged(group: str, member: MemberKey, code: int) -> Outcome[None]:
    return outcome_of(code, None, about=f"group {group}, member {member}")
