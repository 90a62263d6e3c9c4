"""The events of a member of the quorum (pure), which core.py processes.

Requests come from other nodes, and their effects contain one answer. An answer to our own request repeats
parts of the request, because it may be late. Errors are wire codes.
"""

from typing import TypeAlias

from barnabas.base.values import value
from barnabas.protocol.error_codes import ErrorCode
from barnabas.raft.facts import OffsetAndEpoch


@value
class Tick:
    """Some time has passed."""


@value(kw_only=True)
class VoteRequested:
    """A node requests our vote. With `pre_vote` it only asks whether it would be elected. (KIP-996)"""

    candidate: int
    epoch: int
    last: OffsetAndEpoch
    pre_vote: bool


@value(kw_only=True)
class VoteAnswered:
    voter: int
    asked_epoch: int
    pre_vote: bool
    error: ErrorCode
    leader: int | None
    epoch: int
    granted: bool


@value(kw_only=True)
class BeginEpochRequested:
    """A node announces that it leads."""

    leader: int
    epoch: int


@value(kw_only=True)
class BeginEpochAnswered:
    voter: int
    asked_epoch: int
    error: ErrorCode
    leader: int | None
    epoch: int


@value(kw_only=True)
class EndEpochRequested:
    """The leader resigns; `successors` are the voters with the longest logs, the best first."""

    leader: int
    epoch: int
    successors: tuple[int, ...]


@value(kw_only=True)
class EndEpochAnswered:
    voter: int
    asked_epoch: int
    error: ErrorCode
    leader: int | None
    epoch: int


@value(kw_only=True)
class FetchRequested:
    """A node fetches from `offset`. It has synced everything below, up to a record of `last_epoch`."""

    replica: int
    epoch: int
    offset: int
    last_epoch: int


@value(kw_only=True)
class SnapshotRequested:
    """A node fetches a snapshot, which only matters as a sign of life here."""

    replica: int
    epoch: int


@value(kw_only=True)
class FetchAnswered:
    """The answer to our fetch. `records` are opaque to the core; None without any."""

    peer: int
    # The serial of the fetch that it answers.
    serial: int
    error: ErrorCode
    leader: int | None
    epoch: int
    high_watermark: int | None = None
    diverging: OffsetAndEpoch | None = None
    snapshot: OffsetAndEpoch | None = None
    records: object | None = None


@value
class Unanswered:
    """Our request to this node failed, or its answer was invalid."""

    peer: int


@value
class HeardFrom:
    """The leader has sent a part of a snapshot."""

    peer: int


@value
class Flushed:
    """Our log is synced up to this offset."""

    upto: int


@value
class Truncated:
    """The effect TruncateTo is done."""


@value
class SnapshotInstalled:
    """The leader's snapshot is installed and the log restarted at it, or the installation failed."""

    serial: int


@value
class ResignRequested:
    """The node is shutting down."""


Event: TypeAlias = (
    Tick
    | VoteRequested
    | VoteAnswered
    | BeginEpochRequested
    | BeginEpochAnswered
    | EndEpochRequested
    | EndEpochAnswered
    | FetchRequested
    | SnapshotRequested
    | FetchAnswered
    | Unanswered
    | HeardFrom
    | Flushed
    | Truncated
    | SnapshotInstalled
    | ResignRequested
)
