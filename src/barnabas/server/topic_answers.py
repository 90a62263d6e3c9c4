"""Answers about partitions, with one entry for each topic."""

from collections.abc import Sequence
from copy import copy
from typing import Any, Protocol, TypeVar


class TopicAnswer(Protocol):
    name: str
    partitions: list[Any]


T = TypeVar("T", bound=TopicAnswer)


def merged_by_topic(first: Sequence[T], then: Sequence[T]) -> list[T]:
    """Both. What is in `then` of a topic of `first` goes to the entry that is there.

    Neither changes: what the broker refuses is merged with what the coordinator says, and again with its
    refusal if what it said could not be written.
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
