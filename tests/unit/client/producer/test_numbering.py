"""Sequences of one partition, event by event."""

from barnabas.base.ids import TopicPartition
from barnabas.client.producer.batch import Batch
from barnabas.client.producer.numbering import Numbering
from barnabas.client.producer.queues import PartitionQueue
from barnabas.client.producer.stamp import Identity
from barnabas.records.builder import build_batch

FIRST, SECOND = Identity(7, 0), Identity(8, 0)


class Partition:
    """A queue of encoded batches, and the batches in flight."""

    def __init__(self) -> None:
        self.queue = PartitionQueue(TopicPartition("orders", 0), idempotent=True)
        assert self.queue.numbering is not None
        self.numbering: Numbering = self.queue.numbering

    def add(self, *counts: int) -> list[Batch]:
        made = []
        for count in counts:
            batch = Batch(self.queue, data=build_batch([(0, None, b"v", ())] * count))
            batch.count = count
            self.queue.batches.append(batch)
            made.append(batch)
        return made

    def take(self, identity: Identity = FIRST) -> Batch | None:
        return self.queue.take(0, identity, one_at_a_time=False)

    def ack(self, batch: Batch) -> list[Batch]:
        self.queue.returned(batch)
        proved = self.numbering.acknowledged(batch)
        assert self.queue.settle() == []
        return proved

    def lose(self, batch: Batch) -> None:
        """No response: the batch is retried."""
        self.queue.returned(batch)
        batch.maybe_written = True
        self.queue.put_back(batch)

    def refuse_order(self, batch: Batch) -> list[Batch]:
        """Reject a batch as out of order; return the batches that fail by it."""
        self.queue.returned(batch)
        if not self.numbering.refused_order(batch):
            self.queue.put_back(batch)
        return self.queue.settle()

    def drop(self, batch: Batch) -> None:
        self.queue.returned(batch)
        self.numbering.dropped(batch)
        self.queue.settle()

    def greet(self) -> None:
        """The broker knows the producer: one batch of one record is acknowledged."""
        self.add(1)
        batch = self.take()
        assert batch is not None
        self.ack(batch)


def test_sequences_follow_each_other_and_wrap_around() -> None:
    partition = Partition()
    partition.greet()
    partition.numbering._next = 2**31 - 2
    a, b, c = partition.add(1, 3, 1)

    taken = [partition.take(), partition.take(), partition.take()]

    assert taken == [a, b, c]
    assert [each.sequence for each in (a, b, c)] == [2**31 - 2, 2**31 - 1, 2]


def test_the_first_batch_of_a_producer_id_is_sent_alone() -> None:
    partition = Partition()
    a, b = partition.add(1, 1)

    assert partition.take() is a
    assert partition.take() is None
    partition.ack(a)
    assert partition.take() is b


def test_unanswered_batches_are_retried_one_by_one_with_their_numbers() -> None:
    partition = Partition()
    partition.greet()
    a, b, c = partition.add(2, 3, 1)
    for _ in range(2):
        partition.take()
    partition.lose(b)
    partition.lose(a)

    assert partition.take() is a
    assert partition.take() is None
    partition.ack(a)
    assert partition.take() is b
    assert (a.sequence, b.sequence) == (1, 3)
    # Both others were sent before; c is new and may be in flight beside b.
    assert partition.take() is c


def test_a_batch_behind_a_lost_one_is_retried_after_it() -> None:
    partition = Partition()
    partition.greet()
    a, b = partition.add(1, 1)
    partition.take()
    partition.take()

    assert partition.refuse_order(b) == []
    assert not b.parked
    assert partition.take() is None
    partition.ack(a)
    assert partition.take() is b


def test_an_acknowledged_batch_proves_those_that_were_parked_before_it() -> None:
    partition = Partition()
    partition.greet()
    a, b, c = partition.add(1, 1, 1)
    for _ in range(3):
        partition.take()
    for batch in (c, b, a):
        partition.lose(batch)

    for batch in (a, b):
        assert partition.take() is batch
        assert partition.refuse_order(batch) == []
    assert partition.take() is c
    assert partition.ack(c) == [a, b]
    assert not partition.numbering.tracked


def test_if_all_are_parked_only_ambiguous_batches_fail() -> None:
    partition = Partition()
    partition.greet()
    a, b = partition.add(1, 1)
    partition.take()
    partition.take()
    partition.lose(a)
    assert partition.refuse_order(b) == []

    assert partition.take() is a
    assert partition.refuse_order(a) == []
    assert partition.take() is b
    assert partition.refuse_order(b) == [a]
    assert not b.numbered
    assert partition.take() is None
    assert partition.queue.needs_identity
    assert partition.take(SECOND) is b
    assert (b.identity, b.sequence) == (SECOND, 0)


def test_after_a_gap_no_new_batch_uses_the_old_producer_id() -> None:
    partition = Partition()
    partition.greet()
    a, b = partition.add(1, 1)
    partition.take()
    partition.drop(a)

    assert partition.take() is None
    assert partition.queue.needs_identity
    assert partition.take(SECOND) is b
    assert b.sequence == 0


def test_a_failed_batch_is_no_gap_if_a_later_one_is_acknowledged() -> None:
    partition = Partition()
    partition.greet()
    a, b, c = partition.add(1, 1, 1)
    partition.take()
    partition.take()
    partition.drop(a)
    assert partition.take() is None, "it waits for what becomes of the second"

    partition.ack(b)

    assert partition.take() is c
    assert (c.identity, c.sequence) == (FIRST, 3)


def test_a_new_producer_id_waits_until_no_old_batch_is_in_flight() -> None:
    partition = Partition()
    partition.greet()
    a, b = partition.add(1, 1)
    partition.take()

    assert partition.take(SECOND) is None
    assert not partition.queue.needs_identity
    partition.ack(a)
    assert partition.take(SECOND) is b
    assert (b.identity, b.sequence) == (SECOND, 0)


def test_in_a_recreated_topic_sequences_restart_when_no_batch_is_in_flight() -> None:
    partition = Partition()
    partition.greet()
    a, b, c = partition.add(1, 1, 1)
    partition.take()
    partition.take()
    partition.lose(a)

    partition.numbering.restart()
    partition.queue.settle()
    assert partition.take() is None
    partition.lose(b)
    partition.queue.settle()

    assert [partition.take()] == [a]
    assert (a.sequence, a.identity) == (0, FIRST)
    partition.ack(a)
    assert [partition.take(), partition.take()] == [b, c]
    assert [b.sequence, c.sequence] == [1, 2]


def test_parts_of_a_batch_have_the_numbers_of_the_whole() -> None:
    partition = Partition()
    partition.greet()
    a, b = partition.add(5, 1)
    partition.take()
    partition.take()
    partition.queue.returned(a)
    x, y = Partition().add(2, 3)

    partition.queue.split(a, [x, y])
    partition.lose(b)

    assert list(partition.queue.batches) == [x, y, b]
    assert [each.sequence for each in (x, y, b)] == [1, 3, 6]
    assert partition.take() is x
    # Lost and put back, it is still before the other part.
    partition.lose(x)
    assert list(partition.queue.batches) == [x, y, b]
