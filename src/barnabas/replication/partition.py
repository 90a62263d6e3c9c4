"""One partition on this broker (compiled): its leader, its high watermark, and the requests that wait for it.

The state comes from the metadata image, records come through append() and leave through read(). With other
replicas in the ISR the high watermark waits for them; otherwise it follows the log end offset.
"""

from typing import Final, Protocol, cast

from barnabas.base.checksum import Checksums
from barnabas.base.ids import TopicPartition, Uuid
from barnabas.metadata.image import PartitionImage
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.fetch import AbortedTransaction, EpochEndOffset, FetchPartition, PartitionData
from barnabas.protocol.schema.fields import Records
from barnabas.replication.errors import (
    FencedLeaderEpoch,
    NotEnoughReplicas,
    NotLeader,
    UnknownLeaderEpoch,
)
from barnabas.storage.epochs import UNDEFINED_EPOCH, UNDEFINED_OFFSET
from barnabas.storage.errors import OffsetOutOfRange
from barnabas.storage.files import Buffer
from barnabas.storage.log import Appended, Log
from barnabas.storage.producers.table import Origin, Verification

NO_EPOCH: Final = -1
# As in Kafka: aborted_transactions is empty if the partition was not found, and null if the read failed.
_NOT_LOOKED_AT: Final = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
_new_tuple: Final = tuple.__new__


class Waiter(Protocol):
    """A request that waits for a partition: for more bytes, or for a high watermark."""

    def poke(self, partition: "Partition") -> None:
        """Called when the partition changes. It may remove itself from `partition.waiters`."""


