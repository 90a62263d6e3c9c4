"""One partition on this broker: who leads it, what of it is committed, and who waits for that to change.

The state comes from the metadata image; records come in through append(). With other replicas in the ISR the
high watermark waits for them; alone it follows the end of the log.
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
    """Somebody who waits for a partition: for more bytes, for a high watermark."""

    def poke(self, partition: "Partition") -> None:
        """Something about the partition has changed. It may leave `partition.waiters` now."""


class Partition:
    """Belongs to Replicas, which alone changes its role."""

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
        # In the order of their coming.
        self.waiters: dict[Waiter, None] = {}
        self._see(image)
        self._follow()

    def take(self, image: PartitionImage) -> None:
        """Something was decided about this partition."""
        self._see(image)
        self._follow()
        self.changed()

    def _see(self, image: PartitionImage) -> None:
        """What every append asks for is kept at hand."""
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
        """NotLeader, or what is wrong with the epoch that a client gave."""
        if epoch != NO_EPOCH and epoch != self.leader_epoch:
            if epoch < self.leader_epoch:
                raise FencedLeaderEpoch(self.name, given=epoch, current=self.leader_epoch)
            raise UnknownLeaderEpoch(self.name, given=epoch, current=self.leader_epoch)
        if not self.is_leader:
            # A failed disk is told as such, although it has cost us the leadership, too.
            self.log.check_open()
            raise NotLeader(self.name, leader=self.image.leader, leader_epoch=self.leader_epoch)

    def need_in_sync(self) -> None:
        """For acks=all: enough replicas are in sync."""
        # A partition that has fewer replicas than that cannot have more of them in sync. (KIP-966)
        needed = min(self.log.rules.min_in_sync, self._replicas)
        # Replicas on other brokers do not fetch yet: with one in the ISR nothing would ever be committed.
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
        """Append what a client sent. OSErrors go to the caller, who knows the directory.

        The first batch of a transaction shows its `verification`, where it must.
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
        """Append what a coordinator says: its records, or the marker that ends a transaction."""
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
        """Tell everybody who waits: there is more to read, or a different leader, or an end."""
        if len(self.waiters) == 1:
            # A coordinator waits for everything that it writes, and mostly nobody else does.
            next(iter(self.waiters)).poke(self)
            return
        for waiter in list(self.waiters):
            waiter.poke(self)
