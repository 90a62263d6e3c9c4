"""Read one partition for a fetch: records as ranges of files, and the partition's offsets.

Plain calls on the loop: NotCached and IndexDamaged go to the caller, which awaits the disk and retries.
"""

from typing import Final, cast

from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.fetch import AbortedTransaction, EpochEndOffset, FetchPartition, PartitionData
from barnabas.protocol.schema.fields import Records
from barnabas.replication.epoch_ends import end_of_epoch
from barnabas.replication.partition import Partition
from barnabas.storage.errors import OffsetOutOfRange
from barnabas.storage.log import Log, LogRead

_NO_EPOCH: Final = -1
# As in Kafka: aborted_transactions is empty if the partition was not found, and null if the read failed.
_NOT_LOOKED_AT: Final = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)


def read_partition(
    partition: Partition, asked: FetchPartition, *, committed: bool, bytes_max: int, whole_batch: bool
) -> PartitionData:
    """Read the records from the batch that contains the fetch offset, up to the consumer's limit.

    With `committed` the limit is the last stable offset. Raises PartitionError or StorageError.
    """
    # As in Kafka, any negative epoch means none here; other requests are stricter.
    partition.need_leader(max(_NO_EPOCH, asked.current_leader_epoch))
    log = partition.log
    high_watermark = log.high_watermark
    if asked.last_fetched_epoch != _NO_EPOCH:
        diverging = _divergence(partition, asked)
        if diverging is not None:
            return _data(asked, log, diverging_epoch=diverging, records=b"")
    stable = log.last_stable_offset
    upto = stable if committed else high_watermark
    found = log.read(asked.fetch_offset, upto=upto, bytes_max=bytes_max, whole_batch=whole_batch)
    if not committed:
        return PartitionData(
            partition_index=asked.partition,
            high_watermark=high_watermark,
            last_stable_offset=stable,
            log_start_offset=log.start_offset,
            aborted_transactions=None,
            records=_records(found),
        )
    aborted = log.aborted_within(asked.fetch_offset, found, upto)
    return PartitionData(
        partition_index=asked.partition,
        high_watermark=high_watermark,
        last_stable_offset=stable,
        log_start_offset=log.start_offset,
        aborted_transactions=[
            AbortedTransaction(producer_id=one.producer_id, first_offset=one.first_offset) for one in aborted
        ],
        records=_records(found),
    )


def _records(found: LogRead) -> Records:
    # The encoder only needs the length of records; the connection sends the ranges.
    return cast(Records, found) if found.size else b""


def _data(
    asked: FetchPartition, log: Log, *, diverging_epoch: EpochEndOffset, records: bytes
) -> PartitionData:
    return PartitionData(
        partition_index=asked.partition,
        high_watermark=log.high_watermark,
        last_stable_offset=log.last_stable_offset,
        log_start_offset=log.start_offset,
        diverging_epoch=diverging_epoch,
        aborted_transactions=None,
        records=records,
    )


def _divergence(partition: Partition, asked: FetchPartition) -> EpochEndOffset | None:
    """Where the reader's log diverges from ours; None if it does not. (KIP-595)"""
    log = partition.log
    epoch, end = end_of_epoch(partition, asked.last_fetched_epoch)
    if epoch == _NO_EPOCH:
        raise OffsetOutOfRange(requested=asked.fetch_offset, start=log.start_offset, end=log.end_offset)
    if epoch < asked.last_fetched_epoch or end < asked.fetch_offset:
        return EpochEndOffset(epoch=epoch, end_offset=end)
    return None


def nothing_read(partition: Partition, asked: FetchPartition, *, committed: bool) -> PartitionData:
    """The response for a partition whose records could not be read from disk in time."""
    log = partition.log
    return PartitionData(
        partition_index=asked.partition,
        high_watermark=log.high_watermark,
        last_stable_offset=log.last_stable_offset,
        log_start_offset=log.start_offset,
        aborted_transactions=[] if committed else None,
        records=b"",
    )


def failed(index: int, code: ErrorCode, *, looked_at: bool = True) -> PartitionData:
    """The response for a partition that could not be read."""
    return PartitionData(
        partition_index=index,
        error_code=code,
        high_watermark=-1,
        aborted_transactions=None if looked_at and code not in _NOT_LOOKED_AT else [],
        records=b"",
    )
