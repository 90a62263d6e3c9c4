"""What the core wants done (pure). The driver does it in order, and takes in no other event meanwhile."""

from typing import TypeAlias

from barnabas.base.values import value
from barnabas.protocol.error_codes import ErrorCode
from barnabas.raft.facts import Election, OffsetAndEpoch


@value
class PersistState:
    """Write it to the disk itself. What comes after this tells others about it, or counts on it."""

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
    # Where our log ends. All of it is on the disk, and the leader will count on that.
    end: OffsetAndEpoch
    # Tells apart what comes back for this from what comes back for an earlier one.
    serial: int


@value(kw_only=True)
class InstallSnapshot:
    """Get this snapshot from the leader, start the log anew behind it, and say SnapshotInstalled.

    It takes a while. Before the log is touched, is_installing() says whether it is still wanted.
    """

    leader: int
    epoch: int
    snapshot: OffsetAndEpoch
    serial: int


@value(kw_only=True)
class AppendLeaderChange:
    """The first record of an epoch: who leads, and who has voted for it."""

    epoch: int
    granting: tuple[int, ...]


@value
class AppendFetched:
    """Append what the leader sent, and say Flushed when it is on the disk."""

    records: object


@value
class TruncateTo:
    """Cut the log here, and say Truncated."""

    offset: int


@value
class HighWatermarkAdvanced:
    """Everything before it is committed: it will be in the log of every leader to come."""

    offset: int


@value(kw_only=True)
class BecameLeader:
    """Records may be appended in this epoch, which starts at this offset."""

    epoch: int
    start: int


@value
class LostLeadership:
    """No more records may be appended in this epoch."""

    epoch: int


@value
class LeaderChanged:
    """Somebody leads, or nobody does any more."""

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
    """For BeginQuorumEpoch and EndQuorumEpoch, and whether FetchSnapshot may go on."""

    error: ErrorCode
    leader: int | None
    epoch: int


@value(kw_only=True)
class FetchAnswer:
    """At most one of the last three is set: where the logs part, what to load instead, where to read from."""

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
