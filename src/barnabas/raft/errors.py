"""Errors of the quorum. Each carries its facts; the server's table maps them to wire codes."""

from errno import EACCES, EDQUOT, ENOSPC, EPERM, EROFS

from barnabas.base.errors import BarnabasError
from barnabas.raft.facts import OffsetAndEpoch


class RaftError(BarnabasError):
    """The root of the errors of this package."""


class NotLeader(RaftError):
    """Only the leader of the given epoch may do this. `leader` is the current one, if known."""

    def __init__(self, *, leader: int | None, epoch: int, asked_epoch: int) -> None:
        known = "the leader is unknown" if leader is None else f"the leader is node {leader}"
        super().__init__(f"this node does not lead epoch {asked_epoch}; {known} in epoch {epoch}")
        self.leader = leader
        self.epoch = epoch
        self.asked_epoch = asked_epoch


class LeadershipLost(NotLeader):
    """Another leader was elected after the append: the records may be committed or lost."""


class RecordsTooLarge(RaftError):
    """The records do not fit into one atomic batch."""

    def __init__(self, *, size: int, limit: int) -> None:
        super().__init__(f"{size} bytes of records must be written atomically, but the limit is {limit}")
        self.size = size
        self.limit = limit


class TryAgain(RaftError):
    """The quorum cannot append at the moment. Nothing was written."""


class NoDescriptor(TryAgain):
    """The log file could not be opened for lack of descriptors. The disk is fine."""

    def __init__(self, error: OSError) -> None:
        super().__init__(f"cannot open the metadata log: {error}")


class TooMuchUncommitted(TryAgain):
    """Too many bytes wait for their commit. Retry later."""

    def __init__(self, *, waiting: int, limit: int) -> None:
        super().__init__(f"{waiting} bytes are uncommitted, the limit is {limit}")


class QuorumClosed(RaftError):
    """The quorum was closed or failed before the operation completed."""

    def __init__(self, why: str) -> None:
        super().__init__(f"quorum is closed: {why}")


class BadSnapshotId(RaftError):
    """No snapshot with this offset and epoch is possible."""

    def __init__(self, snapshot_id: OffsetAndEpoch, why: str) -> None:
        super().__init__(
            f"cannot write a snapshot at offset {snapshot_id.offset} of epoch {snapshot_id.epoch}: {why}"
        )
        self.snapshot_id = snapshot_id


class BrokenPromise(RaftError):
    """A leader violates the protocol, for example by truncating committed records. Nothing was done."""


class MissingSnapshot(RaftError):
    """The log does not start at offset 0, and no snapshot covers the records before its start."""

    def __init__(self, directory: str, *, log_start: int, newest: OffsetAndEpoch | None) -> None:
        there = "there is no snapshot" if newest is None else f"the newest snapshot ends at {newest.offset}"
        super().__init__(f"{directory}: the log starts at offset {log_start}, but {there}")


class MetadataUnreadable(RaftError):
    """A file of the metadata log cannot be used. `why` names the file and the byte."""

    def __init__(self, why: str, remedy: str) -> None:
        super().__init__(f"cannot read the cluster metadata: {why}; {remedy}")


class NoRoom(RaftError):
    """The disk of the metadata log is full. Nothing was appended; retry later."""

    def __init__(self, directory: str) -> None:
        super().__init__(f"cannot write metadata: the disk of {directory} is full")


def metadata_damaged(directory: str, why: object) -> MetadataUnreadable:
    """The error for damaged content."""
    remedy = (
        f"restore {directory} from a backup or, without one, move the log directory away "
        "and start a new cluster"
    )
    return MetadataUnreadable(str(why), remedy)


def metadata_failed(directory: str, error: OSError) -> MetadataUnreadable:
    """The error for a file that the operating system cannot read or write."""
    if error.errno in (EACCES, EPERM, EROFS):
        remedy = "give the broker's user read and write permission for all files there"
    elif error.errno in (ENOSPC, EDQUOT):
        remedy = "free space on this disk"
    else:
        remedy = f"check the disk, or restore {directory} from a backup"
    return MetadataUnreadable(f"{error.filename or directory}: {error.strerror or error}", remedy)
