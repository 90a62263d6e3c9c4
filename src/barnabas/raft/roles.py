"""What a member of the quorum can be, and what it has to remember while it is that (pure).

                  timeout            majority              majority
    Unattached  ---------> Prospective ------> Candidate ---------> Leader ----> Resigned
     ^     |                ^   | lost            | lost: Prospective again, a little later
     |     v leader found   |   v
     |    Follower ---------+  back to Follower or Unattached
     +--- a higher epoch is seen, in any role

Observers are Unattached or Follower, and nothing else. Times are monotonic milliseconds.
"""

from dataclasses import dataclass, field
from typing import TypeAlias

from barnabas.raft.replicas import Replicas


@dataclass(slots=True)
class Unattached:
    """No leader is known. Whoever is asked next may know one."""

    # When to ask for an election; None for an observer.
    election_at_ms: int | None
    # When to ask the next voter who leads; None without another voter.
    retry_at_ms: int | None

    def deadlines(self) -> tuple[int | None, ...]:
        return self.election_at_ms, self.retry_at_ms


@dataclass(slots=True)
class Follower:
    """Fetches from the leader of its epoch."""

    leader: int
    # When the leader is given up, unless it is heard of.
    fetch_by_ms: int
    # The fetch that is under way, and when to give it up; None while the log has to be brought in order
    # first.
    awaiting: int | None = None
    retry_at_ms: int | None = None
    # The log is being written, cut or flushed. What ends that is an event, and then the next fetch goes out.
    busy: bool = False
    # The fetch whose answer was a snapshot that is being installed.
    installing: int | None = None
    # Whether it has answered a fetch of ours in this epoch: then nobody else is helped to an election.
    has_fetched: bool = False
    # What the leader says, to count when our log is that far.
    leader_high_watermark: int | None = None

    def deadlines(self) -> tuple[int | None, ...]:
        return self.fetch_by_ms, self.retry_at_ms


@dataclass(slots=True)
class Prospective:
    """Would like to be elected, and asks whether it would be, without disturbing the epoch. (KIP-996)"""

    election_at_ms: int
    retry_at_ms: int
    granted: set[int] = field(default_factory=set)
    rejected: set[int] = field(default_factory=set)

    def deadlines(self) -> tuple[int | None, ...]:
        return self.election_at_ms, self.retry_at_ms


@dataclass(slots=True)
class Candidate:
    """Has voted for itself in a new epoch, and asks the others for their votes."""

    election_at_ms: int
    # None when the election is lost, and only the time to the next one is waited for.
    retry_at_ms: int | None
    granted: set[int] = field(default_factory=set)
    rejected: set[int] = field(default_factory=set)

    def deadlines(self) -> tuple[int | None, ...]:
        return self.election_at_ms, self.retry_at_ms


@dataclass(slots=True)
class Leader:
    """Appends records, and counts who has them."""

    # Where its epoch starts. Nothing is committed before something of its own epoch is. (Raft, 5.4.2)
    epoch_start: int
    replicas: Replicas
    # When it resigns, unless a majority has fetched until then; None if it needs nobody else.
    check_quorum_at_ms: int | None
    # When the voters are told again who leads that have not acknowledged it; None if all have.
    begin_at_ms: int | None
    heard: set[int] = field(default_factory=set)
    acknowledged: set[int] = field(default_factory=set)

    def deadlines(self) -> tuple[int | None, ...]:
        return self.check_quorum_at_ms, self.begin_at_ms


@dataclass(slots=True)
class Resigned:
    """Was the leader of its epoch, is it no more, and will not vote for another in this epoch."""

    election_at_ms: int
    # When the voters are told again that have not acknowledged it; None if there is nothing to tell.
    retry_at_ms: int | None = None
    successors: tuple[int, ...] = ()
    acknowledged: set[int] = field(default_factory=set)

    def deadlines(self) -> tuple[int | None, ...]:
        return self.election_at_ms, self.retry_at_ms


Role: TypeAlias = Unattached | Follower | Prospective | Candidate | Leader | Resigned
