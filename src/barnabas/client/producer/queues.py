"""The waiting batches of each partition, and the partitions of each topic with the sticky one. Pure."""

from collections import deque
from random import Random
from typing import Any

from barnabas.base.ids import TopicPartition, Uuid
from barnabas.client.metadata import TopicMetadata
from barnabas.client.producer.batch import Batch
from barnabas.client.producer.numbering import Numbering
from barnabas.client.producer.partitioner import next_sticky
from barnabas.client.producer.stamp import Identity


class PartitionQueue:
    """Batches to retry come first, in their original send order; the last batch may still be open."""

    __slots__ = (
        "_next_send_order",
        "batches",
        "in_flight",
        "last_error",
        "needs_identity",
        "node_sender",
        "numbering",
        "open",
        "scheduled",
        "timer_ms",
        "tp",
    )

    def __init__(self, tp: TopicPartition, *, idempotent: bool) -> None:
        self.tp = tp
        self.batches: deque[Batch] = deque()
        # The last of the batches, if it takes more records.
        self.open: Batch | None = None
        self.in_flight = 0
        self.numbering = Numbering() if idempotent else None
        # It waits for a producer id other than the current one.
        self.needs_identity = False
        # Why the last attempt to send failed.
        self.last_error: Exception | None = None
        self._next_send_order = 0
        # Used by the sender: the leader's NodeSender, whether the queue is in a ready list, and its timer.
        self.node_sender: Any = None
        self.scheduled = False
        self.timer_ms: int | None = None

    def ready_at(self) -> int | None:
        """Return when linger or backoff of the first batch ends; None if the queue is empty."""
        if not self.batches:
            return None
        front = self.batches[0]
        if front.send_order:
            return front.not_before_ms
        return front.ready_ms if front is self.open else front.created_ms

    def take(self, now_ms: int, identity: Identity | None, *, one_at_a_time: bool) -> Batch | None:
        """Take the batch to send now, numbered, or None. Without `identity` only batches that need none."""
        ready_ms = self.ready_at()
        if ready_ms is None or ready_ms > now_ms or (one_at_a_time and self.in_flight):
            return None
        batch = self.batches[0]
        if self.numbering is not None and not self._may_go(self.numbering, batch, identity):
            return None
        self.batches.popleft()
        if batch is self.open:
            self.open = None
        if not batch.send_order:
            batch.send_order = (self._next_send_order,)
            self._next_send_order += 1
        if self.numbering is not None and not batch.numbered:
            assert identity is not None, "a batch without numbers needs a producer id"
            self.numbering.begin(batch, identity)
        batch.in_flight = True
        batch.attempts += 1
        self.in_flight += 1
        return batch

    def _may_go(self, numbering: Numbering, batch: Batch, identity: Identity | None) -> bool:
        if batch.numbered:
            return numbering.may_repeat(batch)
        self.needs_identity = identity is None or numbering.needs_identity(identity)
        return identity is not None and not self.needs_identity and numbering.may_begin(identity)

    def returned(self, batch: Batch) -> None:
        """The request of the batch has ended."""
        assert batch.in_flight, "the batch is not in flight"
        batch.in_flight = False
        self.in_flight -= 1

    def put_back(self, batch: Batch) -> None:
        """Queue a batch for a retry, before all batches that were sent after it."""
        at = 0
        for each in self.batches:
            if not each.send_order or each.send_order > batch.send_order:
                break
            at += 1
        self.batches.insert(at, batch)

    def split(self, batch: Batch, parts: list[Batch]) -> None:
        """Queue the parts in place of the batch."""
        for number, part in enumerate(parts):
            part.send_order = (*batch.send_order, number)
        if self.numbering is not None:
            self.numbering.split(batch, parts)
        for part in parts:
            self.put_back(part)

    def remove(self, batch: Batch) -> None:
        """Remove a failed batch, unless it is in flight or parked."""
        if batch is self.open:
            self.open = None
        if not batch.in_flight and not batch.parked:
            self.batches.remove(batch)

    def settle(self) -> list[Batch]:
        """Settle the numbering after an outcome, and return the batches that failed by it."""
        settled = None if self.numbering is None else self.numbering.settle()
        if settled is None:
            return []
        # Every numbered batch of the queue is in `again`, without its numbers.
        again = set(settled.again)
        rest = [batch for batch in self.batches if batch not in again]
        self.batches = deque([*settled.again, *rest])
        return settled.failed


class TopicQueues:
    __slots__ = (
        "_batch_size",
        "_idempotent",
        "_led",
        "_sticky_batch",
        "_sticky_bytes",
        "count",
        "known",
        "name",
        "queues",
        "sticky",
        "topic_id",
        "used",
    )

    def __init__(self, name: str, *, batch_size: int, idempotent: bool) -> None:
        self.name = name
        # By partition number. More than `count` if the topic was recreated with fewer partitions.
        self.queues: list[PartitionQueue] = []
        self.count = 0
        self.topic_id: Uuid | None = None
        # Whether the topic is in the current metadata.
        self.known = False
        # A batch was opened since the topic was last marked as in use in the cluster's metadata.
        self.used = False
        # The sticky partition; -1 before one is chosen.
        self.sticky = -1
        self._led: list[bool] = []
        self._idempotent = idempotent
        self._batch_size = batch_size
        self._sticky_batch: Batch | None = None
        self._sticky_bytes = 0

    @property
    def led(self) -> bool:
        """Whether the topic is known and any partition has a leader."""
        return self.known and any(self._led)

    def update(self, news: TopicMetadata | None) -> bool:
        """Apply metadata. Return True if the topic was recreated."""
        self.known = news is not None and bool(news.partitions)
        if news is None or not news.partitions:
            return False
        self.count = len(news.partitions)
        for number in range(len(self.queues), self.count):
            tp = TopicPartition(self.name, number)
            self.queues.append(PartitionQueue(tp, idempotent=self._idempotent))
        self._led = [news.leader_of(number) is not None for number in range(self.count)]
        if self.sticky >= self.count:
            self.sticky = -1
        recreated = self.topic_id is not None and self.topic_id != news.topic_id
        self.topic_id = news.topic_id
        return recreated

    def stick(self, rng: Random, *, adaptive: bool) -> int:
        """Return the sticky partition. Called when a batch is opened for a record without a key.

        It changes after batch.size bytes, not with every batch: small batches would scatter the records
        (KIP-794).
        """
        batch = self._sticky_batch
        if batch is not None:
            self._sticky_bytes += batch.charged
            self._sticky_batch = None
        if self.sticky < 0 or self._sticky_bytes >= self._batch_size:
            waiting = [len(queue.batches) for queue in self.queues[: self.count]]
            self.sticky = next_sticky(waiting, self._led, rng, adaptive=adaptive)
            self._sticky_bytes = 0
        return self.sticky

    def stuck_to(self, batch: Batch) -> None:
        """Note the open batch of the sticky partition."""
        self._sticky_batch = batch
