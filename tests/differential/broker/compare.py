"""Two brokers' answers side by side: every field in which they differ, with its path.

Lists of named items are compared by name, so one missing topic is one difference. What an error says in words
is compared by being null, empty or there.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from differential.broker.normal import MESSAGES, item_key
from differential.broker.talk import Answers

MISSING = "<missing>"


class Mismatch(NamedTuple):
    """One field of one answer."""

    story: str
    step: str
    path: str
    kafka: Any
    ours: Any

    def __str__(self) -> str:
        where = self.path or "the answer"
        return f"{self.step}\n    {where}\n      Kafka: {self.kafka!r}\n      ours:  {self.ours!r}"


def compare_story(story: str, kafka: Answers, ours: Answers) -> list[Mismatch]:
    """Every difference between what the two answered."""
    found = []
    for step in [*kafka, *(step for step in ours if step not in kafka)]:
        expected, given = kafka.get(step, MISSING), ours.get(step, MISSING)
        found += [Mismatch(story, step, *row) for row in _differences("", "", expected, given)]
    return found


def _differences(path: str, field: str, kafka: Any, ours: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(kafka, dict) and isinstance(ours, dict):
        for name in [*kafka, *(name for name in ours if name not in kafka)]:
            below = f"{path}.{name}" if path else name
            yield from _differences(below, name, kafka.get(name, MISSING), ours.get(name, MISSING))
    elif isinstance(kafka, list) and isinstance(ours, list):
        yield from _list_differences(path, kafka, ours)
    elif field in MESSAGES:
        if _kind_of_message(kafka) != _kind_of_message(ours):
            yield path, kafka, ours
    elif kafka != ours or type(kafka) is not type(ours):
        yield path, kafka, ours


def _list_differences(path: str, kafka: list[Any], ours: list[Any]) -> Iterator[tuple[str, Any, Any]]:
    theirs, own = _by_name(kafka), _by_name(ours)
    if theirs is None or own is None:
        theirs = {str(index): item for index, item in enumerate(kafka)}
        own = {str(index): item for index, item in enumerate(ours)}
    for name in [*theirs, *(name for name in own if name not in theirs)]:
        yield from _differences(f"{path}[{name}]", "", theirs.get(name, MISSING), own.get(name, MISSING))


def _by_name(items: list[Any]) -> dict[str, Any] | None:
    """The items by their names, if each has one of its own."""
    named = {item_key(item): item for item in items}
    if None in named or len(named) != len(items):
        return None
    return {str(name): item for name, item in named.items()}


def _kind_of_message(value: Any) -> str:
    if value is None or value == MISSING:
        return repr(value)
    return "text" if value else "empty"
