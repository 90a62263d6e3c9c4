"""The check of the demo: it passes, or it reports what differs."""

from collections import Counter
from dataclasses import replace

import pytest

from barnabas.cli.demo_parts.check import Found, judge
from barnabas.cli.demo_parts.clicks import HOUR_MS, Expected, Hour, Kind

FIRST, SECOND, LAST = Hour(0, "/a"), Hour(0, "/b"), Hour(HOUR_MS, "/a")
EXPECTED = Expected(
    kinds=Counter({Kind.SOUND: 4, Kind.DUPLICATE: 2, Kind.LATE: 3, Kind.NOT_JSON: 1}),
    sound_ids={"c-1", "c-2", "c-3", "c-4"},
    hours=Counter({FIRST: 2, SECOND: 1, LAST: 1}),
    newest_ms=2 * HOUR_MS,
)
FOUND = Found(
    in_topic=10,
    read=10,
    dropped={"late": 3, "not JSON": 1},
    written_ids=["c-4", "c-3", "c-2", "c-1"],
    landed_ids=["c-1", "c-2", "c-3", "c-4"],
    hours=[(SECOND, 1), (FIRST, 2)],
)


def wrong(**changes: object) -> list[str]:
    return judge(EXPECTED, replace(FOUND, **changes), HOUR_MS).wrong  # type: ignore[arg-type]


def test_matching_results_pass() -> None:
    verdict = judge(EXPECTED, FOUND, HOUR_MS)

    assert verdict.wrong == []
    assert [tuple(row) for row in verdict.rows] == [
        ("produced", 10, 10),
        ("read by Spark", 10, 10),
        ("dropped: late", 3, 3),
        ("dropped: not JSON", 1, 1),
        ("dropped: no id", 0, 0),
        ("dropped: no time", 0, 0),
        ("dropped: duplicate", 2, 2),
        ("written to the topic", 4, 4),
        ("written to Parquet", 4, 4),
        ("hours counted, by page", 2, 2),
        ("clicks in these hours", 3, 3),
    ]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"in_topic": 9}, "produced: found 9, expected 10"),
        ({"read": 9}, "read by Spark: found 9, expected 10"),
        ({"dropped": {"late": 2, "not JSON": 1}}, "dropped: late: found 2, expected 3"),
        ({"dropped": {"late": 2, "not JSON": 1}}, "dropped: duplicate: found 3, expected 2"),
        ({"written_ids": ["c-1"]}, "written to the topic: found 1, expected 4"),
        ({"landed_ids": []}, "written to Parquet: found 0, expected 4"),
        ({"hours": [(FIRST, 2)]}, "clicks in these hours: found 2, expected 3"),
    ],
)
def test_a_count_that_differs_is_reported(changes: dict[str, object], said: str) -> None:
    assert said in wrong(**changes)


def test_ids_are_compared_one_by_one_even_if_their_count_is_right() -> None:
    ids = ["c-1", "c-1", "c-2", "other"]

    assert wrong(written_ids=ids) == [
        "written to the topic: 1 ids more than once: c-1",
        "written to the topic: 2 ids missing: c-3, c-4",
        "written to the topic: 1 ids unexpected: other",
    ]
    assert [line.split(":")[0] for line in wrong(landed_ids=ids)] == ["written to Parquet"] * 3


def test_hours_are_compared_one_by_one_even_if_their_sum_is_right() -> None:
    assert wrong(hours=[(FIRST, 1), (SECOND, 2)]) == ["hours: 2 with a wrong count, 0 repeated, 0 missing"]
    assert wrong(hours=[(SECOND, 1), (SECOND, 2)]) == ["hours: 1 with a wrong count, 1 repeated, 1 missing"]


def test_an_unknown_drop_reason_is_reported() -> None:
    dropped = {"late": 3, "not JSON": 1, "mood": 0}

    assert wrong(dropped=dropped) == ["unknown drop reasons: mood"]
