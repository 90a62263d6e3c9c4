"""The context of one JoinGroup request."""

from typing import Final, NamedTuple

from barnabas.coordinators.decision.outcome import Caller, Now, Outcome, ReplyTo
from barnabas.coordinators.group.classic.answers import join_refused
from barnabas.coordinators.group.classic.group import ClassicGroup
from barnabas.coordinators.group.classic.member import ClassicMember, Protocols
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.classic_groups import JoinGroupRequest

_REBALANCE_TIMEOUT_FROM: Final = 1
_REASON_CHARACTERS_MAX: Final = 255


class Joining(NamedTuple):
    """A JoinGroup request with its group, caller and outcome."""

    group: ClassicGroup
    request: JoinGroupRequest
    protocols: Protocols
    caller: Caller
    to: ReplyTo
    now: Now
    outcome: Outcome

    @property
    def rebalance_timeout_ms(self) -> int:
        """Version 0 has only the session timeout, which is used for both."""
        if self.caller.version < _REBALANCE_TIMEOUT_FROM:
            return self.request.session_timeout_ms
        return self.request.rebalance_timeout_ms

    @property
    def reason(self) -> str:
        """The client's reason, for the log."""
        return (self.request.reason or "not provided")[:_REASON_CHARACTERS_MAX]

    def refuse(self, member_id: str, code: ErrorCode) -> None:
        self.outcome.answer(self.to, join_refused(member_id, code))

    def update(self, member: ClassicMember) -> None:
        """Update the member from the request."""
        self.group.update(
            member,
            protocols=self.protocols,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            session_timeout_ms=self.request.session_timeout_ms,
        )

    def wait(self, member: ClassicMember) -> None:
        """Answer the join when the generation is opened."""
        former = self.group.stop_joining(member)
        if former is not None:
            # The client has retried, so it has given up its first request, which must not wait forever.
            self.outcome.answer(former, join_refused(member.id, ErrorCode.REBALANCE_IN_PROGRESS))
        self.group.start_joining(member, self.to)

    def new_member(self, member_id: str) -> ClassicMember:
        client_id, host = self.caller.client_id, self.caller.host
        like = self.group.members.get(self.group.leader or "")
        if like is not None:
            # Share the strings: members of one application have the same client id and host.
            client_id = like.client_id if client_id == like.client_id else client_id
            host = like.client_host if host == like.client_host else host
        return ClassicMember(
            member_id=member_id,
            instance_id=self.request.group_instance_id,
            client_id=client_id,
            client_host=host,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            session_timeout_ms=self.request.session_timeout_ms,
            protocol_type=self.group.protocol_type if self.group.members else self.request.protocol_type,
            protocols=self.protocols,
        )


def protocols_of(request: JoinGroupRequest, group: ClassicGroup) -> Protocols:
    """The protocols, without duplicate names. Shares the leader's object if equal."""
    by_name: dict[str, bytes] = {}
    for protocol in request.protocols:
        by_name.setdefault(protocol.name, protocol.metadata)
    protocols = tuple(by_name.items())
    leader = group.members.get(group.leader or "")
    return leader.protocols if leader is not None and leader.protocols == protocols else protocols
