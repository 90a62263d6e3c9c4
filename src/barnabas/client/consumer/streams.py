"""Several readers of one consumer, each with its own share of the partitions and its own buffer.

A partition belongs to one reader at a time, so its records are read in order. It moves to another reader only
during a change of the assignment, when no reader is processing messages.
"""

from collections.abc import Callable, Iterable
from typing import Final

from barnabas.client.consumer.arrived import Arrived
from barnabas.client.consumer.core import Core
from barnabas.client.consumer.delivery import Delivery
from barnabas.client.consumer.positions import Assigned
from barnabas.client.consumer.reader import Reader
from barnabas.client.errors import ClientError

STREAMS_MAX: Final = 1024


class SplitDelivery(Delivery):
    """Passes fetched data on to the buffer of each partition's reader."""

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


def split(core: Core, reader: Reader, count: int, check: Callable[[], Core]) -> list[Reader]:
    """Split a consumer's reader into `count` readers."""
    if not 1 <= count <= STREAMS_MAX:
        raise ValueError(f"stream count {count} is out of range (1 to {STREAMS_MAX})")
    before = reader.delivery
    assert before is not None, "the consumer is not started"
    readers = [Reader(check) for _ in range(count)]
    for each in readers:
        each.delivery = before.another()
        each.seen_s = core.now_s()
    for one in core.positions:
        before.park(one)
    core.delivery = SplitDelivery([each.delivery for each in readers if each.delivery is not None])
    core.delivery.settle_in(core.positions)
    core.gate.visitors[:] = readers
    core.news.set()
    return readers
