"""JoinGroup, versions 0-9: checks, new and returning members, and replacement of static members.

v1 rebalance timeout; v4 a new member must rejoin with its assigned id (KIP-394); v5 static members (KIP-345);
v9 skip_assignment for a static leader that returns (KIP-814).

A static member that returns without its member id replaces the old member, which is fenced. A quick restart
causes no rebalance: if the group is stable and the elected protocol does not change, the new member gets the
assignment of the old one.
"""

from collections.abc import Mapping
from random import Random
from typing import Final, NamedTuple

from barnabas.coordinators.decision.outcome import Caller, Now, Outcome, ReplyTo, answered
from barnabas.coordinators.group.classic.group import (
    COMPLETING,
    DEAD,
    EMPTY,
    PREPARING,
    STABLE,
    ClassicGroup,
)
from barnabas.coordinators.group.classic.member import ClassicMember, Protocols
from barnabas.coordinators.group.classic.rebalances import Rebalances, is_too_large, join_refused, joined
from barnabas.coordinators.group.context import ShardContext
from barnabas.coordinators.group.group import Group, GroupError
from barnabas.coordinators.group.settings import GroupSettings
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.classic_groups import JoinGroupRequest

_REBALANCE_TIMEOUT_FROM: Final = 1
_ID_REQUIRED_FROM: Final = 4
_SKIPS_ASSIGNMENT_FROM: Final = 9
_REASON_CHARACTERS_MAX: Final = 255
_STRING_BYTES_MAX: Final = 2**15 - 1
# Limit of the metadata of all classic members in one partition of __consumer_offsets. Above it, only members
# with little metadata may join, less than the broker's own data of a member.
METADATA_BYTES_MAX: Final = 32 << 20
SMALL_METADATA_BYTES: Final = 16 << 10


class _Join(NamedTuple):
    """A JoinGroup request with its group, caller and outcome."""

    group: ClassicGroup
    request: JoinGroupRequest
    protocols: Protocols
    rebalance_timeout_ms: int
    caller: Caller
    to: ReplyTo
    now: Now
    outcome: Outcome

    def refuse(self, member_id: str, code: ErrorCode) -> None:
        self.outcome.answer(self.to, join_refused(member_id, code))


