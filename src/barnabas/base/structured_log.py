"""Format log lines as `time level logger event key=value ...`, or as one JSON object per line.

All log calls have the form `logger.info("isr shrunk tp=%s from=%s to=%s", ...)`. Keys come from the template,
never from the arguments. So a client with the name `x level=ERROR` cannot forge keys, and one with a line
break in its name cannot forge lines. Values are quoted as in JSON if necessary.
"""

import json
import logging
import re
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final, NamedTuple, TextIO

from barnabas.base.clock import Clock

# Longer values are cut: logs are read by people, and clients choose some of the values.
VALUE_CHARS_MAX: Final = 2_000
TRACEBACK_LINES_MAX: Final = 200
# About the number of log templates in the program.
_TEMPLATES_MAX: Final = 1_000

_KEY: Final = re.compile(r"(?:^|(?<=\s))([A-Za-z_][A-Za-z0-9_.]*)=")
_CONVERSION: Final = re.compile(
    r"%(?:\([^)]*\))?[#0\- +]*(?:\*|\d+)?(?:\.(?:\*|\d+))?[hlL]?([diouxXeEfFgGcrsa%])"
)
_PLAIN_VALUE: Final = re.compile(r"[!#-<>-\[\]-~]+")
_NOT_WORDS: Final = re.compile(r'["\\=]')
_SEPARATORS: Final = " \t,;:"
_PLAIN_NUMBER: Final = "%d"
# The keys of every JSON line. A field of the same name gets a trailing `_`.
_OWN_KEYS: Final = frozenset(("time", "level", "logger", "event", "exception"))
# No log line begins like this, so lines of a traceback cannot be mistaken for log lines.
_INDENT: Final = "    | "


class LogFormat(StrEnum):
    """The values of --log-format."""

    TEXT = "text"
    JSON = "json"


class Part(NamedTuple):
    """The event (key None) or one value of a template, and its number of arguments."""

    key: str | None
    template: str
    arguments: int


class Line(NamedTuple):
    """The parts of a log record. Values are text, or numbers if they were passed to %d."""

    time: str
    level: str
    logger: str
    event: str
    fields: list[tuple[str, Any]]
    exception: str | None


@lru_cache(_TEMPLATES_MAX)
def parts_of(template: str) -> tuple[Part, ...]:
    """Split a template at its keys. The first part is the event."""
    keys = list(_KEY.finditer(template))
    starts = [found.start() for found in keys]
    texts = [template[: starts[0]] if starts else template]
    texts += [
        template[found.end() : end] for found, end in zip(keys, [*starts, len(template)][1:], strict=True)
    ]
    # Remove the separators before the next key.
    texts = [*(text.rstrip(_SEPARATORS) for text in texts[:-1]), texts[-1].rstrip()]
    names = [None, *(found[1] for found in keys)]
    return tuple(Part(name, text, _conversions(text)) for name, text in zip(names, texts, strict=True))


def _conversions(template: str) -> int:
    """The number of arguments of a template."""
    found = [one for one in _CONVERSION.finditer(template) if one[1] != "%"]
    return len(found) + sum(one[0].count("*") for one in found)


class StructuredFormatter(logging.Formatter):
    """Splits records into parts; the two subclasses format these."""

    def __init__(self, clock: Clock | None = None) -> None:
        super().__init__()
        self._clock = clock

    def take_apart(self, record: logging.LogRecord) -> Line:
        event, fields = _filled(str(record.msg), record.args)
        return Line(
            time=self._time(record),
            level=record.levelname,
            logger=record.name,
            event=event,
            fields=fields,
            exception=self._exception(record),
        )

    def _time(self, record: logging.LogRecord) -> str:
        """The time of the record; in a simulation, by the simulated clock."""
        seconds = record.created if self._clock is None else self._clock.now_ms() / 1000
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def _exception(self, record: logging.LogRecord) -> str | None:
        if record.exc_info and record.exc_info[0] is not None:
            text = self.formatException(record.exc_info)
        elif record.stack_info:
            text = self.formatStack(record.stack_info)
        else:
            return None
        lines = text.splitlines()
        if len(lines) > TRACEBACK_LINES_MAX:
            # Keep the innermost frames and the exception.
            lines = [f"({len(lines) - TRACEBACK_LINES_MAX} lines left out)", *lines[-TRACEBACK_LINES_MAX:]]
        return "\n".join(lines)


