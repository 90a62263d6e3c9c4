"""The effects of the core (pure). The driver executes them in order before the next event."""

from typing import TypeAlias

from barnabas.base.values import value
from barnabas.protocol.error_codes import ErrorCode
from barnabas.raft.facts import Election, OffsetAndEpoch


@value
class PersistState:
    """Write the election durably. Later effects report it to others, or rely on it."""

    election: Election


@value(kw_only=True)
class SendVote:
    to: int
    epoch: int
    last: OffsetAndEpoch
    pre_vote: bool


@value(kw_only=True)
class SendBeginEpoch:
    to: int
    epoch: int


@value(kw_only=True)
class SendEndEpoch:
    to: int
    epoch: int
    successors: tuple[int, ...]


@value(kw_only=True)
class SendFetch:
    to: int
    epoch: int
    # The end of our log. All of it is synced, which the leader relies on.
    end: OffsetAndEpoch
    # Identifies the answer to this fetch.
    serial: int


@value(kw_only=True)
class InstallSnapshot:
    """Fetch this snapshot from the leader, restart the log at it, and feed SnapshotInstalled.

    This takes a while, so check is_installing() before the log is changed.
    """

    leader: int
    epoch: int
    snapshot: OffsetAndEpoch
    serial: int


@value(kw_only=True)
class AppendLeaderChange:
    """Append the first record of an epoch, with the leader and the voters that elected it."""

    epoch: int
    granting: tuple[int, ...]


@value
class AppendFetched:
    """Append the leader's records, and feed Flushed when they are synced."""

    records: object


@value
class TruncateTo:
    """Truncate the log at this offset, and feed Truncated."""

    offset: int


@value
class HighWatermarkAdvanced:
    """Everything below it is committed: every future leader will have it."""

    offset: int


@value(kw_only=True)
class BecameLeader:
    """Records may be appended in this epoch, which starts at offset `start`."""

    epoch: int
    start: int


@value
class LostLeadership:
    """No more records may be appended in this epoch."""

    epoch: int


@value
class LeaderChanged:
    """The leader has changed; None if no leader is known."""

    leader: int | None
    epoch: int


@value(kw_only=True)
class VoteAnswer:
    error: ErrorCode
    leader: int | None
    epoch: int
    granted: bool


@value(kw_only=True)
class EpochAnswer:
    """The answer to BeginQuorumEpoch, EndQuorumEpoch and FetchSnapshot."""

    error: ErrorCode
    leader: int | None
    epoch: int


@value(kw_only=True)
class FetchAnswer:
    """At most one of the last three is set: divergence, snapshot to load, or offset to read from."""

    error: ErrorCode
    leader: int | None
    epoch: int
    high_watermark: int | None = None
    diverging: OffsetAndEpoch | None = None
    snapshot: OffsetAndEpoch | None = None
    read_from: int | None = None


Answer: TypeAlias = VoteAnswer | EpochAnswer | FetchAnswer
Request: TypeAlias = SendVote | SendBeginEpoch | SendEndEpoch | SendFetch
Effect: TypeAlias = (
    PersistState
    | SendVote
    | SendBeginEpoch
    | SendEndEpoch
    | SendFetch
    | InstallSnapshot
    | AppendLeaderChange
    | AppendFetched
    | TruncateTo
    | HighWatermarkAdvanced
    | BecameLeader
    | LostLeadership
    | LeaderChanged
    | VoteAnswer
    | EpochAnswer
    | FetchAnswer
)
