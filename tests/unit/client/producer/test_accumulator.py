"""Collecting records into batches, without an event loop and a broker."""

from random import Random

import pytest

from barnabas.base.ids import TopicPartition, Uuid
from barnabas.client.metadata import PartitionMetadata, TopicMetadata
from barnabas.client.producer.accumulator import Accumulator
from barnabas.client.producer.batch import Batch, split_batch
from barnabas.client.producer.partitioner import chooser_of
from barnabas.client.producer.queues import PartitionQueue
from barnabas.client.producer.settings import producer_settings
from barnabas.client.producer.stamp import Identity, stamped
from barnabas.records.builder import build_batch
from barnabas.records.decode import decode_batch
from barnabas.records.errors import TimestampOutOfRange
from barnabas.records.header import Codec, read_header
from barnabas.records.validate import check_batch
from support.clocks import ManualClock


def topic(partitions: int = 1, *, name: str = "orders", topic_id: bytes = b"i" * 16) -> TopicMetadata:
    rows = tuple(PartitionMetadata(number, 1, 0, (1,), (1,), ()) for number in range(partitions))
    return TopicMetadata(name, Uuid(topic_id), False, rows)


class Desk:
    """An accumulator, its clock, and its calls to the sender."""

    def __init__(self, partitions: int = 1, **named: object) -> None:
        settings, function = producer_settings({"bootstrap.servers": "a:1"}, named)
        self.clock = ManualClock()
        self.scheduled: list[PartitionQueue] = []
        self.timers_ms: list[int] = []
        rng = Random(1)
        choose, key_hash = chooser_of(settings, function, rng)
        self.accumulator = Accumulator(
            settings,
            clock=self.clock,
            rng=rng,
            choose=choose,
            key_hash=key_hash,
            schedule=self.scheduled.append,
            schedule_at=lambda queue, at_ms: self.timers_ms.append(at_ms),
        )
        self.accumulator.topic("orders").update(topic(partitions))

    def add(
        self, value: bytes = b"v", key: bytes | None = None, partition: int | None = None, time: int = 1000
    ) -> Batch | None:
        delivery = self.accumulator.append("orders", value, key, partition, time, ())
        return None if delivery is None else delivery._batch

    def queue(self, partition: int = 0) -> PartitionQueue:
        return self.accumulator.topics["orders"].queues[partition]


def test_opening_a_batch_schedules_it_for_the_end_of_its_linger() -> None:
    desk = Desk(linger_ms=7)
    start = desk.clock.monotonic_ms()
    assert desk.add() is desk.add()

    assert desk.timers_ms == [start + 7]
    assert desk.scheduled == []
    assert desk.queue().ready_at() == start + 7


def test_a_full_batch_is_scheduled_and_another_opened() -> None:
    desk = Desk(batch_size=200)
    first = desk.add(b"x" * 100)
    second = desk.add(b"x" * 100)

    assert first is not second
    assert desk.scheduled == [desk.queue()]
    assert [batch.count for batch in desk.queue().batches] == [1, 1]
    assert desk.queue().open is second


def test_a_record_larger_than_a_batch_gets_its_own_batch() -> None:
    desk = Desk(batch_size=200)
    desk.add()
    large = desk.add(b"x" * 1000)
    after = desk.add()

    assert large is not after
    assert [batch.count for batch in desk.queue().batches] == [1, 1, 1]


def test_without_linger_it_is_scheduled_at_once() -> None:
    desk = Desk(linger_ms=0)
    desk.add()

    assert desk.scheduled == [desk.queue()]


def test_append_returns_none_when_memory_is_full() -> None:
    desk = Desk(buffer_memory=500)
    for _ in range(4):
        assert desk.add(b"x" * 100) is not None
    used = desk.accumulator.memory.used

    assert used == 4 * 121
    assert desk.add(b"x" * 100) is None
    assert desk.accumulator.memory.used == used
    (batch,) = desk.accumulator.incomplete
    desk.queue().batches.clear()
    desk.accumulator.finish(batch)
    assert desk.accumulator.memory.used == 0


def test_a_record_that_cannot_be_encoded_changes_nothing() -> None:
    desk = Desk()
    with pytest.raises(TimestampOutOfRange):
        desk.add(time=-5)

    assert not desk.queue().batches
    assert desk.accumulator.memory.used == 0
    assert not desk.accumulator.incomplete


def test_unknown_topics_and_partitions_are_not_taken() -> None:
    desk = Desk()
    assert desk.accumulator.append("others", b"v", None, None, 0, ()) is None
    assert desk.add(partition=1) is None
    desk.accumulator.topic("orders").update(None)
    assert desk.add() is None


