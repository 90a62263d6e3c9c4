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
from barnabas.client.consumer.positions import Arrived, Assigned
from barnabas.client.errors import ClientError

_HEADER_SIZE: Final = 61


class Delivery:
    """`on_room` is called with a node id when that broker may be asked for more data."""

    def __init__(self, *, check_crcs: bool, tells_ends: bool, on_room: Callable[[int], None]) -> None:
        self._check_crcs = check_crcs
        self._tells_ends = tells_ends
        self._on_room = on_room
        self._turns: deque[Assigned] = deque()
        # Buffered bytes by source broker.
        self.held: dict[int, int] = {}
        self.ready: list[Message] = []
        self.at = 0
        # The partition of the messages in `ready`; None if it is empty or holds an end.
        self._reading: Assigned | None = None

    # Arrival

    def arrive(self, one: Assigned, arrived: Arrived) -> None:
        one.queue.append(arrived)
        one.fetch_offset = arrived.next_offset
        self.held[arrived.node] = self.held.get(arrived.node, 0) + arrived.size
        self._take_turn(one)

    def reach_end(self, one: Assigned) -> None:
        """A response had no more records for this partition."""
        if self._tells_ends and not one.queue:
            one.end_due = True
            self._take_turn(one)

    def stop(self, one: Assigned, error: ClientError) -> None:
        """Stop a partition; the reader gets the error after the data before it."""
        one.error, one.error_told = error, False
        self._take_turn(one)

    def _take_turn(self, one: Assigned) -> None:
        if not one.in_turn and not one.paused:
            one.in_turn = True
            self._turns.append(one)

    # Discarding and pausing

    def drop(self, one: Assigned) -> None:
        """Discard all buffered data of a partition."""
        self._leave(one)
        while one.queue:
            self._release(one.queue.popleft())

    def park(self, one: Assigned) -> None:
        """Pause a partition and keep its data."""
        if one is self._reading:
            rest = self.ready[self.at :]
            one.position, one.epoch = self.position_of(one)
            if rest:
                one.queue[0].rest = rest
            else:
                self._settle()
        self._leave(one)

    def unpark(self, one: Assigned) -> None:
        if one.queue or one.end_due or _has_error(one):
            self._take_turn(one)

    def shed(self, one: Assigned) -> None:
        """Discard the data of a partition to free memory; it is fetched again from the position."""
        assert one is not self._reading, f"{one.tp} is being read"
        assert one.position is not None, f"{one.tp} has data but no position"
        self.drop(one)
        one.fetch_offset = one.position

    def _leave(self, one: Assigned) -> None:
        if one is self._reading:
            self._reading, self.ready, self.at = None, [], 0
        if one.in_turn:
            one.in_turn = False
            self._turns.remove(one)

    def _release(self, arrived: Arrived) -> None:
        self.held[arrived.node] -= arrived.size
        self._on_room(arrived.node)

    # Splitting: see SplitDelivery

    def another(self) -> "Delivery":
        """Return an empty Delivery with the same options and a shared byte count."""
        made = Delivery(check_crcs=self._check_crcs, tells_ends=self._tells_ends, on_room=self._on_room)
        made.held = self.held
        return made

    def settle_in(self, ones: Iterable[Assigned]) -> None:
        """The assignment is now `ones`."""

    def is_at(self, one: Assigned, delivery: "Delivery | None") -> bool:
        """Whether the partition is read from `delivery`."""
        return delivery is self

    # Reading

    def position_of(self, one: Assigned) -> tuple[int | None, int]:
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
        self._settle()
        while self._turns:
            one = self._turns[0]
            if one.end_due or not one.queue:
                if quiet and not one.end_due and _has_error(one):
                    return False
                if self._end_or_error(one):
                    return True
            elif self._open(one, enough):
                return True
        return False

    def _end_or_error(self, one: Assigned) -> bool:
        if one.end_due:
            return self._has_end(one)
        self._turns.popleft()
        one.in_turn = False
        if _has_error(one):
            assert one.error is not None
            one.error_told = True
            raise one.error
        return False

    def _open(self, one: Assigned, enough: int) -> bool:
        arrived = self._begin(one)
        reader = arrived.open(one.tp.topic, one.tp.partition, check_crc=self._check_crcs)
        self._reading, self.at = one, 0
        self.ready, arrived.rest = arrived.rest, []
        if not self.ready:
            try:
                self.ready = reader.take(enough)
            except Malformed as error:
                position = one.position if one.position is not None else arrived.from_offset
                self.spoil(one, corrupt(one, position, arrived, reader.at, error))
                return False
        if not self.ready:
            self._settle()
        return bool(self.ready)

    def begin_next(self) -> None:
        """Start the next fetch before this response is read, because reading may keep the loop busy."""
        if self.at == len(self.ready) and self._turns and self._turns[0].queue:
            self._begin(self._turns[0])

    def _begin(self, one: Assigned) -> Arrived:
        arrived = one.queue[0]
        if not arrived.begun:
            arrived.begun = True
            # From now on the next response may be fetched.
            self._on_room(arrived.node)
        return arrived

    def spoil(self, one: Assigned, error: ClientError) -> None:
        """Stop a partition at a corrupt batch."""
        self._reading, self.ready, self.at = None, [], 0
        self.shed(one)
        self.stop(one, error)

    def _settle(self) -> None:
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
            self._finish(one)

    def _finish(self, one: Assigned) -> None:
        arrived = one.queue.popleft()
        assert one.position == arrived.next_offset, f"{one.tp}: {one.position}, not {arrived.next_offset}"
        one.end_due = self._tells_ends and one.position >= arrived.end_offset
        if one.in_turn:
            # Other partitions first.
            self._turns.remove(one)
            self._turns.append(one)
        self._release(arrived)

    def _has_end(self, one: Assigned) -> bool:
        one.end_due = False
        if one.position is None or one.position == one.end_told_at:
            return False
        one.end_told_at = one.position
        self._reading = None
        self.ready, self.at = [EndOfPartition(one.tp.topic, one.tp.partition, one.position)], 0
        return True

    # Reading whole responses, for Arrow

    def next_whole(self, *, quiet: bool = False) -> tuple[Assigned, Arrived] | None:
        """Return the next response, for finish_whole() or spoil(); None if nothing is buffered.

        An end is left for take_end(); with `quiet`, an end or an error is left for later. The unread rest of
        a current chunk is returned with its response, whose rows start at the position.
        """
        self._put_back()
        while self._turns:
            one = self._turns[0]
            if one.queue and not one.end_due:
                return one, self._begin(one)
            if (quiet and (one.end_due or _has_error(one))) or self._end_or_error(one):
                return None
        return None

    def take_end(self) -> EndOfPartition | None:
        """Return the EndOfPartition that next_whole() found."""
        if self.at == len(self.ready):
            return None
        end = self.ready[self.at]
        assert isinstance(end, EndOfPartition), "take_end() with messages in `ready`"
        self.at += 1
        return end

    def finish_whole(self, one: Assigned, arrived: Arrived) -> None:
        assert one.queue[0] is arrived, f"{one.tp}: another response is first"
        one.position, one.epoch = arrived.next_offset, max(arrived.last_epoch, one.epoch)
        self._finish(one)

    def _put_back(self) -> None:
        one = self._reading
        if one is not None and self.at < len(self.ready):
            one.position, one.epoch = self.position_of(one)
            one.queue[0].rest = self.ready[self.at :]
            self._reading, self.ready, self.at = None, [], 0
        else:
            self._settle()


