"""The roles of a member of the quorum, with their state (pure).

                  timeout            majority              majority
    Unattached  ---------> Prospective ------> Candidate ---------> Leader ----> Resigned
     ^     |                ^   | lost            | lost: Prospective again, a little later
     |     v leader found   |   v
     |    Follower ---------+  back to Follower or Unattached
     +--- a higher epoch is seen, in any role

Observers are always Unattached or Follower. Times are monotonic milliseconds.
"""

from dataclasses import dataclass, field
from typing import TypeAlias

from barnabas.raft.replicas import Replicas


@dataclass(slots=True)
class Unattached:
    """No leader is known; the node asks other voters for it."""

    # When to start an election; None for an observer.
    election_at_ms: int | None
    # When to ask another voter for the leader; None without other voters.
    retry_at_ms: int | None

    def deadlines(self) -> tuple[int | None, ...]:
        return self.election_at_ms, self.retry_at_ms


@dataclass(slots=True)
class Follower:
    """Fetches from the leader of its epoch."""

    leader: int
    # When the leader is considered dead, unless it answers.
    fetch_by_ms: int
    # The fetch in flight, and its deadline; None while the log is being written first.
    awaiting: int | None = None
    retry_at_ms: int | None = None
    # The log is being written, truncated or synced; an event ends this and triggers the next fetch.
    busy: bool = False
    # The serial of the fetch whose answer was the snapshot that is being installed.
    installing: int | None = None
    # Whether the leader has answered a fetch in this epoch; then we reject pre-votes of others.
    has_fetched: bool = False
    # The leader's high watermark, to adopt as far as our log reaches.
    leader_high_watermark: int | None = None

    def deadlines(self) -> tuple[int | None, ...]:
        return self.fetch_by_ms, self.retry_at_ms


@dataclass(slots=True)
class Prospective:
    """Asks by pre-votes whether it would be elected, without starting a new epoch. (KIP-996)"""

    election_at_ms: int
    retry_at_ms: int
    granted: set[int] = field(default_factory=set)
    rejected: set[int] = field(default_factory=set)

    def deadlines(self) -> tuple[int | None, ...]:
        return self.election_at_ms, self.retry_at_ms


@dataclass(slots=True)
class Candidate:
    """Has voted for itself in a new epoch, and requests the votes of the others."""

    election_at_ms: int
    # None when the election is lost and the node waits for the next one.
    retry_at_ms: int | None
    granted: set[int] = field(default_factory=set)
    rejected: set[int] = field(default_factory=set)

    def deadlines(self) -> tuple[int | None, ...]:
        return self.election_at_ms, self.retry_at_ms


@dataclass(slots=True)
class Leader:
    """Appends records and counts their replicas."""

    # The start of its epoch. Nothing is committed before a record of its own epoch is. (Raft, 5.4.2)
    epoch_start: int
    replicas: Replicas
    # When it resigns unless a majority has fetched; None if it is a majority by itself.
    check_quorum_at_ms: int | None
    # When to repeat the announcement to voters that have not acknowledged it; None if all have.
    begin_at_ms: int | None
    heard: set[int] = field(default_factory=set)
    acknowledged: set[int] = field(default_factory=set)

    def deadlines(self) -> tuple[int | None, ...]:
        return self.check_quorum_at_ms, self.begin_at_ms


@dataclass(slots=True)
class Resigned:
    """Was the leader of this epoch and has resigned. It does not vote for others in this epoch."""

    election_at_ms: int
    # When to repeat the notice to voters that have not acknowledged it; None if all have.
    retry_at_ms: int | None = None
    successors: tuple[int, ...] = ()
    acknowledged: set[int] = field(default_factory=set)

    def deadlines(self) -> tuple[int | None, ...]:
        return self.election_at_ms, self.retry_at_ms


Role: TypeAlias = Unattached | Follower | Prospective | Candidate | Leader | Resigned
