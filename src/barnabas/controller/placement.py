"""Place the replicas of new partitions on brokers, striped over racks and over the brokers of a rack.

Each partition starts one rack and one broker further than the previous one, from a random start. Racks matter
more than an even load, and unfenced brokers come before fenced ones. The first replica, which will lead, is
never on a fenced broker. Equivalent to Kafka's StripedReplicaPlacer.
"""

from collections.abc import Iterable
from random import Random
from typing import NamedTuple

from barnabas.controller.decision import Refused
from barnabas.metadata.image import MetadataImage
from barnabas.protocol.error_codes import ErrorCode


class UsableBroker(NamedTuple):
    id: int
    rack: str | None
    fenced: bool


def usable_brokers(image: MetadataImage) -> list[UsableBroker]:
    """Brokers that may get replicas: not in controlled shutdown, and with an uncordoned directory."""
    found = []
    for broker in image.brokers.values():
        cordoned = broker.registration.cordoned_log_dirs or ()
        full = bool(broker.registration.log_dirs) and set(broker.registration.log_dirs) <= set(cordoned)
        if not broker.in_controlled_shutdown and not full:
            found.append(UsableBroker(broker.id, broker.registration.rack, broker.fenced))
    return found


def place(
    brokers: Iterable[UsableBroker], *, partitions: int, replicas: int, rng: Random
) -> list[tuple[int, ...]]:
    """The replicas of each partition. INVALID_REPLICATION_FACTOR if there are too few brokers."""
    racks = _Racks(brokers, rng)
    if replicas <= 0:
        raise _invalid(f"Invalid replication factor {replicas}: the replication factor must be positive.")
    if racks.unfenced == 0:
        raise _invalid("All brokers are currently fenced.")
    if replicas > racks.total:
        raise _invalid(
            f"The target replication factor of {replicas} cannot be reached because only "
            f"{racks.total} broker(s) are registered."
        )
    return [racks.place(replicas) for _ in range(partitions)]


def _invalid(message: str) -> Refused:
    return Refused(ErrorCode.INVALID_REPLICATION_FACTOR, message)


class _Ring:
    """Brokers in round-robin order; each round starts one further than the last."""

    def __init__(self, brokers: list[int], rng: Random) -> None:
        self.brokers = sorted(brokers)
        self._offset = rng.randrange(len(brokers)) if brokers else 0
        self._index = 0
        self._round = 0

    def next(self, number: int) -> int | None:
        if not self.brokers:
            return None
        if self._round != number:
            self._round, self._index = number, 0
            self._offset = (self._offset + 1) % len(self.brokers)
        if self._index >= len(self.brokers):
            return None
        broker = self.brokers[(self._index + self._offset) % len(self.brokers)]
        self._index += 1
        return broker


class _Rack:
    def __init__(self, brokers: list[UsableBroker], rng: Random) -> None:
        self._fenced = _Ring([one.id for one in brokers if one.fenced], rng)
        self._unfenced = _Ring([one.id for one in brokers if not one.fenced], rng)

    def next_unfenced(self, number: int) -> int | None:
        return self._unfenced.next(number)

    def next(self, number: int) -> int | None:
        broker = self._unfenced.next(number)
        return self._fenced.next(number) if broker is None else broker

    def shuffle(self, rng: Random) -> None:
        rng.shuffle(self._fenced.brokers)
        rng.shuffle(self._unfenced.brokers)


class _Racks:
    def __init__(self, brokers: Iterable[UsableBroker], rng: Random) -> None:
        self._rng = rng
        by_name: dict[str | None, list[UsableBroker]] = {}
        for one in brokers:
            by_name.setdefault(one.rack, []).append(one)
        # Brokers without a rack come first.
        names = sorted(by_name, key=lambda name: (name is not None, name or ""))
        self._racks = [_Rack(by_name[name], rng) for name in names]
        everybody = [one for rack in by_name.values() for one in rack]
        self.total = len(everybody)
        self.unfenced = sum(not one.fenced for one in everybody)
        self._round = 0
        self._offset = rng.randrange(len(names)) if names else 0

    def place(self, replicas: int) -> tuple[int, ...]:
        """Place one partition. The caller has checked that there are enough brokers, so the loops end."""
        if self._round == self.unfenced and self.unfenced > 1:
            # All assignments were used once: shuffle, so that they are not repeated in the same order.
            self._rng.shuffle(self._racks)
            for rack in self._racks:
                rack.shuffle(self._rng)
            self._round = 0
        count = len(self._racks)
        self._offset %= count
        first = self._offset
        leader = self._racks[first].next_unfenced(self._round)
        while leader is None:
            first = (first + 1) % count
            leader = self._racks[first].next_unfenced(self._round)
        placed = [leader]
        at, skip = self._offset, True
        while len(placed) < replicas:
            # The leader's rack is skipped in the first round over the racks.
            if skip and at == first:
                skip = False
            else:
                broker = self._racks[at].next(self._round)
                if broker is not None:
                    placed.append(broker)
            at = (at + 1) % count
        self._round += 1
        self._offset += 1
        return tuple(placed)
