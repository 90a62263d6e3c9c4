"""The leader's description of its quorum, for DescribeQuorum (pure)."""

from barnabas.base.ids import Uuid
from barnabas.base.values import value
from barnabas.raft.facts import NONE, Voter
from barnabas.raft.replicas import Replica, Replicas


@value(kw_only=True)
class ReplicaDescription:
    """One replica. Times are milliseconds since 1970; -1 if unknown."""

    id: int
    directory_id: Uuid
    end_offset: int
    last_fetch_ms: int
    last_caught_up_ms: int


@value(kw_only=True)
class QuorumDescription:
    leader: int
    epoch: int
    high_watermark: int
    voters: tuple[ReplicaDescription, ...]
    observers: tuple[ReplicaDescription, ...]


@value
class Times:
    """The current time on both clocks, to convert monotonic times to wall-clock times."""

    monotonic_ms: int
    now_ms: int

    def wall(self, monotonic_ms: int | None) -> int:
        return NONE if monotonic_ms is None else self.now_ms - (self.monotonic_ms - monotonic_ms)


def describe_voters(
    replicas: Replicas, voters: dict[int, Voter], *, log_end: int, times: Times
) -> tuple[ReplicaDescription, ...]:
    found = []
    for replica in replicas.voters.values():
        if replica.id == replicas.me:
            # A leader does not fetch from itself, and is always caught up.
            own = Replica(replica.id, log_end, times.monotonic_ms, times.monotonic_ms)
            found.append(_describe(own, voters[replica.id].directory_id, times))
        else:
            found.append(_describe(replica, voters[replica.id].directory_id, times))
    return tuple(found)


def describe_observers(replicas: Replicas, times: Times) -> tuple[ReplicaDescription, ...]:
    replicas.forget_silent(times.monotonic_ms)
    return tuple(_describe(one, Uuid(bytes(16)), times) for one in replicas.observers.values())


def _describe(replica: Replica, directory_id: Uuid, times: Times) -> ReplicaDescription:
    return ReplicaDescription(
        id=replica.id,
        directory_id=directory_id,
        end_offset=NONE if replica.end_offset is None else replica.end_offset,
        last_fetch_ms=times.wall(replica.last_fetch_ms),
        last_caught_up_ms=times.wall(replica.last_caught_up_ms),
    )
