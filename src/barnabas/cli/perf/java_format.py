"""Format numbers and dates as Java does: %f of Formatter, and the patterns of SimpleDateFormat.

Pure, except for the time zone of the machine. Names of days and months are always English, as with Java's
default locale on most servers.
"""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from math import isfinite, isinf, isnan
from typing import Any, Final

from barnabas.base.errors import BarnabasError

_MONTHS: Final = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
# A quoted text, a run of one letter, or other characters.
_PIECE: Final = re.compile(r"'((?:[^']|'')*)'|(([A-Za-z])\3*)|([^A-Za-z']+)")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# Four letters or more print the full name, three its abbreviation.
_FULL_NAME: Final = 4
_ABBREVIATION: Final = 3
_SHORT_YEAR: Final = 2


class BadPattern(BarnabasError):
    """A date format that SimpleDateFormat rejects, or that is not implemented here."""


def fixed(value: float, digits: int) -> str:
    """Format as %.Nf of Java's Formatter: round half up; NaN and Infinity are words."""
    if isnan(value):
        return "NaN"
    if isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    rounded = Decimal(repr(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
    return f"{rounded:f}"


def ratio(value: float, by: float) -> float:
    """Divide doubles as Java does, including by zero."""
    if by:
        return value / by
    return float("nan") if not value else float("inf") if value > 0 else float("-inf")


def without_nan(figures: dict[str, Any]) -> dict[str, Any]:
    """Replace NaN and infinities, which JSON cannot express, with None."""
    return {
        name: None if isinstance(value, float) and not isfinite(value) else value
        for name, value in figures.items()
    }


class DateFormat:
    """A SimpleDateFormat, limited to the patterns that make sense for a timestamp."""

    def __init__(self, pattern: str) -> None:
        self._pieces: list[tuple[str, int]] = []
        at = 0
        while at < len(pattern):
            found = _PIECE.match(pattern, at)
            if found is None:
                raise BadPattern("Unterminated quote")
            at = found.end()
            quoted, run, letter, other = found.groups()
            if run is None:
                text = other if other is not None else quoted.replace("''", "'") or "'"
                self._pieces.append((text, 0))
            elif letter in _LETTERS:
                self._pieces.append((letter, len(run)))
            else:
                raise BadPattern(f"Illegal pattern character '{letter}'")

    def format(self, at_ms: int) -> str:
        moment = (_EPOCH + timedelta(milliseconds=at_ms)).astimezone()
        return "".join(_field(letter, count, moment) if count else letter for letter, count in self._pieces)


def _field(letter: str, count: int, at: datetime) -> str:
    match letter:
        case "y":
            return f"{at.year % 100:02d}" if count == _SHORT_YEAR else f"{at.year:0{count}d}"
        case "M" | "L" if count >= _ABBREVIATION:
            name = _MONTHS[at.month - 1]
            return name if count >= _FULL_NAME else name[:_ABBREVIATION]
        case "E":
            name = _DAYS[at.weekday()]
            return name if count >= _FULL_NAME else name[:_ABBREVIATION]
        case "a":
            return "AM" if at.hour < 12 else "PM"
        case "z":
            return at.tzname() or ""
        case "Z":
            return at.strftime("%z")
        case "X":
            return _iso_zone(at, count)
    return f"{_NUMBERS[letter](at):0{count}d}"


def _iso_zone(at: datetime, count: int) -> str:
    zone = at.strftime("%z")
    if zone in ("+0000", "-0000"):
        return "Z"
    return {1: zone[:3], 2: zone}.get(count, f"{zone[:3]}:{zone[3:]}")


_NUMBERS: Final[Mapping[str, Callable[[datetime], int]]] = {
    "M": lambda at: at.month,
    "L": lambda at: at.month,
    "d": lambda at: at.day,
    "D": lambda at: at.timetuple().tm_yday,
    "u": lambda at: at.isoweekday(),
    "H": lambda at: at.hour,
    "k": lambda at: at.hour or 24,
    "K": lambda at: at.hour % 12,
    "h": lambda at: at.hour % 12 or 12,
    "m": lambda at: at.minute,
    "s": lambda at: at.second,
    "S": lambda at: at.microsecond // 1000,
}
_LETTERS: Final = frozenset("yEazZX").union(_NUMBERS)
