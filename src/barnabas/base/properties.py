"""Parse and write Java properties files, such as meta.properties and server.properties.

parse() understands everything that java.util.Properties does: comments, continued lines, `=`, `:` or a blank
between key and value, escapes. parse() reads what render() writes. Both are pure; files are read elsewhere.
"""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from barnabas.base.errors import Malformed

_LINE_END: Final = re.compile("\r\n|\n|\r")
_BLANKS: Final = " \t\f"
# A key ends at the first blank, `=` or `:` that is not escaped; a backslash escapes the next character.
# Between key and value are blanks and at most one `=` or `:`.
_KEY: Final = re.compile(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.?)", re.DOTALL)
_NAMED: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_TO_ESCAPE: Final = re.compile(r"[\\=:#!\t\n\r\f]|[^ -~]")
_LETTERS: Final = {value: letter for letter, value in _NAMED.items()}

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def parse(content: bytes) -> dict[str, str]:
    """Keys and values in the order of the file. A repeated key has its last value, as in Java."""
    found: dict[str, str] = {}
    # Java reads such files as Latin-1; other characters are written as \uXXXX.
    for number, line in _logical_lines(content.decode("latin-1")):
        key = _KEY.match(line)
        assert key is not None, "the pattern also matches nothing at all"
        where = f"line {number}"
        found[_unescape(key.group(1), where)] = _unescape(line[key.end() :], where)
    return found


def render(entries: Iterable[tuple[str, str]], *, now_ms: int) -> bytes:
    """The file that Java would write: an empty comment, the time in UTC, the entries in the given order."""
    lines = ["#", f"#{_java_date(now_ms)}"]
    lines += [f"{_escape_key(key)}={_escape_value(value)}" for key, value in entries]
    return "".join(line + "\n" for line in lines).encode("ascii")


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their numbers, without comments and empty lines, with continued lines joined."""
    joined, started = "", 0
    for number, raw in enumerate(_LINE_END.split(text), 1):
        line = raw.lstrip(_BLANKS)
        if not joined:
            if not line or line[0] in "#!":
                continue
            started = number
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2 == 1:
            joined += line[:-1]
            continue
        yield started, joined + line
        joined = ""
    if joined:
        yield started, joined


def _unescape(text: str, where: str) -> str:
    if "\\" not in text:
        return text

    def replace(match: re.Match[str]) -> str:
        escaped = match.group(1)
        if escaped[:1] == "u":
            if len(escaped) != 5:
                raise Malformed("\\u is not followed by four hexadecimal digits", where=where)
            return chr(int(escaped[1:], 16))
        return _NAMED.get(escaped, escaped)

    plain = _ESCAPE.sub(replace, text)
    try:
        # Java escapes characters above U+FFFF as surrogate pairs; join them again.
        return plain.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise Malformed("unpaired surrogate", where=where) from None


def _escape_key(text: str) -> str:
    return _escape(text).replace(" ", "\\ ")


def _escape_value(text: str) -> str:
    # A leading blank would be read as part of the separator. Only the first one must be escaped.
    escaped = _escape(text)
    return "\\" + escaped if escaped.startswith(" ") else escaped


def _escape(text: str) -> str:
    return _TO_ESCAPE.sub(_escape_character, text)


def _escape_character(match: re.Match[str]) -> str:
    character = match.group()
    if character in _LETTERS:
        return "\\" + _LETTERS[character]
    if " " <= character <= "~":
        return "\\" + character
    halves = character.encode("utf-16-be")
    return "".join(f"\\u{halves[at : at + 2].hex().upper()}" for at in range(0, len(halves), 2))


def _java_date(now_ms: int) -> str:
    at = _EPOCH + timedelta(milliseconds=now_ms)
    return f"{_DAYS[at.weekday()]} {_MONTHS[at.month - 1]} {at.day:02d} {at:%H:%M:%S} UTC {at.year}"
