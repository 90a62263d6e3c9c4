"""The core's read-only view of the log (pure): its start, its end, and the end of each epoch.

The driver executes all effects of an event before the next event, so the view always matches the core's
decisions.
"""

from typing import Protocol

from barnabas.raft.facts import OffsetAndEpoch


class LogView(Protocol):
    """The metadata log, or a model of it."""

    @property
    def start_offset(self) -> int: ...

    @property
    def end(self) -> OffsetAndEpoch:
        """The log end, with the epoch of the last record; without records that of the snapshot, or 0."""

    @property
    def flushed_offset(self) -> int:
        """Everything below it is synced."""

    def end_of_epoch(self, epoch: int) -> OffsetAndEpoch:
        """The end of the largest epoch up to `epoch`; the log end if none is known."""

    @property
    def earliest_snapshot(self) -> OffsetAndEpoch | None: ...

    @property
    def latest_snapshot(self) -> OffsetAndEpoch | None: ...


def cut_for(log: LogView, diverging: OffsetAndEpoch) -> int:
    """Where to truncate our log if the leader's `diverging.epoch` ends at `diverging.offset`."""
    ours = log.end_of_epoch(diverging.epoch)
    if diverging.epoch == 0 or ours.epoch == diverging.epoch:
        return min(ours.offset, diverging.offset)
    # We do not have that epoch. Our records of earlier ones may still match, so retry from there.
    return min(ours.offset, log.end.offset)


def check_fetch(log: LogView, fetched: OffsetAndEpoch) -> tuple[OffsetAndEpoch | None, OffsetAndEpoch | None]:
    """(None, None) if our log continues a log with that end; otherwise the divergence, or a snapshot."""
    latest = log.latest_snapshot
    if fetched.offset == 0 and latest is not None:
        # For an empty log the snapshot is faster.
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
