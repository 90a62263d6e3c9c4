"""What can go wrong with the quorum. Each carries its facts; the server's table gives them wire codes."""

from errno import EACCES, EDQUOT, ENOSPC, EPERM, EROFS

from barnabas.base.errors import BarnabasError
from barnabas.raft.facts import OffsetAndEpoch


class RaftError(BarnabasError):
    """Something about the quorum that has a name."""


class NotLeader(RaftError):
    """Only the leader of the given epoch may do this. The hint says who leads now, as far as is known."""

    def __init__(self, *, leader: int | None, epoch: int, asked_epoch: int) -> None:
        known = "nobody is known to lead" if leader is None else f"node {leader} leads"
        super().__init__(f"not the leader of epoch {asked_epoch}: {known} in epoch {epoch}")
        self.leader = leader
        self.epoch = epoch
        self.asked_epoch = asked_epoch


class LeadershipLost(NotLeader):
    """The records were appended, and then another leader came: they may be committed or they may be gone."""


class RecordsTooLarge(RaftError):
    """One atomic batch has to hold them, and a batch cannot be that large."""

    def __init__(self, *, size: int, limit: int) -> None:
        super().__init__(f"the records take {size} bytes, and one batch at most {limit}")
        self.size = size
        self.limit = limit


class TryAgain(RaftError):
    """The quorum could not take it just now. Nothing is written."""


class NoDescriptor(TryAgain):
    """The file of the log could not be opened. Its disk is all right."""

    def __init__(self, error: OSError) -> None:
        super().__init__(f"the metadata log could not be opened: {error}")


class TooMuchUncommitted(TryAgain):
    """So much waits for being committed that no more is taken. Come again."""

    def __init__(self, *, waiting: int, limit: int) -> None:
        super().__init__(f"{waiting} bytes wait for being committed, and {limit} is the limit")


class QuorumClosed(RaftError):
    """The quorum was closed, or failed, before this was done."""

    def __init__(self, why: str) -> None:
        super().__init__(f"the quorum takes nothing more: {why}")


class BadSnapshotId(RaftError):
    """There cannot be a snapshot of this offset and epoch."""

    def __init__(self, snapshot_id: OffsetAndEpoch, why: str) -> None:
        super().__init__(f"no snapshot at offset {snapshot_id.offset} of epoch {snapshot_id.epoch}: {why}")
        self.snapshot_id = snapshot_id


class BrokenPromise(RaftError):
    """A leader asks for what consensus rules out, such as cutting off what is committed. Nothing was done."""


class MissingSnapshot(RaftError):
    """The log does not reach back to its first record, and there is no snapshot in the place of the rest."""

    def __init__(self, directory: str, *, log_start: int, newest: OffsetAndEpoch | None) -> None:
        there = (
            "there is no snapshot" if newest is None else f"the newest snapshot is of offset {newest.offset}"
        )
        super().__init__(f"{directory}: the log starts at offset {log_start}, and {there}")


class MetadataUnreadable(RaftError):
    """The metadata log, or what belongs to it, cannot be used. `why` names the file and the byte."""

    def __init__(self, why: str, remedy: str) -> None:
        super().__init__(f"cannot read the cluster metadata: {why}; {remedy}")


class NoRoom(RaftError):
    """The disk of the metadata log is full. Nothing was appended: come again."""

    def __init__(self, directory: str) -> None:
        super().__init__(f"no room for metadata: the disk of {directory} is full")


def metadata_damaged(directory: str, why: object) -> MetadataUnreadable:
    """The bytes are not what they must be."""
    remedy = (
        f"restore {directory} from a backup, or, without one, move the log directory away "
        "and start a new cluster"
    )
    return MetadataUnreadable(str(why), remedy)


def metadata_failed(directory: str, error: OSError) -> MetadataUnreadable:
    """The operating system says that a file cannot be read or written."""
    if error.errno in (EACCES, EPERM, EROFS):
        remedy = "let the user of the broker read and write all files there"
    elif error.errno in (ENOSPC, EDQUOT):
        remedy = "free some space on this disk"
    else:
        remedy = f"check the disk, or restore {directory} from a backup"
    return MetadataUnreadable(f"{error.filename or directory}: {error.strerror or error}", remedy)