def _has_error(one: Assigned) -> bool:
    return one.error is not None and not one.error_told


def corrupt(one: Assigned, position: int, arrived: Arrived, at: int, error: Malformed) -> CorruptRecords:
    """Return the error for the batch at byte `at` of a response."""
    beyond: int | None = None
    if arrived.whole - at >= _HEADER_SIZE:
        claimed = claimed_next_offset(arrived.data, at)
        beyond = claimed if claimed > position else None
    return CorruptRecords(one.tp, position, str(error), beyond)


class SplitDelivery(Delivery):
    """Passes fetched data on to the buffer of each partition's reader.

    A partition belongs to one reader at a time, so its records are read in order. It moves to another reader
    only during a change of the assignment, when no reader is processing messages.
    """

    def __init__(self, places: list[Delivery]) -> None:
        self._places = places
        self._homes: dict[Assigned, Delivery] = {}
        # All buffers share one byte count.
        self.held = places[0].held
        for place in places:
            place.held = self.held

    def settle_in(self, ones: Iterable[Assigned]) -> None:
        """Keep the readers of kept partitions, give new ones to the least loaded reader, and rebalance."""
        assigned = list(ones)
        known = self._homes
        self._homes = {one: known[one] for one in assigned if one in known}
        loads = dict.fromkeys(range(len(self._places)), 0)
        numbers = {id(place): number for number, place in enumerate(self._places)}
        for place in self._homes.values():
            loads[numbers[id(place)]] += 1
        for one in assigned:
            least = min(loads, key=loads.__getitem__)
            home = self._homes.get(one)
            if home is not None and loads[numbers[id(home)]] - loads[least] < 2:
                continue
            if home is not None:
                loads[numbers[id(home)]] -= 1
            loads[least] += 1
            self._move(one, home, self._places[least])

    def _move(self, one: Assigned, before: Delivery | None, to: Delivery) -> None:
        if before is not None:
            before.park(one)
        self._homes[one] = to
        if not one.paused:
            to.unpark(one)

    def is_at(self, one: Assigned, delivery: Delivery | None) -> bool:
        return self._homes.get(one) is delivery

    def _home(self, one: Assigned) -> Delivery:
        # A removed partition is still dropped once: any buffer will do.
        return self._homes.get(one, self._places[0])

    def arrive(self, one: Assigned, arrived: Arrived) -> None:
        self._home(one).arrive(one, arrived)

    def reach_end(self, one: Assigned) -> None:
        self._home(one).reach_end(one)

    def stop(self, one: Assigned, error: ClientError) -> None:
        self._home(one).stop(one, error)

    def drop(self, one: Assigned) -> None:
        self._home(one).drop(one)

    def park(self, one: Assigned) -> None:
        self._home(one).park(one)

    def unpark(self, one: Assigned) -> None:
        self._home(one).unpark(one)

    def shed(self, one: Assigned) -> None:
        self._home(one).shed(one)

    def spoil(self, one: Assigned, error: ClientError) -> None:
        self._home(one).spoil(one, error)

    def position_of(self, one: Assigned) -> tuple[int | None, int]:
        return self._home(one).position_of(one)
