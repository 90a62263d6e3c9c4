"""Merge lists of results by topic, each with results by partition."""

from collections.abc import Sequence
from copy import copy
from typing import Any, Protocol, TypeVar


class TopicAnswer(Protocol):
    name: str
    partitions: list[Any]


T = TypeVar("T", bound=TopicAnswer)


def merged_by_topic(first: Sequence[T], then: Sequence[T]) -> list[T]:
    """Return both lists as one, with a single entry per topic.

    Neither list changes, because a caller may merge twice: the broker's refusals with the coordinator's
    results, and again with errors if these results could not be written.
    """
    merged = [copy(topic) for topic in first]
    places = {topic.name: topic for topic in merged}
    for topic in then:
        there = places.get(topic.name)
        if there is None:
            merged.append(topic)
        else:
            there.partitions = [*there.partitions, *topic.partitions]
    return merged
