"""Offsets of partitions, in the JSON of Spark's own Kafka source.

    {"orders":{"0":23,"1":7}}

Checkpoints contain this JSON, and Spark compares it as text, so equal offsets must always give equal text.
"""

import json
from collections.abc import Mapping
from typing import Final, TypeAlias

from barnabas.base.errors import BarnabasError
from barnabas.base.ids import TopicPartition

# The next offset to read, by partition.
Offsets: TypeAlias = Mapping[TopicPartition, int]

# Allowed in options, never in checkpoints.
EARLIEST: Final = -2
LATEST: Final = -1
_PARTITION_MAX: Final = (1 << 31) - 1
_OFFSET_MAX: Final = (1 << 63) - 1


class BadOffsets(BarnabasError):
    """Text that is not valid JSON of partitions or offsets."""


def to_json(offsets: Offsets) -> str:
    """Return compact JSON with topics sorted by name and partitions by number."""
    topics: dict[str, dict[str, int]] = {}
    for tp in sorted(offsets):
        topics.setdefault(tp.topic, {})[str(tp.partition)] = offsets[tp]
    return json.dumps(topics, separators=(",", ":"), ensure_ascii=False)


def from_json(text: str) -> dict[TopicPartition, int]:
    """Parse offsets; raises BadOffsets. EARLIEST and LATEST pass; the caller checks if they are allowed."""
    found: dict[TopicPartition, int] = {}
    for topic, partitions in _object(text, "offsets").items():
        if not isinstance(partitions, dict):
            raise BadOffsets(
                f"topic {topic!r} has {partitions!r}, expected an object of partitions and offsets"
            )
        for number, offset in partitions.items():
            tp = TopicPartition(topic, _partition(topic, number))
            if (
                isinstance(offset, bool)
                or not isinstance(offset, int)
                or not EARLIEST <= offset <= _OFFSET_MAX
            ):
                raise BadOffsets(f"{tp} has {offset!r}, which is not a valid offset")
            if tp in found:
                raise BadOffsets(f"{tp} is named twice")
            found[tp] = offset
    return found


def partitions_from_json(text: str) -> list[TopicPartition]:
    """Parse the value of the option `assign`, such as {"orders":[0,1]}."""
    found: list[TopicPartition] = []
    for topic, numbers in _object(text, "partitions").items():
        if not isinstance(numbers, list) or not numbers:
            raise BadOffsets(f"topic {topic!r} has {numbers!r}, expected a list of partitions")
        for number in numbers:
            if isinstance(number, bool) or not isinstance(number, int):
                raise BadOffsets(f"{number!r} is not a valid partition of topic {topic!r}")
            tp = TopicPartition(topic, _partition(topic, str(number)))
            if tp in found:
                raise BadOffsets(f"{tp} is named twice")
            found.append(tp)
    return found


def _object(text: str, what: str) -> dict[str, object]:
    try:
        told = json.loads(text, object_pairs_hook=_once)
    except ValueError as error:
        raise BadOffsets(f"{text!r} is not valid JSON: {error}") from None
    if not isinstance(told, dict):
        raise BadOffsets(f"{text!r} is not a JSON object of topics and {what}")
    return told


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Reject duplicate keys: json would keep the last one and silently drop the others."""
    told = dict(pairs)
    if len(told) < len(pairs):
        names = [name for name, _ in pairs]
        raise BadOffsets(f"{next(name for name in names if names.count(name) > 1)!r} is named twice")
    return told


def _partition(topic: str, number: str) -> int:
    if not topic:
        raise BadOffsets("the name of a topic is empty")
    if not (number.isascii() and number.isdecimal()) or int(number) > _PARTITION_MAX:
        raise BadOffsets(f"{number!r} is not a valid partition of topic {topic!r}")
    return int(number)
