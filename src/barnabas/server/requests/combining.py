"""Combine answers: several of which some may be deferred, and lists of results by topic."""

from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from typing import Any, Protocol, TypeVar

from barnabas.server.requests.api import Answer, Later


class TopicAnswer(Protocol):
    name: str
    partitions: list[Any]


T = TypeVar("T", bound=TopicAnswer)


def gathered(answers: Sequence[Answer], make: Callable[[list[Any]], object]) -> Answer:
    """Return make() of all answers, in order: now if all are there, otherwise a Later for it."""
    waiting = [at for at, answer in enumerate(answers) if isinstance(answer, Later)]
    found = list(answers)
    if not waiting:
        return make(found)
    whole = Later()
    left = len(waiting)

    def come(at: int, answer: object) -> None:
        nonlocal left
        found[at] = answer
        left -= 1
        if left == 0:
            whole.finish(make(found))

    for at in waiting:
        one = answers[at]
        assert isinstance(one, Later)
        one.then_call(partial(come, at))
    return whole


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
