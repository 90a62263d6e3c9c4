"""Whatever a client calls itself: a log line is one line, and its keys are the program's."""

import json
import logging

from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.structured_log import VALUE_CHARS_MAX, JsonFormatter, TextFormatter
from support.clocks import ManualClock

VALUES = st.one_of(st.text(), st.text('="\\ \n\r\t\x1b\u2028a', max_size=12), st.text(st.characters()))
CLOCK = ManualClock(0)


def record(template: str, *args: object) -> logging.LogRecord:
    return logging.LogRecord("barnabas", logging.INFO, "x.py", 1, template, args, None)


@given(VALUES, VALUES)
def test_a_text_line_is_one_line_that_can_be_read_back(first: str, second: str) -> None:
    line = TextFormatter(CLOCK).format(record("client seen name=%s topic=%s", first, second))

    assert line.isprintable()
    rest = line.removeprefix("1970-01-01T00:00:00.000Z INFO barnabas client seen name=")
    name, rest = read_value(rest)
    assert rest.startswith(" topic=")
    topic, rest = read_value(rest.removeprefix(" topic="))
    assert (len(name), len(topic), rest) == (len(first), len(second), "")


def read_value(text: str) -> tuple[str, str]:
    """One value from the start of a text, as a tool would read it, and what comes after it."""
    if not text.startswith('"'):
        value, space, rest = text.partition(" ")
        return value, space + rest
    value, at = "", 1
    while text[at] != '"':
        if text[at] != "\\":
            value, at = value + text[at], at + 1
            continue
        size = {"u": 6, "U": 10}.get(text[at + 1], 2)
        value, at = value + "?", at + size
    return value, text[at + 1 :]


@given(VALUES)
def test_an_event_that_was_filled_in_is_one_line(value: str) -> None:
    line = TextFormatter(CLOCK).format(record("log recovery: %s", value))

    assert line.isprintable()
    if "=" in value:
        assert line.startswith('1970-01-01T00:00:00.000Z INFO barnabas "log recovery: ')


@given(VALUES.filter(lambda text: len(text) <= VALUE_CHARS_MAX), st.integers())
def test_a_json_line_has_exactly_the_logged_facts(value: str, number: int) -> None:
    line = JsonFormatter(CLOCK).format(record("client seen name=%s n=%d", value, number))

    assert "\n" not in line
    assert line.isascii()
    found = json.loads(line)
    assert (found["event"], found["name"], found["n"]) == ("client seen", value, number)
    assert set(found) == {"time", "level", "logger", "event", "name", "n"}
