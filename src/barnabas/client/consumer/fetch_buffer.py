"""The buffer of fetched data: round-robin order of partitions, current chunk, and buffered bytes. Pure.

Partitions with data are read in turn: after one fetch response of a partition, the next partition follows. An
end or an error of a partition comes after its data. The reader takes messages from `ready[at:]`, so reading
one only increments an index; positions are derived from it lazily.
"""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from barnabas.base.errors import Malformed
from barnabas.client.consumer.decode import claimed_next_offset
from barnabas.client.consumer.errors import CorruptRecords
from barnabas.client.consumer.message import EndOfPartition, Message
from barnabas.client.consumer.positions import CompletedFetch, PartitionState
from barnabas.client.errors import ClientError

_HEADER_SIZE: Final = 61


class FetchBuffer:
    """`on_space` is called with a node id when that broker may be asked for more data."""

    def __init__(self, *, check_crcs: bool, reports_ends: bool, on_space: Callable[[int], None]) -> None:
        self._check_crcs = check_crcs
        self._reports_ends = reports_ends
        self._on_space = on_space
        self._partitions: deque[PartitionState] = deque()
        # Buffered bytes by source broker.
        self.buffered_bytes: dict[int, int] = {}
        self.ready: list[Message] = []
        self.at = 0
        # The partition of the messages in `ready`; None if it is empty or holds an end.
        self._reading: PartitionState | None = None

    # Arrival

    def add(self, one: PartitionState, fetch: CompletedFetch) -> None:
        one.queue.append(fetch)
        one.fetch_offset = fetch.next_offset
        self.buffered_bytes[fetch.node] = self.buffered_bytes.get(fetch.node, 0) + fetch.size
        self._enqueue(one)

    def report_end(self, one: PartitionState) -> None:
        """A response had no more records for this partition."""
        if self._reports_ends and not one.queue:
            one.end_due = True
            self._enqueue(one)

    def stop(self, one: PartitionState, error: ClientError) -> None:
        """Stop a partition; the reader gets the error after the data before it."""
        one.error, one.error_raised = error, False
        self._enqueue(one)

    def _enqueue(self, one: PartitionState) -> None:
        if not one.is_enqueued and not one.paused:
            one.is_enqueued = True
            self._partitions.append(one)

    # Discarding and pausing

    def drop(self, one: PartitionState) -> None:
        """Discard all buffered data of a partition."""
        self._dequeue(one)
        while one.queue:
            self._release(one.queue.popleft())

    def pause(self, one: PartitionState) -> None:
        """Pause a partition and keep its data."""
        if one is self._reading:
            rest = self.ready[self.at :]
            one.position, one.epoch = self.position_of(one)
            if rest:
                one.queue[0].rest = rest
            else:
                self._finish_chunk()
        self._dequeue(one)

    def resume(self, one: PartitionState) -> None:
        if one.queue or one.end_due or _has_error(one):
            self._enqueue(one)

    def evict(self, one: PartitionState) -> None:
        """Discard the data of a partition to free memory; it is fetched again from the position."""
        assert one is not self._reading, f"{one.tp} is being read"
        assert one.position is not None, f"{one.tp} has data but no position"
        self.drop(one)
        one.fetch_offset = one.position

    def _dequeue(self, one: PartitionState) -> None:
        if one is self._reading:
            self._reading, self.ready, self.at = None, [], 0
        if one.is_enqueued:
            one.is_enqueued = False
            self._partitions.remove(one)

    def _release(self, fetch: CompletedFetch) -> None:
        self.buffered_bytes[fetch.node] -= fetch.size
        self._on_space(fetch.node)

    # Splitting: see SplitFetchBuffer

    def new_empty(self) -> "FetchBuffer":
        """Return an empty FetchBuffer with the same options and a shared byte count."""
        made = FetchBuffer(
            check_crcs=self._check_crcs, reports_ends=self._reports_ends, on_space=self._on_space
        )
        made.buffered_bytes = self.buffered_bytes
        return made

    def distribute(self, ones: Iterable[PartitionState]) -> None:
        """The assignment is now `ones`."""

    def is_read_from(self, one: PartitionState, buffer: "FetchBuffer | None") -> bool:
        """Whether the partition is read from `buffer`."""
        return buffer is self

    # Reading

    def position_of(self, one: PartitionState) -> tuple[int | None, int]:
        """Return the next offset for the reader, and the leader epoch of the last record."""
        if one is not self._reading or self.at == 0:
            return one.position, one.epoch
        if self.at == len(self.ready) and not one.queue[0].rest:
            reader = one.queue[0].reader
            assert reader is not None, f"{one.tp} is read without a reader"
            return reader.next_offset, reader.last_epoch
        last = self.ready[self.at - 1]
        return last.offset + 1, last.leader_epoch

    def advance(self, enough: int, *, quiet: bool = False) -> bool:
        """Fill `ready`; False if nothing is buffered. Raise the error of a partition when it is its turn.

        With `quiet` an error is left for later: the caller has messages to return first.
        """
        self._finish_chunk()
        while self._partitions:
            one = self._partitions[0]
            if one.end_due or not one.queue:
                if quiet and not one.end_due and _has_error(one):
                    return False
                if self._end_or_error(one):
                    return True
            elif self._open(one, enough):
                return True
        return False

    def _end_or_error(self, one: PartitionState) -> bool:
        if one.end_due:
            return self._emit_end(one)
        self._partitions.popleft()
        one.is_enqueued = False
        if _has_error(one):
            assert one.error is not None
            one.error_raised = True
            raise one.error
        return False

    def _open(self, one: PartitionState, enough: int) -> bool:
        fetch = self._start_reading(one)
        reader = fetch.open(one.tp.topic, one.tp.partition, check_crc=self._check_crcs)
        self._reading, self.at = one, 0
        self.ready, fetch.rest = fetch.rest, []
        if not self.ready:
            try:
                self.ready = reader.take(enough)
            except Malformed as error:
                position = one.position if one.position is not None else fetch.from_offset
                self.stop_corrupt(one, corrupt(one, position, fetch, reader.at, error))
                return False
        if not self.ready:
            self._finish_chunk()
        return bool(self.ready)

    def allow_next_fetch(self) -> None:
        """Start the next fetch before this response is read, because reading may keep the loop busy."""
        if self.at == len(self.ready) and self._partitions and self._partitions[0].queue:
            self._start_reading(self._partitions[0])

    def _start_reading(self, one: PartitionState) -> CompletedFetch:
        fetch = one.queue[0]
        if not fetch.is_being_read:
            fetch.is_being_read = True
            # From now on the next response may be fetched.
            self._on_space(fetch.node)
        return fetch

    def stop_corrupt(self, one: PartitionState, error: ClientError) -> None:
        """Stop a partition at a corrupt batch."""
        self._reading, self.ready, self.at = None, [], 0
        self.evict(one)
        self.stop(one, error)

    def _finish_chunk(self) -> None:
        """Update the position after the current chunk, which must be read completely."""
        one, self._reading = self._reading, None
        assert self.at == len(self.ready), f"{len(self.ready) - self.at} messages were not read"
        self.ready, self.at = [], 0
        if one is None:
            return
        reader = one.queue[0].reader
        assert reader is not None, f"{one.tp} was read without a reader"
        one.position, one.epoch = reader.next_offset, max(reader.last_epoch, one.epoch)
        if reader.done:
            self._finish_fetch(one)

    def _finish_fetch(self, one: PartitionState) -> None:
        fetch = one.queue.popleft()
        assert one.position == fetch.next_offset, f"{one.tp}: {one.position}, not {fetch.next_offset}"
        one.end_due = self._reports_ends and one.position >= fetch.end_offset
        if one.is_enqueued:
            # Other partitions first.
            self._partitions.remove(one)
            self._partitions.append(one)
        self._release(fetch)

    def _emit_end(self, one: PartitionState) -> bool:
        one.end_due = False
        if one.position is None or one.position == one.end_reported_at:
            return False
        one.end_reported_at = one.position
        self._reading = None
        self.ready, self.at = [EndOfPartition(one.tp.topic, one.tp.partition, one.position)], 0
        return True

    # Reading whole responses, for Arrow

    def next_fetch(self, *, quiet: bool = False) -> tuple[PartitionState, CompletedFetch] | None:
        """Return the next response, for finish_fetch() or stop_corrupt(); None if nothing is buffered.

        An end is left for take_end(); with `quiet`, an end or an error is left for later. The unread rest of
        a current chunk is returned with its response, whose rows start at the position.
        """
        self._return_chunk()
        while self._partitions:
            one = self._partitions[0]
            if one.queue and not one.end_due:
                return one, self._start_reading(one)
            if (quiet and (one.end_due or _has_error(one))) or self._end_or_error(one):
                return None
        return None

    def take_end(self) -> EndOfPartition | None:
        """Return the EndOfPartition that next_fetch() found."""
        if self.at == len(self.ready):
            return None
        end = self.ready[self.at]
        assert isinstance(end, EndOfPartition), "take_end() with messages in `ready`"
        self.at += 1
        return end

    def finish_fetch(self, one: PartitionState, fetch: CompletedFetch) -> None:
        assert one.queue[0] is fetch, f"{one.tp}: another response is first"
        one.position, one.epoch = fetch.next_offset, max(fetch.last_epoch, one.epoch)
        self._finish_fetch(one)

    def _return_chunk(self) -> None:
        one = self._reading
        if one is not None and self.at < len(self.ready):
            one.position, one.epoch = self.position_of(one)
            one.queue[0].rest = self.ready[self.at :]
            self._reading, self.ready, self.at = None, [], 0
        else:
            self._finish_chunk()


