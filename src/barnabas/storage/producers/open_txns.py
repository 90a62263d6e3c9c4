"""The transactions of one log that bound its last stable offset (compiled, pure).

A transaction is here from its first batch until its marker is below the high watermark. The earliest first
offset bounds the last stable offset. A producer has at most one open transaction; how many completed ones
wait for the high watermark depends on the followers' lag.
"""

from collections.abc import Iterable
from typing import Final

from mypy_extensions import i64, mypyc_attr

_NONE: Final[i64] = -1


@mypyc_attr(acyclic=True)
class CompletedTxn:
    """A transaction whose marker was appended at last_offset."""

    __slots__ = ("aborted", "first_offset", "last_offset", "producer_id")

    def __init__(self, producer_id: int, first_offset: i64, last_offset: i64, aborted: bool) -> None:
        self.producer_id: Final = producer_id
        self.first_offset: Final = first_offset
        self.last_offset: Final = last_offset
        self.aborted: Final = aborted


class OpenTxns:
    """Open transactions, and completed ones that are not stable yet."""

    __slots__ = ("_completed", "_first", "_open")

    def __init__(self) -> None:
        # Producer ids by the first offset of their open transaction, in offset order, because a transaction
        # begins at the end of the log.
        self._open: dict[int, int] = {}
        # In marker order.
        self._completed: list[CompletedTxn] = []
        # The lowest first offset of both, cached because every append needs it. Completing a transaction does
        # not change it.
        self._first: i64 = _NONE

    def begin(self, producer_id: int, first_offset: i64) -> None:
        self._open[first_offset] = producer_id
        if self._first < 0:
            self._first = first_offset

    def load(self, begun: Iterable[tuple[int, int]]) -> None:
        """Begin the transactions of a snapshot: first offsets and producer ids, in any order."""
        for first_offset, producer_id in sorted(begun):
            self.begin(producer_id, first_offset)

    def complete(self, completed: CompletedTxn) -> None:
        del self._open[completed.first_offset]
        self._completed.append(completed)

    def stable_below(self, offset: i64) -> None:
        """Remove the transactions whose markers are below `offset`, the new high watermark."""
        completed = self._completed
        done = 0
        first_is_done = False
        while done < len(completed) and completed[done].last_offset < offset:
            if completed[done].first_offset == self._first:
                first_is_done = True
            done += 1
        if done:
            del completed[:done]
        if first_is_done:
            self._first = self._find_first()

    def _find_first(self) -> i64:
        first: i64 = next(iter(self._open)) if self._open else -1
        for txn in self._completed:
            if first < 0 or txn.first_offset < first:
                first = txn.first_offset
        return first

    def first_offset(self) -> int | None:
        return None if self._first < 0 else self._first

    def last_stable_after(self, completed: CompletedTxn) -> int:
        return next(iter(self._open)) if self._open else completed.last_offset + 1

    def none_completed(self) -> bool:
        return not self._completed
