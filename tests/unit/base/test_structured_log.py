"""Log lines: keys are the program's, values are quoted, and nobody outside can make up either, or a line."""

import io
import json
import logging
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.base.structured_log import (
    TRACEBACK_LINES_MAX,
    VALUE_CHARS_MAX,
    JsonFormatter,
    LogFormat,
    TextFormatter,
    formatter,
    log_to,
    parts_of,
)
from support.clocks import ManualClock

NASTY = 'x"\n2026-11-15T00:00:00.000Z ERROR barnabas forged=1 \x1b[2J\u2028\u202e'


def record(template: object, *args: Any, level: int = logging.INFO, error: Any = None) -> logging.LogRecord:
    return logging.LogRecord("barnabas.server", level, "x.py", 1, template, args, error)


def text(template: object, *args: Any, **rest: Any) -> str:
    return TextFormatter(ManualClock(1_234)).format(record(template, *args, **rest))


def read(template: object, *args: Any, **rest: Any) -> dict[str, Any]:
    line = JsonFormatter(ManualClock(1_234)).format(record(template, *args, **rest))
    assert "\n" not in line
    found: dict[str, Any] = json.loads(line)
    return found


def test_a_line_has_time_level_logger_event_and_facts() -> None:
    line = text("isr shrunk tp=%s from=%s to=%s hw=%d", "orders-0", "1,2,3", "1,2", 840)

    assert line == (
        "1970-01-01T00:00:01.234Z INFO barnabas.server isr shrunk tp=orders-0 from=1,2,3 to=1,2 hw=840"
    )


def test_the_time_is_when_the_line_was_logged() -> None:
    made = record("started")
    made.created = 1_700_000_000.5

    assert TextFormatter().format(made).startswith("2023-11-14T22:13:20.500Z ")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("plain", "plain"),
        ("10.0.0.1:9092", "10.0.0.1:9092"),
        ("two words", '"two words"'),
        ("", '""'),
        ("a=b", '"a=b"'),
        ('say "hi"', '"say \\"hi\\""'),
        ("back\\slash", '"back\\\\slash"'),
        ("line\nbreak\r\t", '"line\\nbreak\\r\\t"'),
        ("\x1b[2J", '"\\u001b[2J"'),
        ("für", '"für"'),
        ("\u2028", '"\\u2028"'),
        ("\U000e0001", '"\\U000e0001"'),
        ("\ud800", '"\\ud800"'),
    ],
)
def test_values_that_could_be_misread_are_quoted(value: str, shown: str) -> None:
    assert text("seen name=%s", value).endswith(f" seen name={shown}")


def test_words_in_the_template_are_part_of_the_value_before_them() -> None:
    line = text("connection refused peer=%s reason=too many connections", "1.2.3.4:5")

    assert line.endswith(' connection refused peer=1.2.3.4:5 reason="too many connections"')


def test_a_value_may_have_several_parts() -> None:
    assert text("compacted bytes=%d->%d", 10, 3).endswith(" compacted bytes=10->3")


def test_a_client_cannot_make_up_keys_or_lines() -> None:
    line = text("client named=%s topic=%s", NASTY, NASTY)

    assert len(line.splitlines()) == 1
    assert line.isprintable()
    assert [part.key for part in parts_of("client named=%s topic=%s")] == [None, "named", "topic"]
    assert read("client named=%s topic=%s", NASTY, NASTY) == {
        "time": "1970-01-01T00:00:01.234Z",
        "level": "INFO",
        "logger": "barnabas.server",
        "event": "client",
        "named": NASTY,
        "topic": NASTY,
    }


def test_text_inserted_into_an_event_makes_no_keys() -> None:
    assert text("log recovery: %s", "cut at 5").endswith(" log recovery: cut at 5")
    assert text("log recovery: %s", "x level=ERROR").endswith(' "log recovery: x level=ERROR"')
    assert text("log recovery: %s", "x\ny").endswith(" log recovery: x\\ny")


