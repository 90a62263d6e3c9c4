"""Translates filters that Spark pushes down to bounds on the records to read. Spark applies them again."""

import sys
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from barnabas.spark.planning.pruning import Wanted
from barnabas.spark.source.batch import BatchReader

# Spark rejects a reader with pushFilters() unless spark.sql.python.filterPushdown.enabled is true, and does
# not pass the value on. If it is true, however, Spark runs the worker with this module as its main program.
_PUSHES: Final = "pyspark.sql.worker.data_source_pushdown_filters"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MS: Final = timedelta(milliseconds=1)


def are_pushed() -> bool:
    """Whether this worker process pushes filters down."""
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    return _PUSHES in sys.modules or (spec is not None and spec.name == _PUSHES)


class FilteredReader(BatchReader):
    """Only used if are_pushed()."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        for one in filters:
            self.wanted = narrowed(self.wanted, one)
        return filters


def narrowed(wanted: Wanted, one: Filter) -> Wanted:
    """Return narrower bounds, or `wanted` if the filter is not supported."""
    path: tuple[str, ...] = getattr(one, "attribute", ())
    narrow = _COLUMNS.get(path[0]) if len(path) == 1 else None
    return wanted if narrow is None else narrow(wanted, one)


def _by_topic(wanted: Wanted, one: Filter) -> Wanted:
    names = _any_of(one, str)
    return wanted if names is None else wanted.in_topics(frozenset(names))


def _by_partition(wanted: Wanted, one: Filter) -> Wanted:
    numbers = _any_of(one, int)
    return wanted if numbers is None else wanted.in_partitions(frozenset(numbers))


def _by_offset(wanted: Wanted, one: Filter) -> Wanted:
    offsets = _any_of(one, int)
    if offsets is not None:
        # No row can match an empty list: an empty range.
        return wanted.from_offset(min(offsets, default=1)).to_offset(max(offsets, default=0))
    value = getattr(one, "value", None)
    if not isinstance(value, int):
        return wanted
    if isinstance(one, GreaterThan | GreaterThanOrEqual):
        return wanted.from_offset(value + isinstance(one, GreaterThan))
    if isinstance(one, LessThan | LessThanOrEqual):
        return wanted.to_offset(value - isinstance(one, LessThan))
    return wanted


def _by_time(wanted: Wanted, one: Filter) -> Wanted:
    times = _any_of(one, datetime)
    if times:
        return wanted.since(_ms(min(times)))
    value = getattr(one, "value", None)
    if isinstance(one, GreaterThan | GreaterThanOrEqual) and isinstance(value, datetime):
        # Inclusive for both operators: timestamps are whole milliseconds, and Spark filters again.
        return wanted.since(_ms(value))
    return wanted


_COLUMNS: Final[dict[str, Callable[[Wanted, Filter], Wanted]]] = {
    "topic": _by_topic,
    "partition": _by_partition,
    "offset": _by_offset,
    "timestamp": _by_time,
}


def _any_of(one: Filter, kind: type) -> "list[Any] | None":
    """Return the values that an equality filter allows; None for other filters. No row equals null."""
    if isinstance(one, EqualTo | EqualNullSafe):
        values = [one.value]
    elif isinstance(one, In):
        values = list(one.value)
    else:
        return None
    if isinstance(one, EqualNullSafe) and one.value is None:
        return []
    return [value for value in values if isinstance(value, kind)]


def _ms(time: datetime) -> int:
    aware = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    return max(0, (aware - _EPOCH) // _MS)
