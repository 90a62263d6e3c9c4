"""What can happen to a member of the quorum (pure). core.py takes these in.

Requests come from other nodes, and their effects hold one answer. What comes back for a request of ours names
what was asked, because an answer may be late. An error is the wire's code for it.
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
    """A node wants to lead. With `pre_vote` it only asks whether it would be elected. (KIP-996)"""

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
    """A node says that it leads."""

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
    """The leader stops leading, and says who has most of its log, the best first."""

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
    """A node has everything before `offset` on its disk, the last of it of `last_epoch`, and wants more."""

    replica: int
    epoch: int
    offset: int
    last_epoch: int


@value(kw_only=True)
class SnapshotRequested:
    """A node reads a snapshot. What it gets is not our affair, but it has been heard of."""

    replica: int
    epoch: int


@value(kw_only=True)
class FetchAnswered:
    """The records are what the driver makes of them; None without any."""

    peer: int
    # Of the fetch that it answers.
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
    """What was asked of this node did not reach it, or its answer made no sense."""

    peer: int


@value
class HeardFrom:
    """The leader sent a part of a snapshot."""

    peer: int


@value
class Flushed:
    """Everything of our log before this offset is on the disk."""

    upto: int


@value
class Truncated:
    """The log was cut as it was asked for."""


@value
class SnapshotInstalled:
    """The leader's snapshot is here, and the log goes on behind it; or it could not be had any more."""

    serial: int


@value
class ResignRequested:
    """The node is about to stop."""


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
