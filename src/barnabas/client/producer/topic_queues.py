"""What a producer keeps of one topic: a queue a partition, and where records without a key go now. Pure."""

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
        # By partition number. More than `count` if the topic was created again with fewer partitions.
        self.queues: list[PartitionQueue] = []
        self.count = 0
        self.topic_id: Uuid | None = None
        # Whether the cluster has it, as far as we know now.
        self.known = False
        # A batch was opened since the cluster was last told that the topic is of interest.
        self.used = False
        # The partition of records without a key; -1 before there is one.
        self.sticky = -1
        self._led: list[bool] = []
        self._idempotent = idempotent
        self._batch_size = batch_size
        self._sticky_batch: Batch | None = None
        self._sticky_bytes = 0

    @property
    def led(self) -> bool:
        """Whether it is known and any of its partitions has a leader."""
        return self.known and any(self._led)

    def update(self, news: TopicMetadata | None) -> bool:
        """Take what the metadata says. True if it is another topic of the same name."""
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
        """The partition of records without a key. Called when a batch is to be opened for one.

        It changes when so much was sent there as fits in a batch, not with every batch: small ones would
        scatter the records (KIP-794).
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
        """A batch was opened for records without a key."""
        self._sticky_batch = batch
