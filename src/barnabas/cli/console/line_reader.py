"""Parse a line into a record with key, headers and nulls, as Kafka's LineMessageReader does. Pure.

Properties, defaults and messages are Kafka's. A line is searched as bytes; only headers are decoded, because
their separator is a regular expression and their keys are text.
"""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from barnabas.base.errors import BarnabasError

# The only class that --line-reader accepts.
READER_CLASS: Final = "org.apache.kafka.tools.LineMessageReader"

_SEPARATORS: Final = {
    "key.separator": "\t",
    "headers.delimiter": "\t",
    "headers.separator": ",",
    "headers.key.separator": ":",
}
# Pairs of properties that must differ, in the order of Kafka's checks.
_MUST_DIFFER: Final = (
    ("headers.delimiter", "headers.separator"),
    ("headers.delimiter", "headers.key.separator"),
    ("headers.separator", "headers.key.separator"),
    ("null.marker", "key.separator"),
    ("null.marker", "headers.separator"),
    ("null.marker", "headers.delimiter"),
    ("null.marker", "headers.key.separator"),
)


class BadLine(BarnabasError):
    """A line does not match the properties, or the properties are invalid."""


class LineRecord(NamedTuple):
    """The record of a line."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class LineReader:
    """Parses lines; the first call of record() has line number 1."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        texts: dict[str, str | None] = {
            name: properties.get(name, default) for name, default in _SEPARATORS.items()
        }
        texts["null.marker"] = properties.get("null.marker")
        for one, other in _MUST_DIFFER:
            if texts[one] == texts[other]:
                raise BadLine(f"{one} and {other} may not be equal")
        self._parse_key = _is_true(properties, "parse.key")
        self._parse_headers = _is_true(properties, "parse.headers")
        self._ignore_error = _is_true(properties, "ignore.error")
        self._key_separator = _text(texts, "key.separator").encode()
        self._headers_delimiter = _text(texts, "headers.delimiter").encode()
        self._headers_key_separator = _text(texts, "headers.key.separator")
        self._headers_separator = _pattern(_text(texts, "headers.separator"))
        self._null_text = texts["null.marker"]
        self._null = None if self._null_text is None else self._null_text.encode()
        self.lines_read = 0

    @property
    def takes_whole_lines(self) -> bool:
        """Whether every line is just a value, so that parsing can be skipped."""
        return not (self._parse_key or self._parse_headers) and self._null is None

    def record(self, line: bytes) -> LineRecord:
        self.lines_read += 1
        at = 0
        headers: tuple[tuple[str, bytes | None], ...] = ()
        if self._parse_headers:
            found = self._until(line, at, self._headers_delimiter, "headers delimiter")
            if found is not None:
                at += len(found) + len(self._headers_delimiter)
                headers = () if found == self._null else self._split_headers(found)
        key = None
        if self._parse_key:
            key = self._until(line, at, self._key_separator, "key separator")
            if key is not None:
                at += len(key) + len(self._key_separator)
        value = line[at:]
        return LineRecord(self._unless_null(value), self._unless_null(key), headers)

    def _unless_null(self, data: bytes | None) -> bytes | None:
        return None if data == self._null else data

    def _until(self, line: bytes, at: int, end: bytes, name: str) -> bytes | None:
        """Return the bytes before `end`; None if `end` is missing and errors are ignored."""
        index = line.find(end, at)
        if index >= 0:
            return line[at:index]
        if self._ignore_error:
            return None
        shown = line.decode("utf-8", "replace")
        raise BadLine(f"No {name} found on line number {self.lines_read}: '{shown}'")

    def _split_headers(self, data: bytes) -> tuple[tuple[str, bytes | None], ...]:
        # surrogateescape keeps bytes of values that are not UTF-8.
        text = data.decode("utf-8", "surrogateescape")
        pairs = _split(self._headers_separator, text)
        # As Java's split(): drop empty pieces at the end, but a text without a separator is one piece.
        while len(pairs) > 1 and not pairs[-1]:
            pairs.pop()
        if pairs == [""] and text:
            return ()
        return tuple(self._header(pair) for pair in pairs)

    def _header(self, pair: str) -> tuple[str, bytes | None]:
        key, found, value = pair.partition(self._headers_key_separator)
        if not found:
            if self._ignore_error:
                return _header_key(pair), None
            shown = _header_key(pair)
            raise BadLine(f"No header key separator found in pair '{shown}' on line number {self.lines_read}")
        if key == self._null_text:
            marker = self._null_text
            raise BadLine(
                f"Header keys should not be equal to the null marker '{marker}' as they can't be null"
            )
        data = None if value == self._null_text else value.encode("utf-8", "surrogateescape")
        return _header_key(key), data


def _split(separator: "re.Pattern[str]", text: str) -> list[str]:
    """Split without re.split(), which would also return the groups of the pattern."""
    pieces, at = [], 0
    for found in separator.finditer(text):
        if found.end():
            pieces.append(text[at : found.start()])
            at = found.end()
    return [*pieces, text[at:]]


def _header_key(text: str) -> str:
    """Replace bytes that are not UTF-8, because header keys are text on the wire."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _is_true(properties: Mapping[str, str], name: str) -> bool:
    return properties.get(name, "").strip().lower() == "true"


def _text(texts: Mapping[str, str | None], name: str) -> str:
    text = texts[name]
    assert text is not None, name
    if not text:
        # An empty separator would match at every position.
        raise BadLine(f"{name} must not be empty")
    return text


def _pattern(text: str) -> "re.Pattern[str]":
    try:
        return re.compile(text)
    except re.error as wrong:
        raise BadLine(f"headers.separator={text} is not a valid regular expression: {wrong}") from None
