"""Compact store of committed offsets by group, topic and partition (compiled).

Values go in and come out as the bytes of the record value. Topics are mapped to numbers, so that the keys
within a group are numbers, and a topic id, which nearly all values contain, is stored once. This leaves two
numbers of most values: see plain.py; rows.py stores them.
"""

from typing import Final

from librt.strings import read_i64_be
from librt.vecs import append, vec
from mypy_extensions import i64

from barnabas.base.memory import shrink
from barnabas.coordinators.group.offsets.plain import (
    NOT_PLAIN,
    OFFSET_AT,
    TOPIC_ID_AT,
    WITH_ID,
    form_in,
    plain_facts,
    plain_value,
)
from barnabas.coordinators.group.offsets.rows import NOT_FOUND, ROW_WORDS, GroupOffsets

TOPIC_SHIFT: Final = 32
LOW: Final = 0xFFFFFFFF
INT32_MAX: Final = 0x7FFFFFFF


def pack_key(topic: i64, partition: i64) -> i64:
    """Topic number and partition in one number."""
    return (topic << TOPIC_SHIFT) | (partition & LOW)


def topic_in(key: i64) -> i64:
    return key >> TOPIC_SHIFT


def partition_in(key: i64) -> i64:
    partition: i64 = key & LOW
    return partition if partition <= INT32_MAX else partition - LOW - 1


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
        return offsets.odd(key) if facts == NOT_PLAIN else self._value(number, offset, facts)

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
            is_new = offsets.put_odd(key, data[at:end])
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
        for odd, value in offsets.odd_ones():
            found.append((topics.name(topic_in(odd)), partition_in(odd), value))
        found.sort()
        return found

    def _value(self, topic: i64, offset: i64, facts: i64) -> bytes:
        high, low = self.topics.id_halves(topic)
        return plain_value(offset, facts, high, low)
