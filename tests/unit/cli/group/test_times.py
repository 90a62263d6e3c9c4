"""Times are parsed as by Java, with Java's messages for invalid ones."""

import pytest

from barnabas.cli.group.failures import CommandFailed
from barnabas.cli.group.times import parse_datetime, parse_duration

AT = 1_700_000_010_000


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("2023-11-14T22:13:30.000", AT),
        ("2023-11-14T22:13:30.000Z", AT),
        ("2023-11-15T00:13:30.000+02:00", AT),
        ("2023-11-14T17:13:30.000-05:00", AT),
        # A short zone has hours only; Java ignores the text after it.
        ("2023-11-15T03:13:30.000+05", AT),
        ("2023-11-15T03:13:30.000+0530", AT),
        # Milliseconds, not a fraction of a second.
        ("2023-11-14T22:13:30.5", AT + 5),
        ("1969-12-31T23:59:59.999", -1),
    ],
)
def test_a_datetime_is_utc_unless_it_names_a_zone(text: str, milliseconds: int) -> None:
    assert parse_datetime(text) == milliseconds


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("2023-11-14T22:13:30", 'Unparseable date: "2023-11-14T22:13:30Z"'),
        ("2023-13-14T22:13:30.000", 'Unparseable date: "2023-13-14T22:13:30.000Z"'),
        ("2023-11-14T22:13:30.0001x", 'Unparseable date: "2023-11-14T22:13:30.0001xZ"'),
        ("2023-11-14", "Error parsing timestamp. It does not contain a 'T' according to ISO8601 format"),
    ],
)
def test_an_invalid_datetime_is_rejected(text: str, why: str) -> None:
    with pytest.raises(CommandFailed) as caught:
        parse_datetime(text)

    assert str(caught.value) == f"java.text.ParseException: {why}"


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("P1D", 86_400_000),
        ("PT1H", 3_600_000),
        ("P1DT2H3M4.5S", 93_784_500),
        ("pt90s", 90_000),
        ("-PT1S", -1000),
        ("PT-1.5S", -1500),
        ("P1DT-1H", 82_800_000),
        ("PT0,25S", 250),
    ],
)
def test_a_duration_is_iso_8601_with_signs_anywhere(text: str, milliseconds: int) -> None:
    assert parse_duration(text) == milliseconds


@pytest.mark.parametrize("text", ["", "P", "PT", "P1DT", "1D", "P1H", "PT1", "P1Y"])
def test_an_invalid_duration_is_rejected(text: str) -> None:
    with pytest.raises(CommandFailed, match="Text cannot be parsed to a Duration"):
        parse_duration(text)
