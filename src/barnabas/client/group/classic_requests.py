"""Builds the requests of a member of a classic group, and holds the state they need. Pure."""

from typing import Final

from barnabas.base.ids import TopicPartition
from barnabas.client.group.assignors.assignor import ASSIGNORS, Shares
from barnabas.client.group.settings import GroupSettings
from barnabas.client.group.subscription import (
    NO_GENERATION,
    PROTOCOL_TYPE,
    Subscription,
    encode_assignment,
    encode_subscription,
)
from barnabas.protocol.messages.classic_groups import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)

NOBODY: Final = ""


class ClassicRequests:
    """The part of ClassicMembership that builds requests."""

    def __init__(self, settings: GroupSettings, group_id: str, rack: str | None) -> None:
        self._settings = settings
        self._group_id = group_id
        self._rack = rack
        self._assignors = [ASSIGNORS[name] for name in settings.assignors]
        # All assignors must be cooperative: the group chooses one after all members have joined.
        self.cooperative: Final = all(each.cooperative for each in self._assignors)
        self.topics: frozenset[str] = frozenset()
        self.owned: frozenset[TopicPartition] = frozenset()
        self.member_id = NOBODY
        self.generation = NO_GENERATION
        # The reason sent with JoinGroup.
        self._reason: str | None = "first join"
        self._protocol: str | None = None
        self._shares: Shares = {}
        # The last assignment, even if revoked: sticky assignors use it.
        self._had: tuple[frozenset[TopicPartition], int] = (frozenset(), NO_GENERATION)

    def _join(self) -> JoinGroupRequest:
        protocols = [
            JoinGroupRequestProtocol(
                name=each.name,
                metadata=encode_subscription(
                    Subscription(
                        topics=self.topics,
                        owned=self.owned,
                        generation=self.generation,
                        user_data=each.user_data(*self._had),
                        rack=self._rack,
                    )
                ),
            )
            for each in self._assignors
        ]
        return JoinGroupRequest(
            group_id=self._group_id,
            session_timeout_ms=self._settings.session_timeout_ms,
            rebalance_timeout_ms=self._settings.max_poll_interval_ms,
            member_id=self.member_id,
            group_instance_id=self._settings.group_instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=protocols,
            reason=self._reason,
        )

    def _sync(self) -> SyncGroupRequest:
        return SyncGroupRequest(
            group_id=self._group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self._settings.group_instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=self._protocol,
            assignments=[
                SyncGroupRequestAssignment(member_id=member, assignment=encode_assignment(share))
                for member, share in self._shares.items()
            ],
        )

    def _heartbeat(self) -> HeartbeatRequest:
        return HeartbeatRequest(
            group_id=self._group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self._settings.group_instance_id,
        )

    def leave(self, reason: str) -> LeaveGroupRequest | None:
        """Build LeaveGroup; None without a member id, and for static members, which may come back."""
        if self.member_id == NOBODY or self._settings.group_instance_id is not None:
            return None
        member = MemberIdentity(member_id=self.member_id, reason=reason)
        return LeaveGroupRequest(group_id=self._group_id, members=[member])