def _has_error(one: PartitionState) -> bool:
    return one.error is not None and not one.error_raised


def corrupt(
    one: PartitionState, position: int, fetch: CompletedFetch, at: int, error: Malformed
) -> CorruptRecords:
    """Return the error for the batch at byte `at` of a response."""
    beyond: int | None = None
    if fetch.whole - at >= _HEADER_SIZE:
        claimed = claimed_next_offset(fetch.data, at)
        beyond = claimed if claimed > position else None
    return CorruptRecords(one.tp, position, str(error), beyond)


class SplitFetchBuffer(FetchBuffer):
    """Passes fetched data on to the buffer of each partition's reader.

    A partition belongs to one reader at a time, so its records are read in order. It moves to another reader
    only during a change of the assignment, when no reader is processing messages.
    """

    def __init__(self, buffers: list[FetchBuffer]) -> None:
        self._buffers = buffers
        self._buffers_by_partition: dict[PartitionState, FetchBuffer] = {}
        # All buffers share one byte count.
        self.buffered_bytes = buffers[0].buffered_bytes
        for buffer in buffers:
            buffer.buffered_bytes = self.buffered_bytes

    def distribute(self, ones: Iterable[PartitionState]) -> None:
        """Keep the readers of kept partitions, give new ones to the least loaded reader, and rebalance."""
        assigned = list(ones)
        known = self._buffers_by_partition
        self._buffers_by_partition = {one: known[one] for one in assigned if one in known}
        loads = dict.fromkeys(range(len(self._buffers)), 0)
        numbers = {id(buffer): number for number, buffer in enumerate(self._buffers)}
        for buffer in self._buffers_by_partition.values():
            loads[numbers[id(buffer)]] += 1
        for one in assigned:
            least = min(loads, key=loads.__getitem__)
            before = self._buffers_by_partition.get(one)
            if before is not None and loads[numbers[id(before)]] - loads[least] < 2:
                continue
            if before is not None:
                loads[numbers[id(before)]] -= 1
            loads[least] += 1
            self._move(one, before, self._buffers[least])

    def _move(self, one: PartitionState, before: FetchBuffer | None, to: FetchBuffer) -> None:
        if before is not None:
            before.pause(one)
        self._buffers_by_partition[one] = to
        if not one.paused:
            to.resume(one)

    def is_read_from(self, one: PartitionState, buffer: FetchBuffer | None) -> bool:
        return self._buffers_by_partition.get(one) is buffer

    def _buffer_for(self, one: PartitionState) -> FetchBuffer:
        # A removed partition is still dropped once: any buffer will do.
        return self._buffers_by_partition.get(one, self._buffers[0])

    def add(self, one: PartitionState, fetch: CompletedFetch) -> None:
        self._buffer_for(one).add(one, fetch)

    def report_end(self, one: PartitionState) -> None:
        self._buffer_for(one).report_end(one)

    def stop(self, one: PartitionState, error: ClientError) -> None:
        self._buffer_for(one).stop(one, error)

    def drop(self, one: PartitionState) -> None:
        self._buffer_for(one).drop(one)

    def pause(self, one: PartitionState) -> None:
        self._buffer_for(one).pause(one)

    def resume(self, one: PartitionState) -> None:
        self._buffer_for(one).resume(one)

    def evict(self, one: PartitionState) -> None:
        self._buffer_for(one).evict(one)

    def stop_corrupt(self, one: PartitionState, error: ClientError) -> None:
        self._buffer_for(one).stop_corrupt(one, error)

    def position_of(self, one: PartitionState) -> tuple[int | None, int]:
        return self._buffer_for(one).position_of(one)