def test_numbers_stay_numbers_in_json() -> None:
    found = read("rolled base=%d size=%s ratio=%.2f", 5, 7, 0.5)

    assert (found["base"], found["size"], found["ratio"]) == (5, "7", "0.50")


def test_commas_and_colons_between_keys_are_no_part_of_values() -> None:
    assert text("active, epoch=%d, offset=%d: %s", 1, 2, "x").endswith(' active epoch=1 offset="2: x"')
    assert read("active: epoch=%d, offset=%d", 1, 2)["epoch"] == 1


def test_a_width_that_is_an_argument_is_counted() -> None:
    assert text("seen n=%*d x=%s", 3, 7, "y").endswith(' seen n="  7" x=y')


def test_a_key_that_every_line_has_is_renamed() -> None:
    found = read("late time=%d level=%s event=%s", 5, "high", "e")

    assert (found["event"], found["event_"], found["time_"], found["level_"]) == ("late", "e", 5, "high")


def test_a_percent_sign_is_one_with_and_without_arguments() -> None:
    assert text("full at 90%").endswith(" full at 90%")
    assert text("full at=90%% of=%s", "disk").endswith(" full at=90% of=disk")


def test_named_arguments_are_filled_in() -> None:
    assert text("seen tp=%(tp)s n=%(n)d", {"tp": "a-0", "n": 3}).endswith(" seen tp=a-0 n=3")


def test_arguments_that_do_not_fit_are_the_callers_mistake() -> None:
    with pytest.raises(TypeError, match="2 arguments do not fit"):
        text("seen tp=%s", "a", "b")
    with pytest.raises(TypeError, match="1 arguments do not fit"):
        text("seen tp=%s n=%d", "a")


def test_long_values_are_cut() -> None:
    found = read("seen name=%s", "x" * (VALUE_CHARS_MAX + 5))

    assert found["name"] == "x" * VALUE_CHARS_MAX + "...(5 more)"


def raised(message: str, depth: int = 0) -> Any:
    def deeper(left: int) -> None:
        if left:
            deeper(left - 1)
        else:
            raise ValueError(message)

    try:
        deeper(depth)
    except ValueError:
        return sys.exc_info()


def test_a_traceback_is_indented_so_that_it_cannot_pass_for_lines() -> None:
    first, *others = text("request failed api=%s", "FETCH", error=raised(NASTY)).splitlines()

    assert first.endswith(" request failed api=FETCH")
    assert others[0] == "    | Traceback (most recent call last):"
    assert all(line.startswith("    | ") and line.isprintable() for line in others)
    assert any("ValueError" in line for line in others)


def test_json_has_the_traceback_in_one_value() -> None:
    found = read("request failed", error=raised("no\nway"))

    assert found["exception"].startswith("Traceback (most recent call last):\n")
    assert found["exception"].endswith("ValueError: no\nway")


def test_of_an_endless_traceback_the_end_is_kept() -> None:
    error = raised("the end" + "\nline" * 1_000)

    lines = read("failed", error=error)["exception"].split("\n")

    assert len(lines) == TRACEBACK_LINES_MAX + 1
    assert lines[0].endswith("lines left out)")
    assert lines[-1] == "line"


@pytest.fixture
def root_logger() -> Iterator[logging.Logger]:
    root = logging.getLogger()
    before = root.handlers[:], root.level
    yield root
    logging.captureWarnings(False)
    root.handlers[:], root.level = before[0], before[1]


@pytest.mark.parametrize("kind", list(LogFormat))
def test_a_process_logs_to_the_stream_it_is_given(kind: LogFormat, root_logger: logging.Logger) -> None:
    stream = io.StringIO()

    log_to(stream, kind=kind, level=logging.WARNING)
    logging.getLogger("barnabas.x").info("not shown")
    logging.getLogger("barnabas.x").warning("shown n=%d", 1)

    (line,) = stream.getvalue().splitlines()
    assert "shown" in line
    assert (kind is LogFormat.JSON) == line.startswith("{")
    assert type(formatter(kind)) is type(root_logger.handlers[0].formatter)
