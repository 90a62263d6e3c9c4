"""One member of a classic group, its part of the group's record, and the subscriptions of all members."""

from collections.abc import Iterable, Set
from typing import Final, TypeAlias

from barnabas.base.errors import Malformed
from barnabas.coordinators.decision.outcome import ReplyTo
from barnabas.protocol.schema.codec import decode
from barnabas.protocol.stored.consumer_protocol import ConsumerProtocolSubscription
from barnabas.protocol.stored.offsets import GroupMetadataValue, MemberMetadata

# Supported protocols in the order of preference: name and metadata. Names are unique.
Protocols: TypeAlias = tuple[tuple[str, bytes], ...]

NO_ASSIGNMENT: Final = b""
# The protocol type of consumers. The metadata of other types, such as Connect workers, is opaque.
CONSUMER_TYPE: Final = "consumer"

_NO_REBALANCE_TIMEOUT: Final = -1
# Topics are the first field of a subscription in every version, so all metadata is decoded as version 0.
_SUBSCRIPTION_VERSION: Final = 0
_VERSION_BYTES: Final = 2


class ClassicMember:
    """A member's subscription, assignment and pending requests."""

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "id",
        "instance_id",
        "is_new",
        "joining",
        "protocol_type",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
        "syncing",
    )

    def __init__(
        self,
        *,
        member_id: str,
        instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocol_type: str,
        protocols: Protocols,
        assignment: bytes = NO_ASSIGNMENT,
    ) -> None:
        self.id = member_id
        self.instance_id = instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocol_type = protocol_type
        self.protocols = protocols
        self.assignment = assignment
        # In its first join, in which it does not send heartbeats yet.
        self.is_new = False
        # The pending JoinGroup and SyncGroup. Membership counts the pending joins.
        self.joining: ReplyTo | None = None
        self.syncing: ReplyTo | None = None

    @property
    def is_static(self) -> bool:
        return self.instance_id is not None

    @property
    def is_known_to_live(self) -> bool:
        """Whether it waits for a response, so that no heartbeat is due. A new member must return in time."""
        return not self.is_new and (self.joining is not None or self.syncing is not None)

    def metadata(self, protocol: str) -> bytes:
        for name, metadata in self.protocols:
            if name == protocol:
                return metadata
        raise AssertionError(f"member {self.id} does not support {protocol}")

    def vote(self, candidates: Set[str]) -> str:
        """Its most preferred protocol among the candidates."""
        for name, _ in self.protocols:
            if name in candidates:
                return name
        raise AssertionError(f"member {self.id} supports none of {sorted(candidates)}")

    def stored(self, protocol: str, assignment: bytes) -> MemberMetadata:
        """The member's part of the group's record."""
        return MemberMetadata(
            member_id=self.id,
            group_instance_id=self.instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout=self.rebalance_timeout_ms,
            session_timeout=self.session_timeout_ms,
            subscription=self.metadata(protocol),
            assignment=assignment,
        )

    def successor(
        self, member_id: str, *, protocols: Protocols, rebalance_timeout_ms: int, session_timeout_ms: int
    ) -> "ClassicMember":
        """The same static member after a restart. Keeps the first client id and host, as in Kafka."""
        return ClassicMember(
            member_id=member_id,
            instance_id=self.instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout_ms=rebalance_timeout_ms,
            session_timeout_ms=session_timeout_ms,
            protocol_type=self.protocol_type,
            protocols=protocols,
            assignment=self.assignment,
        )


def members_of(value: GroupMetadataValue) -> list[ClassicMember]:
    """The members, with only the elected protocol, because the record has no others."""
    return [
        ClassicMember(
            member_id=stored.member_id,
            instance_id=stored.group_instance_id,
            client_id=stored.client_id,
            client_host=stored.client_host,
            # Records before version 1 have none, because clients had only a session timeout.
            rebalance_timeout_ms=(
                stored.session_timeout
                if stored.rebalance_timeout == _NO_REBALANCE_TIMEOUT
                else stored.rebalance_timeout
            ),
            session_timeout_ms=stored.session_timeout,
            protocol_type=value.protocol_type,
            protocols=((value.protocol or "", stored.subscription),),
            assignment=stored.assignment,
        )
        for stored in value.members
    ]


class LazySubscriptions:
    """The topics that the members of a generation subscribe to.

    Decoded lazily, because most groups never need them.
    """

    __slots__ = ("_metadata", "_topics")

    def __init__(self, metadata: Iterable[bytes]) -> None:
        # A set, because members of one application mostly have equal metadata.
        self._metadata: frozenset[bytes] | None = frozenset(metadata)
        self._topics: frozenset[str] | None = None

    @property
    def topics(self) -> frozenset[str] | None:
        """The subscribed topics; None if any metadata cannot be decoded."""
        if self._metadata is not None:
            self._topics = _topics_of(self._metadata)
            self._metadata = None
        return self._topics


def _topics_of(metadata: Iterable[bytes]) -> frozenset[str] | None:
    topics: set[str] = set()
    for one in metadata:
        try:
            subscription, _ = decode(ConsumerProtocolSubscription, _SUBSCRIPTION_VERSION, one, _VERSION_BYTES)
        except Malformed:
            return None
        topics.update(subscription.topics)
    return frozenset(topics)
