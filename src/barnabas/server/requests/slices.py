"""How the list of a long request is split into slices, and how their responses are joined (pure)."""

from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any, Final, final

from barnabas.protocol.schema.struct import schema_of

# Items per slice. Most handlers process this many in two or three milliseconds.
AT_ONCE: Final = 500


@final
class Slices:
    """A part of an API's row.

    `items` is the path to the list, down to the innermost one that may be long: ("topics", "partitions").
    `answers` is the path to the answers in the response, if it is another. `same` names the fields that are
    equal in two answers about one item whose inner list was split, and `same_topic` those of the level below,
    where the path has three. Items with the same `together` fields stay in one slice, because handlers refuse
    them as duplicates. With `is_set` an item that is named twice is answered once. `merged` names other lists
    of the response: their entries are collected from all slices.
    """

    def __init__(
        self,
        items: str | tuple[str, ...],
        answers: str | tuple[str, ...] | None = None,
        *,
        at_once: int = AT_ONCE,
        same: tuple[str, ...] = ("name",),
        same_topic: tuple[str, ...] = ("name",),
        together: tuple[str, ...] = (),
        is_set: bool = False,
        merged: tuple[str, ...] = (),
        is_hot: bool = False,
        is_change: bool = False,
    ) -> None:
        self.items: Final = (items,) if isinstance(items, str) else items
        self.answers: Final = (answers,) if isinstance(answers, str) else answers or self.items
        assert len(self.items) == len(self.answers), (items, answers)
        self.at_once: Final = at_once
        self.merged: Final = merged
        # Only large frames are checked, because small ones are very frequent.
        self.is_hot: Final = is_hot
        # A change is carried out completely even if its client has gone.
        self.is_change: Final = is_change
        self._is_set: Final = is_set
        self._same: Final = (attrgetter(*same), attrgetter(*same_topic))
        self._together: Final = attrgetter(*together) if together else None

    def weight(self, body: object) -> int:
        """Count the items of a request that can be split."""
        items = getattr(body, self.items[0], None)
        return 0 if items is None else weight(items, self.items[1:])

    def is_long(self, body: object) -> bool:
        """Whether a request has more items than one slice takes."""
        return self.weight(body) > self.at_once

    def split(self, body: object) -> Iterator[object]:
        """Yield requests like this one, with a slice of its list each."""
        items = getattr(body, self.items[0])
        if self._is_set:
            items = dict.fromkeys(items)
        units: Iterable[list[Any]] = ([one] for one in items)
        if self._together is not None:
            units = _groups(items, self._together)
        for part in _slices(units, self.items[1:], self.at_once):
            yield _with(body, self.items[0], part)

    def join(self, last: list[Any], more: list[Any]) -> list[Any]:
        """Join the answers of two slices; an item that was split between them gets one answer."""
        return _joined(last, more, self.answers[1:], self._same)

    def merge(self, into: object, other: object) -> None:
        """Add the entries of the other lists in another slice's response."""
        for name in self.merged:
            known = getattr(into, name)
            known += [one for one in getattr(other, name) if one not in known]


def weight(items: Sequence[Any], inner: tuple[str, ...]) -> int:
    """Count the items of a list, including nested ones."""
    if not inner:
        return len(items)
    total = len(items)
    for one in items:
        nested = getattr(one, inner[0])
        if nested:
            total += len(nested) if len(inner) == 1 else weight(nested, inner[1:])
    return total


def _groups(items: Iterable[Any], together: "attrgetter[Any]") -> Iterable[list[Any]]:
    groups: dict[Any, list[Any]] = {}
    for one in items:
        groups.setdefault(together(one), []).append(one)
    return groups.values()


def _slices(units: Iterable[list[Any]], inner: tuple[str, ...], size: int) -> Iterator[list[Any]]:
    """Yield lists of about `size` items. A unit is split only if it is one item with a longer list in it."""
    found: list[Any] = []
    left = size
    for unit in units:
        for part, taken in _parts(unit, inner, size):
            if found and taken > left:
                yield found
                found, left = [], size
            found += part
            left -= taken
    if found:
        yield found


def _parts(unit: list[Any], inner: tuple[str, ...], size: int) -> Iterator[tuple[list[Any], int]]:
    taken = weight(unit, inner)
    nested = getattr(unit[0], inner[0]) if inner and len(unit) == 1 else None
    if taken <= size or not nested:
        yield unit, taken
        return
    for items in _slices(([one] for one in nested), inner[1:], size - 1):
        yield [_with(unit[0], inner[0], items)], 1 + weight(items, inner[1:])


def _with(message: Any, name: str, items: list[Any]) -> Any:
    """Return a copy of a message with another list in it."""
    fields = {field.name: getattr(message, field.name) for field in schema_of(type(message)).fields}
    part = type(message)(**{**fields, name: items})
    part.unknown_tags = message.unknown_tags
    return part


def _joined(
    last: list[Any], more: list[Any], inner: tuple[str, ...], same: tuple["attrgetter[Any]", ...]
) -> list[Any]:
    if not inner or not last or not more or same[0](last[-1]) != same[0](more[0]):
        return last + more
    # The innermost level has partitions, which are never split.
    nested = getattr(last[-1], inner[0])
    if len(inner) == 1:
        nested += getattr(more[0], inner[0])
    else:
        nested[:] = _joined(nested, getattr(more[0], inner[0]), inner[1:], same[1:])
    return last + more[1:]
