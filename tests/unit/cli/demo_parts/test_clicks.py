"""The generated clicks of the demo: reproducible, with correct expected results."""

import json
from collections import Counter
from datetime import datetime

import pytest

from barnabas.cli.demo_parts.clicks import HOUR_MS, Clicks, Expected, Hour, Kind, Sent

EVENTS = 3000


def made(seed: int = 1, events: int = EVENTS) -> tuple[list[Sent], Expected]:
    clicks = Clicks(seed, events)
    return list(clicks), clicks.expected


def of(kind: Kind, sent: list[Sent]) -> list[Sent]:
    return [one for one in sent if one.kind is kind]


def age_ms(sent: Sent) -> float:
    return sent.sent_ms - datetime.fromisoformat(json.loads(sent.value)["at"]).timestamp() * 1000


def test_the_seed_determines_the_clicks() -> None:
    assert made(seed=1) == made(seed=1)
    assert made(seed=1) != made(seed=2)


@pytest.mark.parametrize("events", [100, EVENTS])
def test_every_click_is_of_one_kind(events: int) -> None:
    sent, expected = made(events=events)

    assert len(sent) == expected.events == events
    assert expected.kinds == Counter(one.kind for one in sent)
    assert [one.sent_ms for one in sent] == sorted(one.sent_ms for one in sent)


def test_there_are_some_of_each_kind() -> None:
    _, expected = made()

    assert all(expected.kinds[kind] > 0 for kind in Kind)


def test_sound_clicks_have_an_id_each_and_are_counted_by_hour_and_page() -> None:
    sent, expected = made()

    events = [json.loads(one.value) for one in of(Kind.SOUND, sent)]
    assert len(events) == len(expected.sound_ids)
    assert {event["id"] for event in events} == expected.sound_ids
    times = [int(datetime.fromisoformat(event["at"]).timestamp() * 1000) for event in events]
    hours = Counter(Hour(at - at % HOUR_MS, event["page"]) for at, event in zip(times, events, strict=True))
    assert hours == expected.hours
    assert max(times) == expected.newest_ms


@pytest.mark.parametrize("events", [100, EVENTS])
def test_a_duplicate_is_a_sound_click_once_more_and_still_in_time(events: int) -> None:
    sent = [one for seed in range(5) for one in made(seed, events)[0]]
    duplicates = of(Kind.DUPLICATE, sent)

    values = {one.value for one in of(Kind.SOUND, sent)}
    assert len(duplicates) > 0
    assert all(one.value in values for one in duplicates)
    assert max(map(age_ms, duplicates + of(Kind.SOUND, sent))) < HOUR_MS


def test_a_late_click_is_hours_old() -> None:
    sent, _ = made()

    assert min(map(age_ms, of(Kind.LATE, sent))) >= 2 * HOUR_MS


def test_malformed_clicks_are_malformed_as_declared() -> None:
    sent, _ = made()

    for one in of(Kind.NOT_JSON, sent):
        with pytest.raises(ValueError, match=r".*"):
            json.loads(one.value)
    assert all("id" not in json.loads(one.value) for one in of(Kind.NO_ID, sent))
    times = {json.loads(one.value).get("at") for one in of(Kind.NO_TIME, sent)}
    assert times == {None, "a while ago"}


def test_hours_are_closed_when_the_watermark_is_at_their_end() -> None:
    expected = Expected(hours=Counter({Hour(0, "/a"): 3, Hour(HOUR_MS, "/a"): 4}))

    expected.newest_ms = 3 * HOUR_MS - 1
    assert expected.closed_hours(2 * HOUR_MS) == {}
    expected.newest_ms = 3 * HOUR_MS
    assert expected.closed_hours(2 * HOUR_MS) == {Hour(0, "/a"): 3}
