"""Buffered data: order of partitions, byte counts, and the effect of pausing and seeking."""

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client.consumer.decode import find_complete_batches
from barnabas.client.consumer.errors import CorruptRecords, NoOffset
from barnabas.client.consumer.fetch_buffer import FetchBuffer
from barnabas.client.consumer.message import EndOfPartition, Message
from barnabas.client.consumer.positions import CompletedFetch, PartitionState
from support.our_client.consumer_worlds import log_of

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
NODE = 1


class Desk:
    """A buffer, two partitions, and the calls of on_space."""

    def __init__(self, *, reports_ends: bool = False) -> None:
        self.freed_nodes: list[int] = []
        self.buffer = FetchBuffer(
            check_crcs=True, reports_ends=reports_ends, on_space=self.freed_nodes.append
        )
        self.a, self.b = PartitionState(A), PartitionState(B)
        for one in (self.a, self.b):
            one.move_to(0)

    def arrive(
        self, one: PartitionState, *counts: int, end: int = 100, data: bytes | None = None
    ) -> CompletedFetch:
        records = data if data is not None else b"".join(log_of(*counts, first=one.fetch_offset))
        whole, next_offset, epoch = find_complete_batches(records, 0, len(records))
        fetch = CompletedFetch(
            data=records,
            whole=whole,
            from_offset=one.fetch_offset,
            next_offset=next_offset,
            last_epoch=epoch,
            end_offset=end,
            aborted=[],
            node=NODE,
        )
        self.buffer.add(one, fetch)
        return fetch

    def read(self, count: int = 1000, enough: int = 1) -> list[tuple[int, int]]:
        """Partition and offset of the messages read."""
        found: list[Message] = []
        while len(found) < count:
            buffer = self.buffer
            if buffer.at == len(buffer.ready) and not buffer.advance(enough):
                break
            found.append(buffer.ready[buffer.at])
            buffer.at += 1
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
        seen.append(desk.buffer.position_of(desk.a))

    assert seen == [(1, 0), (2, 0), (3, 0), (4, 0)]


def test_bytes_are_held_until_all_of_an_answer_is_read() -> None:
    desk = Desk()
    size = desk.arrive(desk.a, 2, 2).size + desk.arrive(desk.b, 1).size
    assert desk.buffer.buffered_bytes == {NODE: size}

    desk.read(3)
    assert desk.buffer.buffered_bytes == {NODE: size}
    desk.read()

    assert desk.buffer.buffered_bytes == {NODE: 0}


def test_the_next_fetch_may_start_while_a_response_is_read() -> None:
    desk = Desk()
    desk.arrive(desk.a, 2)
    assert desk.a.is_full
    desk.freed_nodes.clear()

    desk.read(1)

    assert not desk.a.is_full
    assert desk.freed_nodes == [NODE]
    desk.arrive(desk.a, 2)
    assert desk.a.is_full


def test_data_fetched_for_an_old_position_is_dropped() -> None:
    desk = Desk()
    desk.arrive(desk.a, 3)
    desk.arrive(desk.b, 1)
    desk.read(1)

    desk.buffer.drop(desk.a)
    desk.a.move_to(7)

    assert desk.read() == [(1, 0)]
    assert desk.buffer.position_of(desk.a) == (7, -1)
    assert desk.buffer.buffered_bytes == {NODE: 0}


def test_a_resumed_partition_continues_at_its_position() -> None:
    desk = Desk()
    desk.arrive(desk.a, 3)
    desk.arrive(desk.b, 1)
    desk.read(1)

    desk.buffer.pause(desk.a)
    desk.a.paused = True
    desk.arrive(desk.a, 1)
    assert desk.read() == [(1, 0)]
    assert desk.buffer.position_of(desk.a) == (1, 0)

    desk.a.paused = False
    desk.buffer.resume(desk.a)
    assert desk.read() == [(0, 1), (0, 2), (0, 3)]


def test_pausing_after_the_last_message_of_a_chunk_loses_nothing() -> None:
    desk = Desk()
    desk.arrive(desk.a, 1, 1)
    desk.read(1)

    desk.buffer.pause(desk.a)
    desk.a.paused = True
    assert desk.read() == []
    desk.a.paused = False
    desk.buffer.resume(desk.a)

    assert desk.read() == [(0, 1)]
    assert desk.buffer.position_of(desk.a)[0] == 2


def test_shed_data_is_fetched_again_from_the_position() -> None:
    desk = Desk()
    desk.arrive(desk.a, 3)
    desk.read(1)
    desk.buffer.pause(desk.a)
    desk.a.paused = True

    desk.buffer.evict(desk.a)

    assert (desk.a.fetch_offset, desk.buffer.buffered_bytes) == (1, {NODE: 0})


def test_an_error_is_raised_once_after_earlier_data() -> None:
    desk = Desk()
    error = NoOffset(A, 2, 0, 0)
    desk.arrive(desk.a, 2)
    desk.buffer.stop(desk.a, error)
    desk.arrive(desk.b, 1)

    assert desk.read(3) == [(0, 0), (0, 1), (1, 0)]
    assert not desk.buffer.advance(1, quiet=True)
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
    assert (desk.a.position, desk.a.fetch_offset, desk.buffer.buffered_bytes) == (2, 2, {NODE: 0})
    assert desk.read() == []


def test_an_end_of_partition_is_returned_once_after_the_data() -> None:
    desk = Desk(reports_ends=True)
    desk.arrive(desk.a, 2, end=2)
    desk.arrive(desk.b, 1, end=5)

    assert desk.read() == [(0, 0), (0, 1), (1, 0), (-1, 2)]
    desk.buffer.report_end(desk.a)
    assert desk.read() == []

    desk.arrive(desk.a, 1, end=3)
    assert desk.read() == [(0, 2), (-1, 3)]
    desk.buffer.drop(desk.a)
    desk.a.move_to(3)
    desk.buffer.report_end(desk.a)
    assert desk.read() == [(-1, 3)]


def test_partition_ends_are_reported_only_on_request() -> None:
    desk = Desk()
    desk.arrive(desk.a, 2, end=2)
    desk.buffer.report_end(desk.b)

    assert desk.read() == [(0, 0), (0, 1)]


def test_next_whole_works_after_single_messages() -> None:
    desk = Desk()
    fetch = desk.arrive(desk.a, 3)
    desk.read(1)

    assert desk.buffer.next_fetch() == (desk.a, fetch)
    assert desk.a.position == 1
    # Continue with messages without finishing the response.
    assert desk.read(1) == [(0, 1)]

    assert desk.buffer.next_fetch() == (desk.a, fetch)
    desk.buffer.finish_fetch(desk.a, fetch)
    assert desk.buffer.position_of(desk.a) == (3, 0)
    assert desk.buffer.next_fetch() is None
    assert desk.buffer.buffered_bytes == {NODE: 0}
