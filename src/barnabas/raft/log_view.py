"""What the core knows of the log (pure): where it starts and ends, and which epoch ends where.

The core looks and never touches. As the driver carries out all effects of an event before it takes in the
next, what is seen here is always what the core's own decisions have led to.
"""

from typing import Protocol

from barnabas.raft.facts import OffsetAndEpoch


class LogView(Protocol):
    """The metadata log, or a model of it."""

    @property
    def start_offset(self) -> int: ...

    @property
    def end(self) -> OffsetAndEpoch:
        """Where it ends, and the epoch of the last record; the snapshot's if there are no records, or 0."""

    @property
    def flushed_offset(self) -> int:
        """Everything before it is on the disk."""

    def end_of_epoch(self, epoch: int) -> OffsetAndEpoch:
        """Where the largest epoch ends that is not above `epoch`; the end of the log if none is known."""

    @property
    def earliest_snapshot(self) -> OffsetAndEpoch | None: ...

    @property
    def latest_snapshot(self) -> OffsetAndEpoch | None: ...


def cut_for(log: LogView, diverging: OffsetAndEpoch) -> int:
    """Where to cut our log if the leader says that its epoch `diverging.epoch` ends at `diverging.offset`."""
    ours = log.end_of_epoch(diverging.epoch)
    if diverging.epoch == 0 or ours.epoch == diverging.epoch:
        return min(ours.offset, diverging.offset)
    # The leader's epoch is unknown here. What we have of earlier ones may still be the same: ask again from
    # there.
    return min(ours.offset, log.end.offset)


def check_fetch(log: LogView, fetched: OffsetAndEpoch) -> tuple[OffsetAndEpoch | None, OffsetAndEpoch | None]:
    """Whether a log that ends there is part of ours: (None, None), or where they part, or a snapshot."""
    latest = log.latest_snapshot
    if fetched.offset == 0 and latest is not None:
        # An empty log: the snapshot is the shorter way.
        return None, latest
    if fetched.offset == 0 and log.start_offset == 0:
        return None, None
    earliest = log.earliest_snapshot
    if (
        earliest is not None
        and latest is not None
        and (
            fetched.offset < log.start_offset
            or (fetched.offset == log.start_offset and fetched.epoch != earliest.epoch)
            or fetched.epoch < earliest.epoch
        )
    ):
        return None, latest
    end = log.end_of_epoch(fetched.epoch)
    if end.epoch != fetched.epoch or end.offset < fetched.offset:
        return end, None
    return None, None
