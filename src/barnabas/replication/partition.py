"""One partition on this broker: its leader, its high watermark, and the requests that wait for changes.

The state comes from the metadata image, records come through append(). With other replicas in the ISR the
high watermark waits for them; otherwise it follows the log end offset.
"""

from typing import Final, Protocol

from barnabas.base.checksum import Checksums
from barnabas.base.ids import TopicPartition, Uuid
from barnabas.metadata.image import PartitionImage
from barnabas.replication.errors import (
    FencedLeaderEpoch,
    NotEnoughReplicas,
    NotLeader,
    UnknownLeaderEpoch,
)
from barnabas.storage.files import Buffer
from barnabas.storage.log import Appended, Log
from barnabas.storage.overlap import append_produced
from barnabas.storage.producers.table import Origin, Verification

NO_EPOCH: Final = -1


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
    ) -> Appended:
        """Append a client's batch. An OSError goes to the caller, which knows the directory.

        With `must_verify`, the first batch of a transaction needs its `verification`.
        """
        appended = append_produced(
            self.log,
            data,
            checksums,
            leader_epoch=self.leader_epoch,
            now_ms=now_ms,
            verification=verification,
            must_verify=must_verify,
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