class TextFormatter(StructuredFormatter):
    """For people, and for tools that read key=value."""

    def format(self, record: logging.LogRecord) -> str:
        line = self.take_apart(record)
        words = [line.time, line.level, printable(line.logger), _shown_event(line.event)]
        words += [f"{key}={quoted(str(value))}" for key, value in line.fields]
        text = " ".join(words)
        if line.exception is not None:
            text += "".join(f"\n{_INDENT}{printable(one)}" for one in line.exception.splitlines())
        return text


class JsonFormatter(StructuredFormatter):
    """For log collectors."""

    def format(self, record: logging.LogRecord) -> str:
        line = self.take_apart(record)
        said = {"time": line.time, "level": line.level, "logger": line.logger, "event": line.event}
        for key, value in line.fields:
            while key in said or key in _OWN_KEYS:
                key += "_"
            said[key] = value
        if line.exception is not None:
            said["exception"] = line.exception
        return json.dumps(said)


def _filled(template: str, args: Any) -> tuple[str, list[tuple[str, Any]]]:
    if not args:
        # Without arguments logging does no formatting, and a % is literal.
        parts = [(one.key, one.template) for one in parts_of(template)]
    elif isinstance(args, Mapping):
        parts = [(one.key, one.template % args) for one in parts_of(template)]
    else:
        parts = _filled_in_order(template, args)
    return _cut(parts[0][1]), [(str(key), _cut(value)) for key, value in parts[1:]]


def _filled_in_order(template: str, args: tuple[Any, ...]) -> list[tuple[str | None, Any]]:
    pieces = parts_of(template)
    if sum(one.arguments for one in pieces) != len(args):
        # The logging call is wrong. logging reports this exception itself.
        raise TypeError(f"{len(args)} arguments do not fit {template!r}")
    filled: list[tuple[str | None, Any]] = []
    at = 0
    for key, text, count in pieces:
        given = args[at : at + count]
        at += count
        is_number = text == _PLAIN_NUMBER and type(given[0]) is int
        filled.append((key, given[0] if is_number else text % given))
    return filled


def _cut(value: Any) -> Any:
    if isinstance(value, str) and len(value) > VALUE_CHARS_MAX:
        return f"{value[:VALUE_CHARS_MAX]}...({len(value) - VALUE_CHARS_MAX} more)"
    return value


def _shown_event(event: str) -> str:
    """The event as it is, or quoted if an argument in it could be mistaken for a key."""
    return quoted(event) if _NOT_WORDS.search(event) else printable(event)


def quoted(value: str) -> str:
    """A value for a log line: as it is, or quoted if it would be ambiguous."""
    if _PLAIN_VALUE.fullmatch(value):
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{printable(escaped)}"'


def printable(text: str) -> str:
    """Escape all characters that could control a terminal or end a line."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else _escape(one) for one in text)


def _escape(character: str) -> str:
    known = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(character)
    if known is not None:
        return known
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def formatter(kind: LogFormat, clock: Clock | None = None) -> logging.Formatter:
    return JsonFormatter(clock) if kind is LogFormat.JSON else TextFormatter(clock)


class _Handler(logging.StreamHandler[TextIO]):
    """Ignores write errors (a closed pipe, a full disk): their report would go to the same stream."""

    def handleError(self, record: logging.LogRecord) -> None:
        if not isinstance(sys.exc_info()[1], OSError):
            super().handleError(record)


def log_to(
    stream: TextIO | None = None, *, kind: LogFormat = LogFormat.TEXT, level: int = logging.INFO
) -> None:
    """Send all log lines of this process to one stream (None: stderr) and nowhere else."""
    handler = _Handler(stream)
    handler.setFormatter(formatter(kind))
    logging.basicConfig(handlers=[handler], level=level, force=True)
    # Warnings are log lines too.
    logging.captureWarnings(True)
