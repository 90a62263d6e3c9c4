"""Numbers and dates as Java prints them; the texts here were printed by Java."""

import time
from collections.abc import Iterator

import pytest

from barnabas.cli.perf.java_format import BadPattern, DateFormat, fixed, ratio

AT_MS = 1794744205032
IN_NEW_YORK = {
    "yyyy-MM-dd HH:mm:ss:SSS": "2026-11-15 07:03:25:032",
    "yy/M/d h:m:s a": "26/11/15 7:3:25 AM",
    "EEE, d MMM yyyy HH:mm:ss Z": "Sun, 15 Nov 2026 07:03:25 -0500",
    "EEEE MMMM D u k K hh": "Sunday November 319 7 7 7 07",
    "''yyyy'T'HH 'o''clock'": "'2026T07 o'clock",
    "yyyy-MM-dd'T'HH:mm:ss.SSSXXX": "2026-11-15T07:03:25.032-05:00",
    "SSSSS S": "00032 32",
    "X XX z": "-05 -0500 EST",
    "y yyy yyyyy": "2026 2026 02026",
    "LLL LL L": "Nov 11 11",
}


@pytest.fixture
def new_york(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("new_york")
@pytest.mark.parametrize(("pattern", "text"), IN_NEW_YORK.items())
def test_a_date_is_printed_by_its_pattern(pattern: str, text: str) -> None:
    assert DateFormat(pattern).format(AT_MS) == text


@pytest.mark.parametrize(
    ("pattern", "why"), [("b", "Illegal pattern character 'b'"), ("yyyy 'x", "Unterminated quote")]
)
def test_a_pattern_that_java_rejects_is_rejected(pattern: str, why: str) -> None:
    with pytest.raises(BadPattern) as wrong:
        DateFormat(pattern)
    assert str(wrong.value) == why


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0.25, 1, "0.3"),
        (0.35, 1, "0.4"),
        (2.5, 0, "3"),
        (0.125, 2, "0.13"),
        (1e15, 4, "1000000000000000.0000"),
        (0.00005, 4, "0.0001"),
        (1e-7, 4, "0.0000"),
        (999999.99999, 4, "1000000.0000"),
        (333.3333333333333, 6, "333.333333"),
        (float("inf"), 2, "Infinity"),
        (float("nan"), 4, "NaN"),
    ],
)
def test_halves_are_rounded_up(value: float, digits: int, text: str) -> None:
    assert fixed(value, digits) == text


def test_a_division_by_zero_is_not_an_error() -> None:
    assert fixed(ratio(1.0, 0), 1) == "Infinity"
    assert fixed(ratio(0.0, 0), 1) == "NaN"
    assert ratio(3, 2) == 1.5
