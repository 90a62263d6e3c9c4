"""Parse --to-datetime and --by-duration as Java's date format and Duration do. Pure."""

import re
from typing import Final

from barnabas.cli.group.failures import CommandFailed

_MS_IN_DAY: Final = 86_400_000
_DATE: Final = re.compile(r"(\d{1,4})-(\d{1,2})-(\d{1,2})T(\d{1,2}):(\d{1,2}):(\d{1,2})\.(\d{1,3})(\S+)")
_ZONE: Final = re.compile(r"Z|([+-])(\d{2})(?::(\d{2}))?")
_DURATION: Final = re.compile(
    r"([-+]?)P(?:([-+]?\d+)D)?"
    r"(?P<time>T(?:([-+]?\d+)H)?(?:([-+]?\d+)M)?(?:([-+]?)(\d+)(?:[.,](\d{0,9}))?S)?)?",
    re.IGNORECASE | re.ASCII,
)


def parse_datetime(text: str) -> int:
    """Convert `YYYY-MM-DDThh:mm:ss.sss` to ms since 1970; UTC unless the text names a zone."""
    from datetime import UTC, datetime, timedelta

    if "T" not in text or not text.partition("T")[2]:
        raise CommandFailed(
            "java.text.ParseException: Error parsing timestamp. It does not contain a 'T' according to"
            " ISO8601 format"
        )
    if not set("+-Z") & set(text.split("T")[1]):
        text += "Z"
    found = _DATE.match(text)
    zone = None if found is None else _ZONE.match(found[8])
    if found is None or zone is None:
        raise _unparseable(text)
    # Java reads the digits after the dot as milliseconds, not as a fraction: .5 is 5 ms.
    year, month, day, hour, minute, second, milliseconds = map(int, found.groups()[:7])
    try:
        moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        raise _unparseable(text) from None
    shift = timedelta(hours=int(zone[2] or 0), minutes=int(zone[3] or 0))
    if zone[1] == "-":
        shift = -shift
    since = moment - shift - datetime(1970, 1, 1, tzinfo=UTC)
    return since.days * _MS_IN_DAY + since.seconds * 1000 + milliseconds


def _unparseable(text: str) -> CommandFailed:
    return CommandFailed(f'java.text.ParseException: Unparseable date: "{text}"')


def parse_duration(text: str) -> int:
    """Convert `PnDTnHnMnS` to milliseconds; every number may be negative."""
    found = _DURATION.fullmatch(text)
    if found is None or (found["time"] or "").upper() == "T":
        raise CommandFailed("Text cannot be parsed to a Duration")
    sign, days, _, hours, minutes, second_sign, seconds, fraction = found.groups()
    if days is None and hours is None and minutes is None and seconds is None:
        raise CommandFailed("Text cannot be parsed to a Duration")
    nanoseconds = int(seconds or 0) * 10**9 + int((fraction or "").ljust(9, "0"))
    if second_sign == "-":
        nanoseconds = -nanoseconds
    whole_minutes = (int(days or 0) * 24 + int(hours or 0)) * 60 + int(minutes or 0)
    total = whole_minutes * 60 * 10**9 + nanoseconds
    return (-total if sign == "-" else total) // 10**6
