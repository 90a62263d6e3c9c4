"""The start and end positions of a query, in all forms of the options.

If several are set, the first of these takes precedence, as in Spark's own source: one timestamp for all
partitions (`startingTimestamp`), a timestamp per partition (`startingOffsetsByTimestamp`), and
`startingOffsets` (earliest, latest, group, or JSON). The same holds for `ending...` in batch queries.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final, NamedTuple, TypeAlias

from barnabas.base.ids import TopicPartition
from barnabas.spark.offsets import EARLIEST, LATEST, BadOffsets, from_json
from barnabas.spark.options.values import BadOption, Values


class Place(Enum):
    """A position that is the same for all partitions."""

    EARLIEST = "earliest"
    LATEST = "latest"
    # The committed offset of the query's group, or earliest if there is none.
    GROUP = "group"


class AtOffsets(NamedTuple):
    """An offset per partition, which may be EARLIEST or LATEST."""

    offsets: Mapping[TopicPartition, int]


class AtTimes(NamedTuple):
    """The first record at or after a timestamp per partition.

    If a partition has none, `else_latest` selects its end; otherwise it is an error. A timestamp may be
    EARLIEST or LATEST, here and in AtTime: brokers return the start or end of the log for them.
    """

    times_ms: Mapping[TopicPartition, int]
    else_latest: bool


class AtTime(NamedTuple):
    time_ms: int
    else_latest: bool


Position: TypeAlias = Place | AtOffsets | AtTimes | AtTime

_STRATEGY: Final = "startingOffsetsByTimestampStrategy"


def starting(values: Values, *, default: Place) -> Position:
    strategy = (values.text(_STRATEGY) or "error").lower()
    if strategy not in ("error", "latest"):
        raise BadOption(_STRATEGY, f"{strategy!r} is neither error nor latest")
    words = {Place.EARLIEST.value, Place.LATEST.value, Place.GROUP.value}
    return _position(values, "starting", default, words, else_latest=strategy == "latest")


def ending(values: Values) -> Position:
    """Parse the end of a batch query. Without a record at or after a timestamp, it is the end of the log."""
    found = _position(values, "ending", Place.LATEST, {Place.LATEST.value}, else_latest=True)
    if isinstance(found, AtOffsets):
        for tp, offset in found.offsets.items():
            if offset == EARLIEST:
                raise BadOption("endingOffsets", f"{tp} cannot end at earliest")
    return found


def check_batch(start: Position, end: Position) -> None:
    """Reject batch queries that start at latest or end before they start."""
    if start is Place.LATEST:
        raise BadOption("startingOffsets", "a batch query cannot start at latest: it would read nothing")
    if isinstance(start, AtOffsets):
        for tp, offset in start.offsets.items():
            if offset == LATEST:
                raise BadOption("startingOffsets", f"{tp} cannot start at latest in a batch query")
    if isinstance(start, AtOffsets) and isinstance(end, AtOffsets):
        _check_pair("endingOffsets", start.offsets, end.offsets)
    if isinstance(start, AtTimes) and isinstance(end, AtTimes):
        _check_pair("endingOffsetsByTimestamp", start.times_ms, end.times_ms)


def _check_pair(name: str, start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]) -> None:
    for tp in sorted(start.keys() ^ end.keys()):
        raise BadOption(name, f"{tp} must have both a start and an end")
    for tp in sorted(start):
        if 0 <= end[tp] < start[tp]:
            raise BadOption(name, f"{tp} ends at {end[tp]}, before it starts at {start[tp]}")


def moves(start: Position) -> bool:
    """Whether the position resolves to other offsets as records are written."""
    if isinstance(start, AtOffsets):
        return LATEST in start.offsets.values()
    if isinstance(start, AtTimes):
        return start.else_latest or LATEST in start.times_ms.values()
    if isinstance(start, AtTime):
        return start.else_latest or start.time_ms == LATEST
    return start is not Place.EARLIEST


def option_of(position: Position, which: str) -> str:
    """Return the option of a position; `which` is starting or ending."""
    if isinstance(position, AtTime):
        return f"{which}Timestamp"
    return f"{which}OffsetsByTimestamp" if isinstance(position, AtTimes) else f"{which}Offsets"


def _position(values: Values, which: str, default: Place, words: set[str], *, else_latest: bool) -> Position:
    # Read all three options, so that refuse_others() knows them.
    time_ms = values.number(f"{which}Timestamp", least=EARLIEST)
    times_name = f"{which}OffsetsByTimestamp"
    times = values.text(times_name)
    offsets_name = f"{which}Offsets"
    offsets = values.text(offsets_name)
    if time_ms is not None:
        return AtTime(time_ms, else_latest)
    if times is not None:
        return AtTimes(_partitions(times_name, times), else_latest)
    if offsets is None:
        return default
    if not offsets.startswith("{"):
        if offsets.lower() not in words:
            raise BadOption(offsets_name, f"{offsets!r} is not one of {', '.join(sorted(words))} or JSON")
        return Place(offsets.lower())
    return AtOffsets(_partitions(offsets_name, offsets))


def _partitions(name: str, text: str) -> dict[TopicPartition, int]:
    try:
        found = from_json(text)
    except BadOffsets as wrong:
        raise BadOption(name, str(wrong)) from None
    if not found:
        raise BadOption(name, "it names no partition")
    return found
