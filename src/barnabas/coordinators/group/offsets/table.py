"""Committed offsets by group, topic and partition, in little memory (compiled).

An offset is the bytes of its record's value. Topics have numbers here, so that a group's offsets are one
dictionary with small keys; a group that has only one offset, of which there may be very many, has none.
"""

from typing import Final

from mypy_extensions import i64, mypyc_attr

NOT_FOUND: Final = -1

TOPIC_SHIFT: Final = 32
LOW: Final = 0xFFFFFFFF
INT32_MAX: Final = 0x7FFFFFFF
# A dictionary looks at the low bits of a key first. Topics begin at different ones, or the same partition of
# all topics would collide.
SPREAD: Final = 2654435761


def pack_key(topic: i64, partition: i64) -> i64:
    """Topic number and partition in one number."""
    return (topic << TOPIC_SHIFT) | ((partition + topic * SPREAD) & LOW)


def topic_in(key: i64) -> i64:
    return key >> TOPIC_SHIFT


def partition_in(key: i64) -> i64:
    partition: i64 = (key - (key >> TOPIC_SHIFT) * SPREAD) & LOW
    return partition if partition <= INT32_MAX else partition - LOW - 1


# It is never part of a cycle, so the garbage collector need not visit a hundred thousand of them.
@mypyc_attr(acyclic=True)
class GroupOffsets:
    """One group's offsets by packed key: one here, more in a dictionary."""

    __slots__ = ("_key", "_many", "_value")

    def __init__(self) -> None:
        self._key: i64 = 0
        self._value: bytes | None = None
        self._many: dict[int, bytes] | None = None

    @property
    def is_empty(self) -> bool:
        return self._value is None and self._many is None

    def get(self, key: i64) -> bytes | None:
        many = self._many
        if many is not None:
            return many.get(key)
        return self._value if self._key == key else None

    def put(self, key: i64, value: bytes) -> bool:
        """True if there was none."""
        many = self._many
        if many is not None:
            before: i64 = len(many)
            many[key] = value
            return len(many) != before
        only = self._value
        if only is None or self._key == key:
            self._key = key
            self._value = value
            return only is None
        self._many = {self._key: only, key: value}
        self._value = None
        return True

    def remove(self, key: i64) -> bool:
        """True if there was one."""
        many = self._many
        if many is None:
            if self._value is None or self._key != key:
                return False
            self._value = None
            return True
        if many.pop(key, None) is None:
            return False
        if len(many) == 1:
            for last, value in many.items():
                self._key = last
                self._value = value
            self._many = None
        return True

    def items(self) -> list[tuple[int, bytes]]:
        many = self._many
        if many is not None:
            return list(many.items())
        only = self._value
        return [] if only is None else [(self._key, only)]


class TopicNumbers:
    """Numbers for the topics that offsets are of. A number that is not in use any more is given again."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._names: list[str] = []
        self._uses: list[int] = []
        self._free: list[int] = []

    def find(self, name: str) -> i64:
        return self._numbers.get(name, NOT_FOUND)

    def name(self, number: i64) -> str:
        return self._names[number]

    def take(self, name: str) -> i64:
        """The number of a topic, made if there is none: use() must follow."""
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
        self._numbers[name] = number
        return number

    def use(self, number: i64) -> None:
        self._uses[number] += 1

    def release(self, number: i64) -> bool:
        """One offset less is of it. True if that was the last."""
        self._uses[number] -= 1
        if self._uses[number] > 0:
            return False
        del self._numbers[self._names[number]]
        self._names[number] = ""
        self._free.append(number)
        return True


class OffsetTable:
    """The last committed offset of every partition of every group."""

    def __init__(self) -> None:
        self._groups: dict[str, GroupOffsets] = {}
        self.topics: Final = TopicNumbers()
        self.count: i64 = 0
        # Goes up when a group or the number of a topic is gone, for whoever keeps them.
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
        return offsets.get(pack_key(number, partition))

    def put(self, group: str, topic: str, partition: int, value: bytes) -> None:
        self.put_into(self.offsets_of(group), self.topics.take(topic), partition, value)

    def offsets_of(self, group: str) -> GroupOffsets:
        """Those of a group, made if there are none: put_into() must follow."""
        offsets = self._groups.get(group)
        if offsets is None:
            offsets = self._groups[group] = GroupOffsets()
        return offsets

    def put_into(self, offsets: GroupOffsets, topic: i64, partition: i64, value: bytes) -> None:
        """Do what put() does, where group and topic have been looked up."""
        if offsets.put(pack_key(topic, partition), value):
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
            self.dropped += 1
        if self.topics.release(number):
            self.dropped += 1

    def of_group(self, group: str) -> list[tuple[str, int, bytes]]:
        """Topic, partition and value of all offsets of a group, by topic and partition."""
        offsets = self._groups.get(group)
        found: list[tuple[str, int, bytes]] = []
        if offsets is None:
            return found
        for key, value in offsets.items():
            packed: i64 = key
            found.append((self.topics.name(topic_in(packed)), partition_in(packed), value))
        found.sort()
        return found
