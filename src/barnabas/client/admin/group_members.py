"""Removes members from a group: LeaveGroup, sent to the coordinator on behalf of the member."""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from barnabas.client.admin.call import Call, Outcome, Spoken, check, judged
from barnabas.client.admin.coordinators import coordinator_of
from barnabas.client.metadata import Node
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.messages.classic_groups import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity

_SEVERAL_FROM: Final = 3
# The coordinator finds a static member by its instance id.
_ANY_MEMBER: Final = ""


class MemberKey(NamedTuple):
    """A member by its id, or a static member by its instance id."""

    member_id: str = _ANY_MEMBER
    instance_id: str | None = None

    def __str__(self) -> str:
        return self.instance_id if self.instance_id is not None else self.member_id


async def remove(
    call: Call, group: str, members: Iterable[MemberKey], *, reason: str | None
) -> dict[MemberKey, Outcome[None]]:
    async def attempt(pending: list[MemberKey]) -> dict[MemberKey, Outcome[None]]:
        node = await coordinator_of(call, group)
        version = (await call.connection(node.id)).version_of(ApiKey.LEAVE_GROUP)
        if version >= _SEVERAL_FROM:
            return await _remove_several(call, node, group, pending, reason)
        return {member: await _remove_one(call, node, group, member) for member in pending}

    return await call.settle("LEAVE_GROUP", members, attempt)


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
    def make(spoken: Spoken) -> object:
        if member.instance_id is not None:
            spoken.needs(_SEVERAL_FROM, "static members")
        return LeaveGroupRequest(group_id=group, member_id=member.member_id)

    answer: LeaveGroupResponse = await call.ask(ApiKey.LEAVE_GROUP, make, node.id, newest=_SEVERAL_FROM - 1)
    return _judged(group, member, answer.error_code)


def _judged(group: str, member: MemberKey, code: int) -> Outcome[None]:
    return judged(code, None, about=f"group {group}, member {member}")
