"""Dispatches records to the part of a shard that they belong to (compiled, because every commit has one)."""

from collections.abc import Callable
from typing import Final

from barnabas.coordinators.decision.outcome import Record
from barnabas.coordinators.group.offsets.offsets import Offsets
from barnabas.coordinators.group.offsets.record import OffsetRecord


class Applying:
    """Applies commits to the offsets and passes all other records to `others`, which may be interpreted."""

    def __init__(self, offsets: Offsets, others: Callable[[Record], None]) -> None:
        self._offsets: Final = offsets
        self._others: Final = others

    def apply(self, record: Record) -> None:
        if isinstance(record, OffsetRecord):
            self._offsets.apply(record)
        else:
            self._others(record)