class Joins:
    """Handles JoinGroup for classic groups."""

    def __init__(self, context: ShardContext, rebalances: Rebalances) -> None:
        self._context: Final = context
        self._rebalances: Final = rebalances

    def join(self, request: JoinGroupRequest, caller: Caller, to: ReplyTo, now: Now) -> Outcome:
        groups = self._context.groups
        try:
            check_join(request, self._context.settings)
            _check_metadata(request, groups)
        except GroupError as error:
            return answered(to, join_refused(request.member_id, error.code))
        group = groups.get(request.group_id)
        if group is None and request.member_id:
            return answered(to, join_refused(request.member_id, ErrorCode.UNKNOWN_MEMBER_ID))
        outcome = Outcome()
        if group is None:
            # Written now, so that the group does not exist only as a pending member id.
            group = ClassicGroup(request.group_id, self._context.timers, state_ms=now.ms)
            groups[group.id] = group
            outcome.write(group.record())
        elif not isinstance(group, ClassicGroup):
            return answered(to, join_refused("", ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
        has_timeout = caller.version >= _REBALANCE_TIMEOUT_FROM
        # Version 0 has only the session timeout, which is used for both.
        timeout_ms = request.rebalance_timeout_ms if has_timeout else request.session_timeout_ms
        protocols = _protocols_of(request, group)
        self._join(_Join(group, request, protocols, timeout_ms, caller, to, now, outcome))
        return outcome

    def _join(self, join: _Join) -> None:
        group, member_id = join.group, join.request.member_id
        if not _has_room_for(group, member_id, self._context.settings.classic_size_max):
            self._refuse_full(join)
            return
        try:
            group.check_alive()
            if not group.supports(join.request.protocol_type, join.protocols):
                raise GroupError(
                    ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                    f"group {group.id} supports none of the member's protocols",
                )
            if not member_id:
                self._join_as_new(join)
            elif member_id in group.pending:
                self._join_as_pending(join)
            else:
                group.check_member(member_id, join.request.group_instance_id)
                self._rejoin(join, group.members[member_id])
        except GroupError as error:
            join.refuse(member_id, error.code)

    def _refuse_full(self, join: _Join) -> None:
        """The group is full. A member that rejoins too late is removed."""
        group, outcome = join.group, join.outcome
        join.refuse("", ErrorCode.GROUP_MAX_SIZE_REACHED)
        self._rebalances.forget_pending(group, join.request.member_id)
        member = group.members.get(join.request.member_id)
        if member is not None:
            self._rebalances.remove(group, member, outcome)
        # The others may have waited only for this member.
        self._rebalances.complete_if_all_joined(group, outcome, join.now)

    # New members

    def _join_as_new(self, join: _Join) -> None:
        group, request = join.group, join.request
        instance_id = request.group_instance_id
        member_id = _new_member_id(
            join.caller.client_id if instance_id is None else instance_id, self._context.rng
        )
        if instance_id is not None and instance_id in group.static:
            self._replace(join, group.members[group.static[instance_id]], member_id)
        elif instance_id is None and join.caller.version >= _ID_REQUIRED_FROM:
            # The member joins only with its second request, so a lost response leaves no member to wait for.
            group.pending.add(member_id)
            group.set_session(member_id, request.session_timeout_ms, join.now)
            join.refuse(member_id, ErrorCode.MEMBER_ID_REQUIRED)
        else:
            self._add(join, member_id)

    def _join_as_pending(self, join: _Join) -> None:
        if join.request.group_instance_id is not None:
            # Static members never get a pending id.
            join.refuse("", ErrorCode.UNKNOWN_SERVER_ERROR)
            return
        self._add(join, join.request.member_id)

    def _add(self, join: _Join, member_id: str) -> None:
        group = join.group
        member = _new_member(join, member_id)
        if group.initial is not None:
            group.initial.has_newcomers = True
        group.add(member)
        group.start_joining(member, join.to)
        group.set_session(member_id, self._context.settings.new_member_join_timeout_ms, join.now)
        self._rebalance(join, f"new member {member_id}")

    # Members that rejoin

    def _rejoin(self, join: _Join, member: ClassicMember) -> None:
        group = join.group
        if group.state == STABLE and group.leader == member.id:
            # A leader rejoins to trigger a new assignment, for example when partitions were added.
            self._update(join, member, f"leader {member.id} rejoined")
        elif group.state == PREPARING or member.protocols != join.protocols:
            self._update(join, member, f"member {member.id} rejoined")
        else:
            # The response to its first join was lost.
            join.outcome.answer(join.to, joined(group, member.id))

    def _update(self, join: _Join, member: ClassicMember, reason: str) -> None:
        join.group.update(
            member,
            protocols=join.protocols,
            rebalance_timeout_ms=join.rebalance_timeout_ms,
            session_timeout_ms=join.request.session_timeout_ms,
        )
        self._wait(join, member)
        self._rebalance(join, reason)

    def _wait(self, join: _Join, member: ClassicMember) -> None:
        """Answer the join when the generation is opened."""
        former = join.group.stop_joining(member)
        if former is not None:
            # The client has retried, so it has given up its first request, which must not wait forever.
            join.outcome.answer(former, join_refused(member.id, ErrorCode.REBALANCE_IN_PROGRESS))
        join.group.start_joining(member, join.to)

    def _rebalance(self, join: _Join, reason: str) -> None:
        self._rebalances.prepare_or_complete(
            join.group, f"{reason}: {_client_reason(join)}", join.outcome, join.now
        )

    # Static members that return without their member id

    def _replace(self, join: _Join, old: ClassicMember, member_id: str) -> None:
        group, now, outcome = join.group, join.now, join.outcome
        former_leader = group.leader
        self._rebalances.release(group, old, ErrorCode.FENCED_INSTANCE_ID, old.id, outcome)
        new = old.successor(
            member_id,
            protocols=join.protocols,
            rebalance_timeout_ms=join.rebalance_timeout_ms,
            session_timeout_ms=join.request.session_timeout_ms,
        )
        group.replace(old, new)
        if group.state == STABLE and group.elected_protocol() == group.protocol:
            self._replace_without_rebalance(join, old, new, former_leader)
            return
        self._transfer_session(join, old, new)
        self._wait(join, new)
        if group.state in (STABLE, COMPLETING):
            reason = f"static member {new.instance_id} replaced: {_client_reason(join)}"
            self._rebalances.prepare(group, reason, outcome, now)
        else:
            self._rebalances.complete_if_all_joined(group, outcome, now)

    def _replace_without_rebalance(
        self, join: _Join, old: ClassicMember, new: ClassicMember, former_leader: str | None
    ) -> None:
        group = join.group
        record = group.record()
        if is_too_large(record, self._context.batch_bytes_max()):
            group.replace(new, old)
            group.unapplied = None
            answer = joined(group, "")
            answer.error_code = ErrorCode.UNKNOWN_SERVER_ERROR
            join.outcome.answer(join.to, answer)
            return
        join.outcome.write(record)
        self._transfer_session(join, old, new)
        answer = joined(group, new.id)
        if join.caller.version >= _SKIPS_ASSIGNMENT_FROM:
            answer.skip_assignment = group.leader == new.id
        else:
            # Before skip_assignment, a leader would send an assignment, which a stable group ignores. With
            # its former id as leader, the member does not recognize itself as the leader.
            answer.leader = former_leader or ""
            answer.members = []
        join.outcome.answer(join.to, answer)

    def _transfer_session(self, join: _Join, old: ClassicMember, new: ClassicMember) -> None:
        self._rebalances.end_session(join.group, old.id)
        # The requested timeout applies from the next heartbeat on, as in Kafka.
        join.group.set_session(new.id, old.session_timeout_ms, join.now)


# Checks, in Kafka's order


def check_join(request: JoinGroupRequest, settings: GroupSettings) -> None:
    if not request.group_id:
        raise GroupError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
    least_ms, most_ms = settings.session_timeout_ms_min, settings.session_timeout_ms_max
    if not least_ms <= request.session_timeout_ms <= most_ms:
        raise GroupError(
            ErrorCode.INVALID_SESSION_TIMEOUT,
            f"session timeout {request.session_timeout_ms} ms is out of range ({least_ms} to {most_ms})",
        )


def _check_metadata(request: JoinGroupRequest, groups: Mapping[str, Group]) -> None:
    """Limit the memory for metadata, which is held for the whole session without being committed."""
    size = sum([len(protocol.metadata) for protocol in request.protocols])
    if size <= SMALL_METADATA_BYTES:
        return
    group = groups.get(request.group_id)
    member = group.members.get(request.member_id) if isinstance(group, ClassicGroup) else None
    if member is not None:
        size -= sum(len(metadata) for _, metadata in member.protocols)
    held = sum(one.metadata_bytes for one in groups.values() if isinstance(one, ClassicGroup))
    if held + size > METADATA_BYTES_MAX:
        raise GroupError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"member metadata would be {held + size} bytes, but the limit is {METADATA_BYTES_MAX}",
        )


def _has_room_for(group: ClassicGroup, member_id: str, size_max: int) -> bool:
    """During a rebalance only members that have joined count: the first ones get the places."""
    if group.state in (EMPTY, DEAD):
        return True
    member = group.members.get(member_id)
    if group.state == PREPARING:
        return (member is not None and member.joining is not None) or group.joining_count < size_max
    return member is not None or len(group.members) < size_max


# Parts of the request


def _new_member_id(name: str, rng: Random) -> str:
    """The client id or instance id, and a random UUID in hexadecimal."""
    digits = rng.randbytes(16).hex()
    member_id = f"{name}-{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"
    # Too long for a message if the name nearly is.
    if len(member_id.encode()) > _STRING_BYTES_MAX:
        raise GroupError(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"member id of {len(member_id)} characters is too long"
        )
    return member_id


def _new_member(join: _Join, member_id: str) -> ClassicMember:
    group, request = join.group, join.request
    client_id, host = join.caller.client_id, join.caller.host
    leader = group.members.get(group.leader or "")
    if leader is not None:
        # Share the strings: members of one application have the same client id and host.
        client_id = leader.client_id if client_id == leader.client_id else client_id
        host = leader.client_host if host == leader.client_host else host
    member = ClassicMember(
        member_id=member_id,
        instance_id=request.group_instance_id,
        client_id=client_id,
        client_host=host,
        rebalance_timeout_ms=join.rebalance_timeout_ms,
        session_timeout_ms=request.session_timeout_ms,
        protocol_type=group.protocol_type if group.members else request.protocol_type,
        protocols=join.protocols,
    )
    member.is_new = True
    return member


def _protocols_of(request: JoinGroupRequest, group: ClassicGroup) -> Protocols:
    """The protocols, without duplicate names. Shares the leader's object if equal."""
    by_name: dict[str, bytes] = {}
    for protocol in request.protocols:
        by_name.setdefault(protocol.name, protocol.metadata)
    protocols = tuple(by_name.items())
    leader = group.members.get(group.leader or "")
    return leader.protocols if leader is not None and leader.protocols == protocols else protocols


def _client_reason(join: _Join) -> str:
    """The client's reason, for the log."""
    return (join.request.reason or "not provided")[:_REASON_CHARACTERS_MAX]
