"""Who is in a classic group, who of them waits in a join, and what they can all work with.

Counts are kept so that one more member costs the same in a large group as in a small one: a thousand may join
at once.
"""

from collections import Counter

from barnabas.coordinators.decision.outcome import ReplyTo
from barnabas.coordinators.group.classic.member import ClassicMember, Protocols


class Membership:
    """The part of a group that changes with its members. Whoever answers them is in rebalances.py."""

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
        # "" until there was a member.
        self.protocol_type = protocol_type
        self.leader = leader
        self.members: dict[str, ClassicMember] = {}
        # The member of each instance id.
        self.static: dict[str, str] = {}
        # Ids that were given out and have not come back with a join.
        self.pending: set[str] = set()
        # Who has not asked for the assignment of this generation.
        self.unsynced: set[str] = set()
        self.joining_count = 0
        # The metadata of all members, for all protocols.
        self.metadata_bytes = 0
        # How many members support each protocol.
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
        """Whoever waits for an answer as this member must have got it."""
        assert member.joining is None, f"{member.id} waits in a join"
        assert member.syncing is None, f"{member.id} waits in a sync"
        del self.members[member.id]
        if member.instance_id is not None:
            del self.static[member.instance_id]
        self._count_support(member.protocols, -1)
        self.unsynced.discard(member.id)
        if self.leader == member.id:
            self.leader = next(iter(self.members), None)

    def replace(self, old: ClassicMember, new: ClassicMember) -> None:
        """The static member `new` takes the place of `old`, which must wait for nothing."""
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
        assert member.joining is None, f"{member.id} waits already"
        member.joining = to
        self.joining_count += 1

    def stop_joining(self, member: ClassicMember) -> ReplyTo | None:
        """Whom to answer, if it waited."""
        to, member.joining = member.joining, None
        if to is not None:
            self.joining_count -= 1
        return to

    @property
    def have_all_joined(self) -> bool:
        return self.joining_count == len(self.members) and not self.pending

    @property
    def rebalance_timeout_ms(self) -> int:
        """The slowest member is given its time. Goes through all members: for once in a round."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def elect_joined_leader(self) -> bool:
        """A leader that does not join cannot assign. False if nobody has joined."""
        if self.leader is None:
            return False
        if self.members[self.leader].joining is None:
            joined = (member.id for member in self.members.values() if member.joining is not None)
            self.leader = next(joined, self.leader)
        return self.members[self.leader].joining is not None

    # Protocols

    def shares_protocol(self, protocol_type: str, protocols: Protocols) -> bool:
        """Whether one who can do this fits in: there stays a protocol that all support."""
        count = len(self.members)
        return protocol_type == self.protocol_type and any(
            self._support.get(name, 0) == count for name, _ in protocols
        )

    def elected_protocol(self) -> str:
        """Each member votes for its favourite of those that all support; the first of the most is taken."""
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