def test_keyless_records_change_partition_after_a_full_batch() -> None:
    desk = Desk(partitions=8, batch_size=1000)
    partitions = []
    for _ in range(100):
        batch = desk.add(b"x" * 100)
        assert batch is not None
        partitions.append(batch.queue.tp.partition)

    runs = [partitions[0]]
    for number in partitions:
        if number != runs[-1]:
            runs.append(number)
    assert len(set(partitions)) > 3
    assert 5 <= len(runs) <= 15
    # Batches that were left behind full are not forgotten.
    full = {queue.tp.partition for queue in desk.scheduled}
    assert set(runs[:-1]) <= full


def test_the_sticky_byte_count_includes_delivered_batches() -> None:
    """With small batches that are sent at once, the partition changes after batch.size bytes."""
    desk = Desk(partitions=8, batch_size=1000, linger_ms=0)
    partitions = []
    for _ in range(60):
        batch = desk.add(b"x" * 100)
        assert batch is not None
        partitions.append(batch.queue.tp.partition)
        assert batch.queue.take(desk.clock.monotonic_ms(), Identity(1, 0), one_at_a_time=False) is batch
        batch.queue.returned(batch)
        assert batch.queue.numbering is not None
        batch.queue.numbering.acknowledged(batch)
        desk.accumulator.finish(batch)

    assert partitions[:8] == [partitions[0]] * 8
    assert len(set(partitions)) > 2


def test_expiry_goes_by_the_age_of_the_batch() -> None:
    desk = Desk(delivery_timeout_ms=40_000)
    first = desk.add()
    desk.clock.advance(10_000)
    desk.accumulator.close_open()
    desk.add()
    start = desk.clock.monotonic_ms() - 10_000

    assert desk.accumulator.next_expiry_ms() == start + 40_000
    assert desk.accumulator.expired(start + 39_999) == []
    assert desk.accumulator.expired(start + 40_000) == [first]


def test_a_growing_topic_gets_more_queues_and_a_recreated_one_is_detected() -> None:
    desk = Desk()
    orders = desk.accumulator.topic("orders")
    assert not orders.update(topic(3))
    assert desk.add(partition=2) is not None
    assert orders.update(topic(2, topic_id=b"j" * 16))
    assert desk.add(partition=2) is None, "the other topic has fewer partitions"


def test_numbers_are_stamped_into_the_header() -> None:
    data = build_batch([(5, b"k", b"v", ()), (6, None, b"w", ())], codec=Codec.LZ4)

    done = stamped(data, Identity(77, 3), 2**31 - 1)

    check_batch(done)
    header = read_header(done)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (77, 3, 2**31 - 1)
    assert decode_batch(done) == decode_batch(data)


@pytest.mark.parametrize("sizes", [[10, 10], [10, 5000], [5000, 10], [1] * 100, [10, 300, 20, 900, 1]])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
@pytest.mark.parametrize("batch_size", [100, 16_384])
def test_a_split_batch_has_the_same_records_in_at_least_two_parts(
    sizes: list[int], codec: Codec, batch_size: int
) -> None:
    records = [(number, b"%d" % number, b"x" * size, [("h", b"1")]) for number, size in enumerate(sizes)]
    queue = PartitionQueue(topic_partition(), idempotent=True)
    batch = Batch(queue, data=build_batch(records, codec=codec))
    batch.count = len(sizes)

    parts = split_batch(batch, batch_size=batch_size, codec=codec, level=None)

    assert len(parts) > 1
    assert sum(part.count for part in parts) == len(sizes)
    found = [record for part in parts for record in decode_batch(part.data or b"")]
    assert [(each.timestamp, each.key, each.value) for each in found] == [each[:3] for each in records]
    assert all(each.headers == (("h", b"1"),) for each in found)
    assert {read_header(part.data or b"").codec for part in parts} == {codec}
    batch.become(parts)
    located = [batch.find(index) for index in range(len(sizes))]
    assert [(part.data, index) for part, index in located] == [
        (part.data, index) for part in parts for index in range(part.count)
    ]


def topic_partition() -> TopicPartition:
    return TopicPartition("orders", 0)


def test_one_at_a_time_takes_no_batch_while_one_is_in_flight() -> None:
    queue = PartitionQueue(topic_partition(), idempotent=False)
    first, second = Batch(queue, data=b"1"), Batch(queue, data=b"2")
    queue.batches.extend([first, second])

    assert queue.take(0, None, one_at_a_time=True) is first
    assert queue.take(0, None, one_at_a_time=True) is None
    assert queue.take(0, None, one_at_a_time=False) is second
    queue.returned(second)
    queue.returned(first)
    queue.put_back(second)
    queue.put_back(first)
    assert queue.take(0, None, one_at_a_time=True) is first
