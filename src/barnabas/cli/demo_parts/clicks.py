"""A day of clicks on a web site, made up: the same seed makes the same bytes.

It knows what a pipeline has to find in them: which events are sound, which are sent twice, come too late or
cannot be read, and how often each page was clicked in each hour. No clock is read: the day is a fixed one.
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

# How long a sound event is on its way, and when at the latest it is sent again: together less than an hour,
# which is the age from which the pipeline takes an event for late.
_ON_ITS_WAY_MS_MAX: Final = 5 * _MINUTE_MS
_AGAIN_AFTER_MS_MAX: Final = 30 * _MINUTE_MS
_LATE_MS: Final = (2 * HOUR_MS, 12 * HOUR_MS)

_USERS: Final = 500
_PAGES: Final = ("/news", "/recipes", "/weather", "/letters", "/castle", "/inn")
# One page is liked most in each part of the day, so that there is something to ask for.
_FAVOURITES: Final = ("/castle", "/news", "/letters", "/recipes")
_FAVOUR: Final = 3


class Kind(Enum):
    SOUND = "sound"
    DUPLICATE = "duplicate"
    LATE = "late"
    NOT_JSON = "not JSON"
    NO_ID = "no id"
    NO_TIME = "no time"


# What the pipeline says of an event that it takes out; a duplicate it takes out without a word.
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
    """A record. `sent_ms` is when it came to the broker, on the made-up day."""

    kind: Kind
    key: bytes
    value: bytes
    sent_ms: int


class Hour(NamedTuple):
    start_ms: int
    page: str


@dataclass
class Expected:
    """What is in the records, and what has to come out."""

    kinds: Counter[Kind] = field(default_factory=Counter)
    sound_ids: set[str] = field(default_factory=set)
    hours: Counter[Hour] = field(default_factory=Counter)
    newest_ms: int = 0

    @property
    def events(self) -> int:
        return self.kinds.total()

    def closed_hours(self, watermark_ms: int) -> dict[Hour, int]:
        """Those that a watermark so far behind the newest event has passed."""
        until_ms = self.newest_ms - watermark_ms
        return {hour: clicks for hour, clicks in self.hours.items() if hour.start_ms + HOUR_MS <= until_ms}


class Clicks:
    """Iterate over it once; `expected` is complete after that."""

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
        delay_ms = self._rng.randint(*(_LATE_MS if kind is Kind.LATE else (0, _ON_ITS_WAY_MS_MAX)))
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
        return self._rng.choice([*_PAGES, *[favourite] * _FAVOUR])

    def _value(self, kind: Kind, event: dict[str, str]) -> bytes:
        if kind is Kind.NO_ID:
            del event["id"]
        elif kind is Kind.NO_TIME:
            # A field that is there and says nothing is as bad as one that is not.
            if self._rng.random() < 0.5:
                event["at"] = "a while ago"
            else:
                del event["at"]
        text = json.dumps(event)
        if kind is Kind.NOT_JSON:
            # Cut off on its way, or never meant to be one.
            text = text[: len(text) // 2] if self._rng.random() < 0.5 else "GET /favicon.ico"
        return text.encode()

    def _expect(self, event_id: str, hour: Hour, at_ms: int) -> None:
        self.expected.sound_ids.add(event_id)
        self.expected.hours[hour] += 1
        self.expected.newest_ms = max(self.expected.newest_ms, at_ms)


def _iso(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
