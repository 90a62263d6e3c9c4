"""Buffered data: order of partitions, byte counts, and the effect of pausing and seeking."""

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client.consumer.decode import reach
from barnabas.client.consumer.errors import CorruptRecords, NoOffset
from barnabas.client.consumer.fetch_buffer import Delivery
from barnabas.client.consumer.message import EndOfPartition, Message
from barnabas.client.consumer.positions import Arrived, Assigned
from support.our_client.consumer_worlds import log_of

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
NODE = 1


class Desk:
    """A delivery, two partitions, and the calls of on_room."""

    def __init__(self, *, tells_ends: bool = False) -> None:
        self.pokes: list[int] = []
        self.delivery = Delivery(check_crcs=True, tells_ends=tells_ends, on_room=self.pokes.append)
        self.a, self.b = Assigned(A), Assigned(B)
        for one in (self.a, self.b):
            one.move_to(0)

    def arrive(self, one: Assigned, *counts: int, end: int = 100, data: bytes | None = None) -> Arrived:
        records = data if data is not None else b"".join(log_of(*counts, first=one.fetch_offset))
        whole, next_offset, epoch = reach(records, 0, len(records))
        arrived = Arrived(
            data=records,
            whole=whole,
            from_offset=one.fetch_offset,
            next_offset=next_offset,
            last_epoch=epoch,
            end_offset=end,
            aborted=[],
            node=NODE,
        )
        self.delivery.arrive(one, arrived)
        return arrived

    def read(self, count: int = 1000, enough: int = 1) -> list[tuple[int, int]]:
        """Partition and offset of the messages read."""
        found: list[Message] = []
        while len(found) < count:
            delivery = self.delivery
            if delivery.at == len(delivery.ready) and not delivery.advance(enough):
                break
            found.append(delivery.ready[delivery.at])
            delivery.at += 1
        return [
            (-1 - each.partition if isinstance(each, EndOfPartition) else each.partition, each.offset)
            for each in found
        ]


def test_partitions_have_their_turns_by_answers() -> None:
    desk = Desk()
    desk.arrive(desk.a, 2)
    desk.arrive(desk.a, 1)
    desk.arrive(desk.b, 1)

    assert desk.read() == [(0, 0), (0, 1), (1, 0), (0, 2)]


def test_the_position_follows_the_reader_record_by_record() -> None:
    desk = Desk()
    desk.arrive(desk.a, 2, 2)
    seen = []
    for _ in range(4):
        desk.read(1)
        seen.append(desk.delivery.position_of(desk.a))

    assert seen == [(1, 0), (2, 0), (3, 0), (4, 0)]


def test_bytes_are_held_until_all_of_an_answer_is_read() -> None:
    desk = Desk()
    size = desk.arrive(desk.a, 2, 2).size + desk.arrive(desk.b, 1).size
    assert desk.delivery.held == {NODE: size}

    desk.read(3)
    assert desk.delivery.held == {NODE: size}
    desk.read()

    assert desk.delivery.held == {NODE: 0}


def test_the_next_fetch_may_start_while_a_response_is_read() -> None:
    desk = Desk()
    desk.arrive(desk.a, 2)
    assert desk.a.is_full
    desk.pokes.clear()

    desk.read(1)

    assert not desk.a.is_full
    assert desk.pokes == [NODE]
    desk.arrive(desk.a, 2)
    assert desk.a.is_full


def test_data_fetched_for_an_old_position_is_dropped() -> None:
    desk = Desk()
    desk.arrive(desk.a, 3)
    desk.arrive(desk.b, 1)
    desk.read(1)

    desk.delivery.drop(desk.a)
    desk.a.move_to(7)

    assert desk.read() == [(1, 0)]
    assert desk.delivery.position_of(desk.a) == (7, -1)
    assert desk.delivery.held == {NODE: 0}


