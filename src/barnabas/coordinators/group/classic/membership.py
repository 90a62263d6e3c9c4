"""The members of a classic group, their pending joins and supported protocols.

Maintains counts, so that the cost of a joining member does not depend on the size of the group: a thousand
may join at once.
"""

from collections import Counter

from barnabas.coordinators.decision.outcome import ReplyTo
from barnabas.coordinators.group.classic.member import ClassicMember, Protocols


class Membership:
    """The part of a group that changes with its members. rebalances.py answers them."""

    __slots__ = (
        "_support",
        "joining_count",
        "leader",
        "members",
        "metadata_bytes",
        "pending",
        "protocol_type",
        "static",
        "unsynced",
    )

    def __init__(self, *, protocol_type: str, leader: str | None) -> None:
        # "" until the first member joins.
        self.protocol_type = protocol_type
        self.leader = leader
        self.members: dict[str, ClassicMember] = {}
        # Member ids by instance id.
        self.static: dict[str, str] = {}
        # Assigned member ids that have not joined yet.
        self.pending: set[str] = set()
        # Members that have not fetched the assignment of this generation.
        self.unsynced: set[str] = set()
        self.joining_count = 0
        # Total size of the members' metadata for all protocols.
        self.metadata_bytes = 0
        # Number of members that support each protocol.
        self._support: dict[str, int] = {}

    def add(self, member: ClassicMember) -> None:
        assert member.instance_id not in self.static, f"{member.instance_id} is a member already"
        if not self.members:
            self.protocol_type = member.protocol_type
        if self.leader is None:
            self.leader = member.id
        self.members[member.id] = member
        if member.instance_id is not None:
            self.static[member.instance_id] = member.id
        self._count_support(member.protocols, 1)
        self.pending.discard(member.id)

    def remove(self, member: ClassicMember) -> None:
        """Remove a member without pending requests."""
        assert member.joining is None, f"{member.id} has a pending join"
        assert member.syncing is None, f"{member.id} has a pending sync"
        del self.members[member.id]
        if member.instance_id is not None:
            del self.static[member.instance_id]
        self._count_support(member.protocols, -1)
        self.unsynced.discard(member.id)
        if self.leader == member.id:
            self.leader = next(iter(self.members), None)

    def replace(self, old: ClassicMember, new: ClassicMember) -> None:
        """Replace the static member `old`, which must not have pending requests, by `new`."""
        is_leader, is_unsynced = self.leader == old.id, old.id in self.unsynced
        self.remove(old)
        self.add(new)
        if is_leader:
            self.leader = new.id
        if is_unsynced:
            self.unsynced.add(new.id)

    def update(
        self,
        member: ClassicMember,
        *,
        protocols: Protocols,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
    ) -> None:
        self._count_support(member.protocols, -1)
        self._count_support(protocols, 1)
        member.protocols = protocols
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms

    def start_joining(self, member: ClassicMember, to: ReplyTo) -> None:
        assert member.joining is None, f"{member.id} already has a pending join"
        member.joining = to
        self.joining_count += 1

    def stop_joining(self, member: ClassicMember) -> ReplyTo | None:
        """The pending join to answer, if any."""
        to, member.joining = member.joining, None
        if to is not None:
            self.joining_count -= 1
        return to

    @property
    def have_all_joined(self) -> bool:
        return self.joining_count == len(self.members) and not self.pending

    @property
    def rebalance_timeout_ms(self) -> int:
        """The maximum of all members. Iterates over all members: call it once per rebalance."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def elect_joined_leader(self) -> bool:
        """Replace a leader that has not joined. False if no member has joined."""
        if self.leader is None:
            return False
        if self.members[self.leader].joining is None:
            joined = (member.id for member in self.members.values() if member.joining is not None)
            self.leader = next(joined, self.leader)
        return self.members[self.leader].joining is not None

    # Protocols

    def shares_protocol(self, protocol_type: str, protocols: Protocols) -> bool:
        """Whether a member with these protocols shares one with all members."""
        count = len(self.members)
        return protocol_type == self.protocol_type and any(
            self._support.get(name, 0) == count for name, _ in protocols
        )

    def elected_protocol(self) -> str:
        """The protocol with the most votes; each member votes for its preferred one among those that all
        support."""
        candidates = {name for name, count in self._support.items() if count == len(self.members)}
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return votes.most_common(1)[0][0]

    def _count_support(self, protocols: Protocols, by: int) -> None:
        for name, metadata in protocols:
            self.metadata_bytes += by * len(metadata)
            count = self._support.get(name, 0) + by
            if count:
                self._support[name] = count
            else:
                del self._support[name]