class Partition:
    """A partition. Only Replicas changes its role."""

    __slots__ = (
        "_is_alone",
        "_isr",
        "_replicas",
        "image",
        "is_leader",
        "leader_epoch",
        "log",
        "me",
        "name",
        "topic_id",
        "tp",
        "waiters",
    )

    def __init__(self, me: int, tp: TopicPartition, topic_id: Uuid, log: Log, image: PartitionImage) -> None:
        self.me: Final = me
        self.tp: Final = tp
        self.name: Final = str(tp)
        self.topic_id: Final = topic_id
        self.log: Final = log
        # In order of arrival.
        self.waiters: dict[Waiter, None] = {}
        self._see(image)
        self._follow()

    def take(self, image: PartitionImage) -> None:
        """Apply a change of the metadata image."""
        self._see(image)
        self._follow()
        self.changed()

    def _see(self, image: PartitionImage) -> None:
        """Set the image, and cache what every append needs."""
        self.image = image
        self.is_leader = image.leader == self.me
        self.leader_epoch = image.leader_epoch
        self._replicas = len(image.replicas)
        self._isr = len(image.isr)
        self._is_alone = image.isr == (self.me,)

    def _follow(self) -> None:
        if self.is_leader and self._is_alone:
            log = self.log
            if log.end_offset > log.high_watermark:
                log.advance_high_watermark(log.end_offset)

    # Guards

    def need_leader(self, epoch: int = NO_EPOCH) -> None:
        """Raise NotLeader, or an error if the client's epoch is not the current one."""
        if epoch != NO_EPOCH and epoch != self.leader_epoch:
            if epoch < self.leader_epoch:
                raise FencedLeaderEpoch(self.name, given=epoch, current=self.leader_epoch)
            raise UnknownLeaderEpoch(self.name, given=epoch, current=self.leader_epoch)
        if not self.is_leader:
            # After a disk failure report that, although the broker has lost the leadership by it, too.
            self.log.check_open()
            raise NotLeader(self.name, leader=self.image.leader, leader_epoch=self.leader_epoch)

    def need_in_sync(self) -> None:
        """Raise NotEnoughReplicas unless the ISR is large enough for acks=all."""
        # The requirement is limited by the replication factor. (KIP-966)
        needed = min(self.log.rules.min_in_sync, self._replicas)
        # Replicas on other brokers do not fetch yet: with one in the ISR the high watermark would never move.
        if self._isr < needed or not self._is_alone:
            raise NotEnoughReplicas(self.name, isr=self._isr, needed=needed)

    # Records

    def append(
        self,
        data: Buffer,
        checksums: Checksums,
        now_ms: int,
        verification: Verification | None = None,
        must_verify: bool = False,
        start: int = -1,
    ) -> Appended:
        """Append a client's batch. An OSError goes to the caller, which knows the directory.

        `start` is the position of the batch in its request, if known. With `must_verify`, the first batch of
        a transaction needs its `verification`.
        """
        appended = self.log.append_as_leader(
            data,
            leader_epoch=self.leader_epoch,
            now_ms=now_ms,
            verification=verification,
            must_verify=must_verify,
            start=start,
            checksums=checksums,
        )
        self._appended()
        return appended

    def append_of_coordinator(
        self,
        data: Buffer,
        now_ms: int,
        *,
        verification: Verification | None = None,
        must_verify: bool = False,
        transaction_version: int = 0,
    ) -> Appended:
        """Append a coordinator's records, or a transaction marker."""
        appended = self.log.append_as_leader(
            data,
            leader_epoch=self.leader_epoch,
            now_ms=now_ms,
            origin=Origin.COORDINATOR,
            verification=verification,
            must_verify=must_verify,
            transaction_version=transaction_version,
        )
        self._appended()
        return appended

    def _appended(self) -> None:
        log = self.log
        if self._is_alone:
            log.advance_high_watermark(log.end_offset)
            if self.waiters:
                self.changed()

    def changed(self) -> None:
        """Poke all waiters: there are new records, a new leader, or the partition is gone."""
        if len(self.waiters) == 1:
            # Fast path: usually the only waiter is the coordinator that wrote the records.
            next(iter(self.waiters)).poke(self)
            return
        for waiter in list(self.waiters):
            waiter.poke(self)

    # Reading

    def read(
        self, asked: FetchPartition, *, committed: bool, bytes_max: int, whole_batch: bool
    ) -> PartitionData:
        """Read the records from the batch that contains the fetch offset, up to the consumer's limit.

        With `committed` the limit is the last stable offset. Raises PartitionError or StorageError; NotCached
        and IndexDamaged go to the caller, which awaits the disk and retries.
        """
        # As in Kafka, any negative epoch means none here; other requests are stricter.
        self.need_leader(max(NO_EPOCH, asked.current_leader_epoch))
        log = self.log
        high_watermark = log.high_watermark
        if asked.last_fetched_epoch != NO_EPOCH:
            diverging = self._divergence(asked)
            if diverging is not None:
                return PartitionData(
                    partition_index=asked.partition,
                    high_watermark=high_watermark,
                    last_stable_offset=log.last_stable_offset,
                    log_start_offset=log.start_offset,
                    diverging_epoch=diverging,
                    aborted_transactions=None,
                    records=b"",
                )
        stable = log.last_stable_offset
        upto = stable if committed else high_watermark
        found = log.read(asked.fetch_offset, upto=upto, bytes_max=bytes_max, whole_batch=whole_batch)
        aborted: list[AbortedTransaction] | None = None
        if committed:
            aborted = [
                AbortedTransaction(producer_id=one.producer_id, first_offset=one.first_offset)
                for one in log.aborted_within(asked.fetch_offset, found, upto)
            ]
        return PartitionData(
            partition_index=asked.partition,
            high_watermark=high_watermark,
            last_stable_offset=stable,
            log_start_offset=log.start_offset,
            aborted_transactions=aborted,
            # The encoder only needs the length of records; the connection sends the ranges.
            records=cast(Records, found) if found.size else b"",
        )

    def read_nothing(self, asked: FetchPartition, *, committed: bool) -> PartitionData:
        """The response for records that could not be read from disk in time."""
        log = self.log
        return PartitionData(
            partition_index=asked.partition,
            high_watermark=log.high_watermark,
            last_stable_offset=log.last_stable_offset,
            log_start_offset=log.start_offset,
            aborted_transactions=[] if committed else None,
            records=b"",
        )

    def _divergence(self, asked: FetchPartition) -> EpochEndOffset | None:
        """Where the reader's log diverges from ours; None if it does not. (KIP-595)"""
        log = self.log
        epoch, end = self.end_of_epoch(asked.last_fetched_epoch)
        if epoch == UNDEFINED_EPOCH:
            raise OffsetOutOfRange(requested=asked.fetch_offset, start=log.start_offset, end=log.end_offset)
        if epoch < asked.last_fetched_epoch or end < asked.fetch_offset:
            return EpochEndOffset(epoch=epoch, end_offset=end)
        return None

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        """The largest epoch up to `epoch`, and its end offset; (-1, -1) if unknown.

        A leader's epoch begins with its election. Until the first batch the log has no entry for it, and the
        previous epoch ends at the log end offset.
        """
        log, current = self.log, self.leader_epoch
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


def failed(index: int, code: ErrorCode, *, looked_at: bool = True) -> PartitionData:
    """The response for a partition that could not be read."""
    return PartitionData(
        partition_index=index,
        error_code=code,
        high_watermark=-1,
        aborted_transactions=None if looked_at and code not in _NOT_LOOKED_AT else [],
        records=b"",
    )


class PartitionTable(Protocol):
    """The partitions of this broker: Replicas."""

    partitions: dict[TopicPartition, Partition]

    def get(self, tp: TopicPartition) -> Partition:
        """Raises UnknownPartition, or the reason why it is offline."""


def find_partition(table: PartitionTable, topic: str, index: int) -> Partition:
    """Find a partition that a request names. Raises UnknownPartition, or the reason why it is offline."""
    # Half of the cost of TopicPartition(topic, index): the named tuple's own constructor is interpreted.
    tp = _new_tuple(TopicPartition, (topic, index))
    return table.partitions.get(tp) or table.get(tp)
