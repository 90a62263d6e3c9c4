"""Where an epoch ends in a leader's log, for those who ask whether their history is the leader's."""

from barnabas.replication.partition import Partition
from barnabas.storage.epochs import UNDEFINED_EPOCH, UNDEFINED_OFFSET


def end_of_epoch(partition: Partition, epoch: int) -> tuple[int, int]:
    """The largest epoch that is not above `epoch`, and where it ends; (-1, -1) if that is not known.

    The epoch of a leader begins with its being elected. Until its first batch the log does not know of it,
    and what was written before ends where the log ends.
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
