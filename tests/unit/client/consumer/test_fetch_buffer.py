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


class Case:
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
    case = Case()
    case.arrive(case.a, 2)
    case.arrive(case.a, 1)
    case.arrive(case.b, 1)

    assert case.read() == [(0, 0), (0, 1), (1, 0), (0, 2)]


def test_the_position_follows_the_reader_record_by_record() -> None:
    case = Case()
    case.arrive(case.a, 2, 2)
    seen = []
    for _ in range(4):
        case.read(1)
        seen.append(case.buffer.position_of(case.a))

    assert seen == [(1, 0), (2, 0), (3, 0), (4, 0)]


def test_bytes_are_held_until_all_of_an_answer_is_read() -> None:
    case = Case()
    size = case.arrive(case.a, 2, 2).size + case.arrive(case.b, 1).size
    assert case.buffer.buffered_bytes == {NODE: size}

    case.read(3)
    assert case.buffer.buffered_bytes == {NODE: size}
    case.read()

    assert case.buffer.buffered_bytes == {NODE: 0}


def test_the_next_fetch_may_start_while_a_response_is_read() -> None:
    case = Case()
    case.arrive(case.a, 2)
    assert case.a.is_full
    case.freed_nodes.clear()

    case.read(1)

    assert not case.a.is_full
    assert case.freed_nodes == [NODE]
    case.arrive(case.a, 2)
    assert case.a.is_full


def test_data_fetched_for_an_old_position_is_dropped() -> None:
    case = Case()
    case.arrive(case.a, 3)
    case.arrive(case.b, 1)
    case.read(1)

    case.buffer.drop(case.a)
    case.a.move_to(7)

    assert case.read() == [(1, 0)]
    assert case.buffer.position_of(case.a) == (7, -1)
    assert case.buffer.buffered_bytes == {NODE: 0}


def test_a_paused_partition_goes_on_where_it_was() -> None:
    case = Case()
    case.arrive(case.a, 3)
    case.arrive(case.b, 1)
    case.read(1)

    case.buffer.pause(case.a)
    case.a.paused = True
    case.arrive(case.a, 1)
    assert case.read() == [(1, 0)]
    assert case.buffer.position_of(case.a) == (1, 0)

    case.a.paused = False
    case.buffer.resume(case.a)
    assert case.read() == [(0, 1), (0, 2), (0, 3)]


def test_pausing_after_the_last_message_of_a_chunk_loses_nothing() -> None:
    case = Case()
    case.arrive(case.a, 1, 1)
    case.read(1)

    case.buffer.pause(case.a)
    case.a.paused = True
    assert case.read() == []
    case.a.paused = False
    case.buffer.resume(case.a)

    assert case.read() == [(0, 1)]
    assert case.buffer.position_of(case.a)[0] == 2


def test_shed_data_is_fetched_again_from_the_position() -> None:
    case = Case()
    case.arrive(case.a, 3)
    case.read(1)
    case.buffer.pause(case.a)
    case.a.paused = True

    case.buffer.evict(case.a)

    assert (case.a.fetch_offset, case.buffer.buffered_bytes) == (1, {NODE: 0})


def test_an_error_comes_after_the_data_before_it_and_once() -> None:
    case = Case()
    error = NoOffset(A, 2, 0, 0)
    case.arrive(case.a, 2)
    case.buffer.stop(case.a, error)
    case.arrive(case.b, 1)

    assert case.read(3) == [(0, 0), (0, 1), (1, 0)]
    assert not case.buffer.advance(1, quiet=True)
    with pytest.raises(NoOffset):
        case.read()
    assert case.read() == []


def test_a_corrupt_batch_leaves_the_position_before_it() -> None:
    case = Case()
    first, second = log_of(2, 3)
    case.arrive(case.a, data=first + second[:-1] + b"?")
    # One more response arrived in the meantime; it is never read.
    case.arrive(case.a, 1)

    assert case.read(2, enough=100) == [(0, 0), (0, 1)]
    with pytest.raises(CorruptRecords) as error:
        case.read(1)

    assert (error.value.offset, error.value.next_offset) == (2, 5)
    assert (case.a.position, case.a.fetch_offset, case.buffer.buffered_bytes) == (2, 2, {NODE: 0})
    assert case.read() == []


def test_ends_come_after_the_data_and_once() -> None:
    case = Case(reports_ends=True)
    case.arrive(case.a, 2, end=2)
    case.arrive(case.b, 1, end=5)

    assert case.read() == [(0, 0), (0, 1), (1, 0), (-1, 2)]
    case.buffer.report_end(case.a)
    assert case.read() == []

    case.arrive(case.a, 1, end=3)
    assert case.read() == [(0, 2), (-1, 3)]
    case.buffer.drop(case.a)
    case.a.move_to(3)
    case.buffer.report_end(case.a)
    assert case.read() == [(-1, 3)]


def test_partition_ends_are_reported_only_on_request() -> None:
    case = Case()
    case.arrive(case.a, 2, end=2)
    case.buffer.report_end(case.b)

    assert case.read() == [(0, 0), (0, 1)]


def test_next_whole_works_after_single_messages() -> None:
    case = Case()
    fetch = case.arrive(case.a, 3)
    case.read(1)

    assert case.buffer.next_fetch() == (case.a, fetch)
    assert case.a.position == 1
    # Continue with messages without finishing the response.
    assert case.read(1) == [(0, 1)]

    assert case.buffer.next_fetch() == (case.a, fetch)
    case.buffer.finish_fetch(case.a, fetch)
    assert case.buffer.position_of(case.a) == (3, 0)
    assert case.buffer.next_fetch() is None
    assert case.buffer.buffered_bytes == {NODE: 0}