def test_a_paused_partition_goes_on_where_it_was() -> None:
    desk = Desk()
    desk.arrive(desk.a, 3)
    desk.arrive(desk.b, 1)
    desk.read(1)

    desk.delivery.park(desk.a)
    desk.a.paused = True
    desk.arrive(desk.a, 1)
    assert desk.read() == [(1, 0)]
    assert desk.delivery.position_of(desk.a) == (1, 0)

    desk.a.paused = False
    desk.delivery.unpark(desk.a)
    assert desk.read() == [(0, 1), (0, 2), (0, 3)]


def test_pausing_after_the_last_message_of_a_chunk_loses_nothing() -> None:
    desk = Desk()
    desk.arrive(desk.a, 1, 1)
    desk.read(1)

    desk.delivery.park(desk.a)
    desk.a.paused = True
    assert desk.read() == []
    desk.a.paused = False
    desk.delivery.unpark(desk.a)

    assert desk.read() == [(0, 1)]
    assert desk.delivery.position_of(desk.a)[0] == 2


def test_shed_data_is_fetched_again_from_the_position() -> None:
    desk = Desk()
    desk.arrive(desk.a, 3)
    desk.read(1)
    desk.delivery.park(desk.a)
    desk.a.paused = True

    desk.delivery.shed(desk.a)

    assert (desk.a.fetch_offset, desk.delivery.held) == (1, {NODE: 0})


def test_an_error_comes_after_the_data_before_it_and_once() -> None:
    desk = Desk()
    error = NoOffset(A, 2, 0, 0)
    desk.arrive(desk.a, 2)
    desk.delivery.stop(desk.a, error)
    desk.arrive(desk.b, 1)

    assert desk.read(3) == [(0, 0), (0, 1), (1, 0)]
    assert not desk.delivery.advance(1, quiet=True)
    with pytest.raises(NoOffset):
        desk.read()
    assert desk.read() == []


def test_a_corrupt_batch_leaves_the_position_before_it() -> None:
    desk = Desk()
    first, second = log_of(2, 3)
    desk.arrive(desk.a, data=first + second[:-1] + b"?")
    # One more response arrived in the meantime; it is never read.
    desk.arrive(desk.a, 1)

    assert desk.read(2, enough=100) == [(0, 0), (0, 1)]
    with pytest.raises(CorruptRecords) as error:
        desk.read(1)

    assert (error.value.offset, error.value.next_offset) == (2, 5)
    assert (desk.a.position, desk.a.fetch_offset, desk.delivery.held) == (2, 2, {NODE: 0})
    assert desk.read() == []


def test_ends_come_after_the_data_and_once() -> None:
    desk = Desk(tells_ends=True)
    desk.arrive(desk.a, 2, end=2)
    desk.arrive(desk.b, 1, end=5)

    assert desk.read() == [(0, 0), (0, 1), (1, 0), (-1, 2)]
    desk.delivery.reach_end(desk.a)
    assert desk.read() == []

    desk.arrive(desk.a, 1, end=3)
    assert desk.read() == [(0, 2), (-1, 3)]
    desk.delivery.drop(desk.a)
    desk.a.move_to(3)
    desk.delivery.reach_end(desk.a)
    assert desk.read() == [(-1, 3)]


def test_partition_ends_are_reported_only_on_request() -> None:
    desk = Desk()
    desk.arrive(desk.a, 2, end=2)
    desk.delivery.reach_end(desk.b)

    assert desk.read() == [(0, 0), (0, 1)]


def test_next_whole_works_after_single_messages() -> None:
    desk = Desk()
    arrived = desk.arrive(desk.a, 3)
    desk.read(1)

    assert desk.delivery.next_whole() == (desk.a, arrived)
    assert desk.a.position == 1
    # Continue with messages without finishing the response.
    assert desk.read(1) == [(0, 1)]

    assert desk.delivery.next_whole() == (desk.a, arrived)
    desk.delivery.finish_whole(desk.a, arrived)
    assert desk.delivery.position_of(desk.a) == (3, 0)
    assert desk.delivery.next_whole() is None
    assert desk.delivery.held == {NODE: 0}
