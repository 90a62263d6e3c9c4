"""One group's committed offsets, in as little memory as they need (compiled).

A table of rows of three words: the key, and the two numbers of a plain value (plain.py). Keys that fall on
the same row go on to the next one. Values that are not plain are kept aside, as they are.

There is no object for a row, so 33 bytes are what an offset takes where a dictionary of values takes 140, and
the garbage collector has nothing to visit.
"""

from typing import Final

from librt.vecs import vec
from mypy_extensions import i64, mypyc_attr

ROW_WORDS: Final = 3
# A row whose facts are this is free.
FREE: Final = 0
NOT_FOUND: Final = -1

# A table that is full grows by a quarter, and by this many rows: most groups have few offsets.
GROWTH: Final = 4
GROWTH_MIN: Final = 2
# Of so many rows one stays free, so that searches are short; and one more, so that they end.
SPARE: Final = 8
# A table that is used to less than this part is made smaller.
SHRINK: Final = 3

INT31_MAX: Final = 0x7FFFFFFF
LOW: Final = 0xFFFFFFFF
# The golden and the silver section of 2**32. Partitions are successive numbers and so are topics, and
# multiples of these are spread evenly over all rows; so are the sums of both.
PARTITION_STEP: Final = 1640531535
TOPIC_STEP: Final = 1779033704


def home(key: i64, rows: i64) -> i64:
    """The row of so many in which a key (see pack_key() of table.py) would like to be.

    Nothing here has more than 63 bits.
    """
    scattered: i64 = (key & INT31_MAX) * PARTITION_STEP + (key >> 32) * TOPIC_STEP
    return ((scattered & LOW) * rows) >> 32


# It is never part of a cycle, so the garbage collector need not visit a hundred thousand of them.
@mypyc_attr(acyclic=True)
class GroupOffsets:
    """By packed key the offset and the facts of a plain value, or a value that is not."""

    __slots__ = ("_count", "_odd", "_words")

    def __init__(self) -> None:
        self._words = vec[i64]()
        # How many rows are in use.
        self._count: i64 = 0
        self._odd: dict[int, bytes] | None = None

    @property
    def is_empty(self) -> bool:
        return self._count == 0 and self._odd is None

    def row(self, key: i64) -> tuple[i64, i64]:
        """Offset and facts; these are FREE if there is no plain value."""
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
        """A plain value. True if there was none of the key."""
        # What takes the place of an odd one is not new.
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
        """A value that is not plain. True if there was none of the key."""
        odd = self._odd
        if odd is None:
            odd = self._odd = {}
        elif key in odd:
            odd[key] = value
            return False
        odd[key] = value
        return not self._remove_row(key)

    def remove(self, key: i64) -> bool:
        """True if there was one."""
        return self._remove_row(key) or self._remove_odd(key)

    # All of them: `at` is where a row is, and changes with whatever is put or removed.

    def next_row(self, at: i64) -> i64:
        """The first row in use that is not before `at`; NOT_FOUND if there is none."""
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
        """Where the row of the key is, or the free one where it would go; NOT_FOUND if there is no such."""
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
        """Free a row. Those behind it that would not be found any more move up."""
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
            wished: i64 = home(words[at], count) * ROW_WORDS
            # It may move if the gap is not before the row that it would like to be in, going round.
            from_wished: i64 = at - wished if at >= wished else at - wished + size
            from_gap: i64 = at - gap if at >= gap else at - gap + size
            if from_wished >= from_gap:
                words[gap] = words[at]
                words[gap + 1] = words[at + 1]
                words[gap + 2] = words[at + 2]
                words[at + 2] = FREE
                gap = at

    def _resize(self) -> None:
        """A table with some room for those that there are."""
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
    """How many of so many rows may be in use. One row has no spare: very many groups have only one offset."""
    return rows - rows // SPARE - 1 if rows > 1 else rows
