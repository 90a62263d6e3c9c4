"""Compact store of committed offsets by group, topic and partition (compiled).

Values go in and come out as the bytes of the record value. Topics are mapped to numbers, so that the keys
within a group are numbers, and a topic id, which nearly all values contain, is stored once. This leaves two
numbers of most values: see "Compact form" in record.py.

The offsets of a group are rows of an open-addressing hash table with linear probing. A row has three words:
the key, and the two numbers of a plain value. Other values are in a separate dictionary. Rows are not
objects, so an offset takes 33 bytes instead of 140 in a dictionary, and the garbage collector has nothing to
visit.
"""

from typing import Final

from librt.strings import read_i64_be
from librt.vecs import append, vec
from mypy_extensions import i64, mypyc_attr

from barnabas.base.memory import shrink
from barnabas.coordinators.group.offsets.record import (
    NOT_PLAIN,
    OFFSET_AT,
    TOPIC_ID_AT,
    WITH_ID,
    form_in,
    plain_facts,
    plain_value,
)

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
    """The preferred row of a key from pack_key().

    No intermediate result exceeds 63 bits.
    """
    scattered: i64 = (key & INT31_MAX) * PARTITION_STEP + (key >> 32) * TOPIC_STEP
    return ((scattered & LOW) * rows) >> 32


# Never part of a cycle, so the garbage collector can skip a hundred thousand of them.
@mypyc_attr(acyclic=True)
class GroupOffsets:
    """The offsets of one group: offset and facts of plain values, and all other values, by packed key."""

    __slots__ = ("_count", "_others", "_words")

    def __init__(self) -> None:
        self._words = vec[i64]()
        # The number of used rows.
        self._count: i64 = 0
        self._others: dict[int, bytes] | None = None

    @property
    def is_empty(self) -> bool:
        return self._count == 0 and self._others is None

    def row(self, key: i64) -> tuple[i64, i64]:
        """Offset and facts; the facts are FREE without a plain value."""
        if self._count == 0:
            return 0, FREE
        words = self._words
        at: i64 = self._find(words, key)
        return (words[at + 1], words[at + 2]) if at != NOT_FOUND else (0, FREE)

    def other(self, key: i64) -> bytes | None:
        """A value that is not plain."""
        others = self._others
        return None if others is None else others.get(key)

    def put(self, key: i64, offset: i64, facts: i64) -> bool:
        """Store a plain value. True if the key is new."""
        # Replacing another value is not new.
        is_new = self._others is None or not self._remove_other(key)
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

    def put_other(self, key: i64, value: bytes) -> bool:
        """Store a value that is not plain. True if the key is new."""
        others = self._others
        if others is None:
            others = self._others = {}
        elif key in others:
            others[key] = value
            return False
        others[key] = value
        return not self._remove_row(key)

    def remove(self, key: i64) -> bool:
        """Remove the value of a key. True if there was one."""
        return self._remove_row(key) or self._remove_other(key)

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

    def other_values(self) -> list[tuple[int, bytes]]:
        others = self._others
        return [] if others is None else list(others.items())

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

    def _remove_other(self, key: i64) -> bool:
        others = self._others
        if others is None or others.pop(key, None) is None:
            return False
        if not others:
            self._others = None
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


TOPIC_SHIFT: Final = 32


def pack_key(topic: i64, partition: i64) -> i64:
    """Topic number and partition in one number."""
    return (topic << TOPIC_SHIFT) | (partition & LOW)


def topic_in(key: i64) -> i64:
    return key >> TOPIC_SHIFT


def partition_in(key: i64) -> i64:
    partition: i64 = key & LOW
    return partition if partition <= INT31_MAX else partition - LOW - 1


class TopicNumbers:
    """Numbers of the topics with offsets. Unused numbers are reused."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._names: list[str] = []
        self._uses: list[int] = []
        self._free: list[int] = []
        # Two halves of each topic id; both 0 while unknown.
        self._ids = vec[i64]()

    def find(self, name: str) -> i64:
        return self._numbers.get(name, NOT_FOUND)

    def name(self, number: i64) -> str:
        return self._names[number]

    def take(self, name: str) -> i64:
        """The number of a topic, allocated if new: use() must follow."""
        number: i64 = self._numbers.get(name, NOT_FOUND)
        if number != NOT_FOUND:
            return number
        if self._free:
            number = self._free.pop()
            self._names[number] = name
        else:
            number = len(self._names)
            self._names.append(name)
            self._uses.append(0)
            self._ids = append(append(self._ids, 0), 0)
        self._numbers[name] = number
        return number

    def id_halves(self, number: i64) -> tuple[i64, i64]:
        return self._ids[2 * number], self._ids[2 * number + 1]

    def takes_id(self, number: i64, high: i64, low: i64) -> bool:
        """Whether this is the id of the topic. The first id is stored as the topic's."""
        ids = self._ids
        at: i64 = 2 * number
        if ids[at] == 0 and ids[at + 1] == 0:
            ids[at] = high
            ids[at + 1] = low
            # The zero id means no id.
            return high != 0 or low != 0
        return ids[at] == high and ids[at + 1] == low

    def use(self, number: i64) -> None:
        self._uses[number] += 1

    def release(self, number: i64) -> bool:
        """Decrement the use count. True if the topic is now unused."""
        self._uses[number] -= 1
        if self._uses[number] > 0:
            return False
        del self._numbers[self._names[number]]
        self._names[number] = ""
        self._ids[2 * number] = 0
        self._ids[2 * number + 1] = 0
        self._free.append(number)
        return True


