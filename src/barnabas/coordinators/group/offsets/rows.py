"""The committed offsets of one group, in a compact hash table (compiled).

An open-addressing hash table with linear probing. A row has three words: the key, and the two numbers of a
plain value (plain.py). Values that are not plain are in a separate dictionary.

Rows are not objects, so an offset takes 33 bytes instead of 140 in a dictionary, and the garbage collector
has nothing to visit.
"""

from typing import Final

from librt.vecs import vec
from mypy_extensions import i64, mypyc_attr

ROW_WORDS: Final = 3
# Facts of a free row.
FREE: Final = 0
NOT_FOUND: Final = -1

# A full table grows by a quarter plus GROWTH_MIN rows: most groups have few offsets.
GROWTH: Final = 4
GROWTH_MIN: Final = 2
# One in SPARE rows stays free, to keep searches short, and one more, so that they terminate.
SPARE: Final = 8
# A table that is less than 1/SHRINK full is shrunk.
SHRINK: Final = 3

INT31_MAX: Final = 0x7FFFFFFF
LOW: Final = 0xFFFFFFFF
# Multipliers for Fibonacci hashing: 2**32 times the golden section (0.382) and the silver section (0.414).
# Partitions and topics are successive numbers; their multiples, and the sums of both, are spread evenly over
# all rows.
PARTITION_STEP: Final = 1640531535
TOPIC_STEP: Final = 1779033704


def home(key: i64, rows: i64) -> i64:
    """The preferred row of a key (see pack_key() of table.py).

    No intermediate result exceeds 63 bits.
    """
    scattered: i64 = (key & INT31_MAX) * PARTITION_STEP + (key >> 32) * TOPIC_STEP
    return ((scattered & LOW) * rows) >> 32


# Never part of a cycle, so the garbage collector can skip a hundred thousand of them.
@mypyc_attr(acyclic=True)
class GroupOffsets:
    """Offset and facts of plain values, and all other values, by packed key."""

    __slots__ = ("_count", "_odd", "_words")

    def __init__(self) -> None:
        self._words = vec[i64]()
        # The number of used rows.
        self._count: i64 = 0
        self._odd: dict[int, bytes] | None = None

    @property
    def is_empty(self) -> bool:
        return self._count == 0 and self._odd is None

    def row(self, key: i64) -> tuple[i64, i64]:
        """Offset and facts; the facts are FREE without a plain value."""
        if self._count == 0:
            return 0, FREE
        words = self._words
        at: i64 = self._find(words, key)
        return (words[at + 1], words[at + 2]) if at != NOT_FOUND else (0, FREE)

    def odd(self, key: i64) -> bytes | None:
        """A value that is not plain."""
        odd = self._odd
        return None if odd is None else odd.get(key)

    def put(self, key: i64, offset: i64, facts: i64) -> bool:
        """Store a plain value. True if the key is new."""
        # Replacing an odd value is not new.
        is_new = self._odd is None or not self._remove_odd(key)
        words = self._words
        at: i64 = self._find(words, key)
        if at == NOT_FOUND or words[at + 2] == FREE:
            if self._count >= fitting(len(words) // ROW_WORDS):
                self._resize()
                words = self._words
                at = self._find(words, key)
            self._count += 1
            words[at] = key
        else:
            is_new = False
        words[at + 1] = offset
        words[at + 2] = facts
        return is_new

    def put_odd(self, key: i64, value: bytes) -> bool:
        """Store a value that is not plain. True if the key is new."""
        odd = self._odd
        if odd is None:
            odd = self._odd = {}
        elif key in odd:
            odd[key] = value
            return False
        odd[key] = value
        return not self._remove_row(key)

    def remove(self, key: i64) -> bool:
        """Remove the value of a key. True if there was one."""
        return self._remove_row(key) or self._remove_odd(key)

    # Iteration: `at` is the position of a row, valid until the next put or remove.

    def next_row(self, at: i64) -> i64:
        """The first used row at or after `at`; NOT_FOUND if there is none."""
        words = self._words
        while at < len(words):
            if words[at + 2] != FREE:
                return at
            at += ROW_WORDS
        return NOT_FOUND

    def row_at(self, at: i64) -> tuple[i64, i64, i64]:
        """Key, offset and facts."""
        words = self._words
        return words[at], words[at + 1], words[at + 2]

    def odd_ones(self) -> list[tuple[int, bytes]]:
        odd = self._odd
        return [] if odd is None else list(odd.items())

    def _find(self, words: vec[i64], key: i64) -> i64:
        """The position of the key's row, or of the free row for it; NOT_FOUND if there is neither."""
        size: i64 = len(words)
        if size <= ROW_WORDS:
            return 0 if size > 0 and (words[0] == key or words[2] == FREE) else NOT_FOUND
        at: i64 = home(key, size // ROW_WORDS) * ROW_WORDS
        while words[at + 2] != FREE and words[at] != key:
            at += ROW_WORDS
            if at == size:
                at = 0
        return at

    def _remove_odd(self, key: i64) -> bool:
        odd = self._odd
        if odd is None or odd.pop(key, None) is None:
            return False
        if not odd:
            self._odd = None
        return True

    def _remove_row(self, key: i64) -> bool:
        if self._count == 0:
            return False
        words = self._words
        at: i64 = self._find(words, key)
        if at == NOT_FOUND or words[at + 2] == FREE:
            return False
        self._close_gap(words, at)
        self._count -= 1
        if self._count * SHRINK < len(words) // ROW_WORDS:
            self._resize()
        return True

    def _close_gap(self, words: vec[i64], gap: i64) -> None:
        """Free a row. Move later rows that could no longer be found."""
        size: i64 = len(words)
        count: i64 = size // ROW_WORDS
        at: i64 = gap
        words[gap + 2] = FREE
        while True:
            at += ROW_WORDS
            if at == size:
                at = 0
            if words[at + 2] == FREE:
                return
            preferred: i64 = home(words[at], count) * ROW_WORDS
            # A row may move if the gap is not before its preferred row, cyclically.
            from_preferred: i64 = at - preferred if at >= preferred else at - preferred + size
            from_gap: i64 = at - gap if at >= gap else at - gap + size
            if from_preferred >= from_gap:
                words[gap] = words[at]
                words[gap + 1] = words[at + 1]
                words[gap + 2] = words[at + 2]
                words[at + 2] = FREE
                gap = at

    def _resize(self) -> None:
        """Rebuild the table with some room beyond the used rows."""
        old = self._words
        rows: i64 = 0
        while fitting(rows) <= self._count:
            rows += rows // GROWTH + GROWTH_MIN if rows > 0 else 1
        count: i64 = rows * ROW_WORDS
        words = self._words = vec[i64]([0] * count)
        size: i64 = len(old)
        at: i64 = 0
        while at < size:
            if old[at + 2] != FREE:
                to: i64 = self._find(words, old[at])
                words[to] = old[at]
                words[to + 1] = old[at + 1]
                words[to + 2] = old[at + 2]
            at += ROW_WORDS


def fitting(rows: i64) -> i64:
    """The maximum number of used rows. A single row needs no spare: many groups have only one offset."""
    return rows - rows // SPARE - 1 if rows > 1 else rows
