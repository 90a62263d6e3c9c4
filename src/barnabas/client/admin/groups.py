"""Groups: ListGroups at every broker, and DeleteGroups at the coordinators.

Describing them is in group_descriptions.py, their offsets in group_offsets.py, their members in
group_members.py.
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from typing import Any, Final

from barnabas.base.values import value
from barnabas.client.admin.call import Call, Outcome, Spoken, all_of, check, judged
from barnabas.client.admin.coordinators import ask_coordinators
from barnabas.client.errors import ClientError, Refused
from barnabas.client.metadata import Node
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.group_admin import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    ListGroupsRequest,
    ListGroupsResponse,
)

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


async def list_all(
    call: Call, *, states: Collection[GroupState], types: Collection[GroupType]
) -> dict[str, GroupListing]:
    """List groups, sorted by name, in these states and of these types (empty: all)."""

    def make(spoken: Spoken) -> object:
        if states:
            spoken.needs(_STATES_FROM, "filtering groups by state")
        # Older brokers have classic groups only, so the filter is not needed.
        if types and GroupType.CLASSIC not in types:
            spoken.needs(_TYPES_FROM, "filtering groups by type")
        by_type = spoken.version >= _TYPES_FROM
        return ListGroupsRequest(
            states_filter=[state.value for state in states],
            types_filter=[kind.value for kind in types] if by_type else [],
        )

    async def ask(broker: int) -> Outcome[list[GroupListing]]:
        try:
            answer: ListGroupsResponse = await call.ask(ApiKey.LIST_GROUPS, make, broker)
            check(answer.error_code, about=f"the groups of broker {broker}")
        except ClientError as error:
            return error
        return [_listing(entry) for entry in answer.groups]

    async def attempt(pending: list[int]) -> dict[int, Outcome[list[GroupListing]]]:
        return dict(zip(pending, await asyncio.gather(*map(ask, pending)), strict=True))

    brokers = sorted((await call.single("the brokers", call.cluster.refresh)).nodes)
    shares = all_of(await call.settle("LIST_GROUPS", brokers, attempt))
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


async def delete(call: Call, groups: Iterable[str]) -> dict[str, Outcome[None]]:
    async def ask(node: Node, share: list[str]) -> Mapping[str, Outcome[None]]:
        answer: DeleteGroupsResponse = await call.ask(
            ApiKey.DELETE_GROUPS, lambda _: DeleteGroupsRequest(groups_names=share), node.id
        )
        return {
            entry.group_id: judged(entry.error_code, None, about=f"group {entry.group_id}")
            for entry in answer.results
        }

    outcomes = await ask_coordinators(call, "DELETE_GROUPS", groups, ask)
    for outcome in outcomes.values():
        if call.lost and isinstance(outcome, Refused) and outcome.code is ErrorCode.GROUP_ID_NOT_FOUND:
            outcome.add_note("an earlier attempt of this call, whose response was lost, may have deleted it")
    return outcomes
