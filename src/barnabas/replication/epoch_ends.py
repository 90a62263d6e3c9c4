"""The end offset of an epoch in a leader's log, for followers and consumers that check for divergence."""

from barnabas.replication.partition import Partition
from barnabas.storage.epochs import UNDEFINED_EPOCH, UNDEFINED_OFFSET


def end_of_epoch(partition: Partition, epoch: int) -> tuple[int, int]:
    """The largest epoch up to `epoch`, and its end offset; (-1, -1) if unknown.

    A leader's epoch begins with its election. Until the first batch the log has no entry for it, and the
    previous epoch ends at the log end offset.
    """
    log, current = partition.log, partition.leader_epoch
    if epoch == UNDEFINED_EPOCH or log.last_epoch >= current:
        return log.epochs.end_offset_for(epoch, log.end_offset)
    if epoch > current:
        return UNDEFINED_EPOCH, UNDEFINED_OFFSET
    latest = log.epochs.latest
    if epoch == current or latest is None:
        return epoch, log.end_offset
    if epoch >= latest:
        return latest, log.end_offset
    return log.epochs.end_offset_for(epoch, log.end_offset)
