"""Generate a day of clicks on a web site. The same seed generates the same bytes.

The generator also computes what a pipeline must find: which events are sound, duplicate, late or invalid, and
the clicks of each page per hour. It reads no clock: the day is fixed.
"""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from random import Random
from typing import Final, NamedTuple

_MINUTE_MS: Final = 60_000
HOUR_MS: Final = 60 * _MINUTE_MS
_DAY_MS: Final = 24 * HOUR_MS
START: Final = datetime(2025, 1, 6, tzinfo=UTC)
_START_MS: Final = int(START.timestamp() * 1000)

# Maximum delay of a sound event, and maximum age of an event that is sent again. Their sum is less than an
# hour, the age at which the pipeline considers an event late.
_DELAY_MS_MAX: Final = 5 * _MINUTE_MS
_AGAIN_AFTER_MS_MAX: Final = 30 * _MINUTE_MS
_LATE_MS: Final = (2 * HOUR_MS, 12 * HOUR_MS)

_USERS: Final = 500
_PAGES: Final = ("/news", "/recipes", "/weather", "/letters", "/castle", "/inn")
# Each quarter of the day has a favourite page, so that the SQL query has a clear result.
_FAVOURITES: Final = ("/castle", "/news", "/letters", "/recipes")
_FAVOURITE_WEIGHT: Final = 3


class Kind(Enum):
    SOUND = "sound"
    DUPLICATE = "duplicate"
    LATE = "late"
    NOT_JSON = "not JSON"
    NO_ID = "no id"
    NO_TIME = "no time"


# Reasons for which the pipeline drops an event; it drops duplicates without a reason.
REASONS: Final = (Kind.LATE, Kind.NOT_JSON, Kind.NO_ID, Kind.NO_TIME)
_WEIGHTS: Final = {
    Kind.SOUND: 86,
    Kind.DUPLICATE: 6,
    Kind.LATE: 4,
    Kind.NOT_JSON: 2,
    Kind.NO_ID: 1,
    Kind.NO_TIME: 1,
}


class Sent(NamedTuple):
    """A record. `sent_ms` is when it arrives at the broker, on the generated day."""

    kind: Kind
    key: bytes
    value: bytes
    sent_ms: int


class Hour(NamedTuple):
    start_ms: int
    page: str


@dataclass
class Expected:
    """The content of the generated records, and the expected results."""

    kinds: Counter[Kind] = field(default_factory=Counter)
    sound_ids: set[str] = field(default_factory=set)
    hours: Counter[Hour] = field(default_factory=Counter)
    newest_ms: int = 0

    @property
    def events(self) -> int:
        return self.kinds.total()

    def closed_hours(self, watermark_ms: int) -> dict[Hour, int]:
        """Return the hours that end before the newest event minus the watermark delay."""
        until_ms = self.newest_ms - watermark_ms
        return {hour: clicks for hour, clicks in self.hours.items() if hour.start_ms + HOUR_MS <= until_ms}


class Clicks:
    """Iterate once; `expected` is complete after that."""

    def __init__(self, seed: int, events: int) -> None:
        self.expected = Expected()
        self._rng = Random(seed)
        self._events = events
        self._last_sound: list[Sent] = []

    def __iter__(self) -> Iterator[Sent]:
        for number in range(self._events):
            sent = self._event(number, _START_MS + number * _DAY_MS // self._events)
            self.expected.kinds[sent.kind] += 1
            yield sent

    def _event(self, number: int, sent_ms: int) -> Sent:
        [kind] = self._rng.choices(list(_WEIGHTS), list(_WEIGHTS.values()))
        if kind is Kind.DUPLICATE:
            recent = [one for one in self._last_sound if sent_ms - one.sent_ms <= _AGAIN_AFTER_MS_MAX]
            if recent:
                return self._rng.choice(recent)._replace(kind=kind, sent_ms=sent_ms)
            kind = Kind.SOUND
        delay_ms = self._rng.randint(*(_LATE_MS if kind is Kind.LATE else (0, _DELAY_MS_MAX)))
        at_ms = sent_ms - delay_ms
        user, page = f"user-{self._rng.randrange(_USERS)}", self._page(sent_ms)
        event = {"id": f"click-{number}", "user": user, "page": page, "at": _iso(at_ms)}
        sent = Sent(kind, user.encode(), self._value(kind, event), sent_ms)
        if kind is Kind.SOUND:
            self._expect(event["id"], Hour(at_ms - at_ms % HOUR_MS, page), at_ms)
            self._last_sound = [*self._last_sound[-9:], sent]
        return sent

    def _page(self, now_ms: int) -> str:
        favourite = _FAVOURITES[(now_ms - _START_MS) * len(_FAVOURITES) // _DAY_MS]
        return self._rng.choice([*_PAGES, *[favourite] * _FAVOURITE_WEIGHT])

    def _value(self, kind: Kind, event: dict[str, str]) -> bytes:
        if kind is Kind.NO_ID:
            del event["id"]
        elif kind is Kind.NO_TIME:
            # An invalid time is as bad as a missing one.
            if self._rng.random() < 0.5:
                event["at"] = "a while ago"
            else:
                del event["at"]
        text = json.dumps(event)
        if kind is Kind.NOT_JSON:
            # Truncated, or not an event at all.
            text = text[: len(text) // 2] if self._rng.random() < 0.5 else "GET /favicon.ico"
        return text.encode()

    def _expect(self, event_id: str, hour: Hour, at_ms: int) -> None:
        self.expected.sound_ids.add(event_id)
        self.expected.hours[hour] += 1
        self.expected.newest_ms = max(self.expected.newest_ms, at_ms)


def _iso(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