class OffsetTable:
    """The last committed offset of every partition of every group."""

    def __init__(self) -> None:
        self._groups: dict[str, GroupOffsets] = {}
        self.topics: Final = TopicNumbers()
        self.count: i64 = 0
        # Incremented when a group or topic number is removed, to invalidate caches.
        self.dropped: i64 = 0

    def __contains__(self, group: str) -> bool:
        return group in self._groups

    def groups(self) -> list[str]:
        return list(self._groups)

    def has_topic(self, topic: str) -> bool:
        """Whether any group has an offset of it."""
        return self.topics.find(topic) != NOT_FOUND

    def get(self, group: str, topic: str, partition: int) -> bytes | None:
        offsets = self._groups.get(group)
        number = self.topics.find(topic)
        if offsets is None or number == NOT_FOUND:
            return None
        key = pack_key(number, partition)
        offset, facts = offsets.row(key)
        return offsets.other(key) if facts == NOT_PLAIN else self._value(number, offset, facts)

    def put(self, group: str, topic: str, partition: int, value: bytes) -> None:
        self.put_slice(self.offsets_of(group), self.topics.take(topic), partition, value, 0, len(value))

    def offsets_of(self, group: str) -> GroupOffsets:
        """The offsets of a group, created if new: put_slice() must follow."""
        offsets = self._groups.get(group)
        if offsets is None:
            offsets = self._groups[group] = GroupOffsets()
        return offsets

    def put_slice(
        self, offsets: GroupOffsets, topic: i64, partition: i64, data: bytes, at: i64, end: i64
    ) -> None:
        """put() of the value in data[at:end], for a group and topic already looked up."""
        key: i64 = pack_key(topic, partition)
        facts: i64 = plain_facts(data, at, end)
        if form_in(facts) == WITH_ID:
            # A different id belongs to an earlier or later topic of the same name; such a value is stored as
            # is.
            high: i64 = read_i64_be(data, at + TOPIC_ID_AT)
            if not self.topics.takes_id(topic, high, read_i64_be(data, at + TOPIC_ID_AT + 8)):
                facts = NOT_PLAIN
        if facts == NOT_PLAIN:
            is_new = offsets.put_other(key, data[at:end])
        else:
            is_new = offsets.put(key, read_i64_be(data, at + OFFSET_AT), facts)
        if is_new:
            self.topics.use(topic)
            self.count += 1

    def remove(self, group: str, topic: str, partition: int) -> None:
        offsets = self._groups.get(group)
        number = self.topics.find(topic)
        if offsets is None or number == NOT_FOUND or not offsets.remove(pack_key(number, partition)):
            return
        self.count -= 1
        if offsets.is_empty:
            del self._groups[group]
            shrink(self._groups)
            self.dropped += 1
        if self.topics.release(number):
            self.dropped += 1

    def of_group(self, group: str) -> list[tuple[str, int, bytes]]:
        """Topic, partition and value of all offsets of a group, sorted by topic and partition."""
        offsets = self._groups.get(group)
        found: list[tuple[str, int, bytes]] = []
        if offsets is None:
            return found
        topics = self.topics
        at: i64 = offsets.next_row(0)
        while at != NOT_FOUND:
            key, offset, facts = offsets.row_at(at)
            number: i64 = topic_in(key)
            found.append((topics.name(number), partition_in(key), self._value(number, offset, facts)))
            at = offsets.next_row(at + ROW_WORDS)
        for key_of_other, value in offsets.other_values():
            found.append((topics.name(topic_in(key_of_other)), partition_in(key_of_other), value))
        found.sort()
        return found

    def _value(self, topic: i64, offset: i64, facts: i64) -> bytes:
        high, low = self.topics.id_halves(topic)
        return plain_value(offset, facts, high, low)
