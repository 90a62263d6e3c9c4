"""A producer's state per topic: one queue per partition and the sticky partition. Pure."""

from random import Random

from barnabas.base.ids import TopicPartition, Uuid
from barnabas.client.metadata import TopicMetadata
from barnabas.client.producer.batch import Batch
from barnabas.client.producer.partition_queue import PartitionQueue
from barnabas.client.producer.partitioner import next_sticky


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
