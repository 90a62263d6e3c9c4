"""Case-insensitive access to the options from Spark. An option that nobody reads counts as unknown.

Spark converts names to lower case before it passes them to Python. Error messages spell known options as
documented, and unknown ones as they arrived.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from barnabas.base.errors import BarnabasError
from barnabas.base.settings import nearest

_INT64_MAX: Final = (1 << 63) - 1
# The integers that Java parses: int() would also accept 1_000.
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,64}")
_DURATION: Final = re.compile(r"(\d+)\s*([a-z]*)", re.ASCII)
# Spark's units of durations; a number without a unit is in milliseconds.
_UNIT_MS: Final = {
    "": 1.0,
    "us": 0.001,
    "ms": 1.0,
    "s": 1000.0,
    "m": 60_000.0,
    "min": 60_000.0,
    "h": 3_600_000.0,
    "d": 86_400_000.0,
}


class BadOption(BarnabasError):
    """An option is invalid or conflicts with another; `name` is its documented spelling."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"option {name}: {why}")
        self.name = name


class Values:
    """Reads options one by one; refuse_others() rejects those that were never read.

    `kind` is source or sink, for error messages.
    """

    def __init__(self, given: Mapping[str, str], kind: str = "source") -> None:
        self._given = {name.lower(): (name, text) for name, text in given.items()}
        self._kind = kind
        # Documented names by names in lower case.
        self._known: dict[str, str] = {}
        self._of_client: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._given

    def text(self, name: str) -> str | None:
        self._known[name.lower()] = name
        found = self._given.get(name.lower())
        return None if found is None else found[1].strip()

    def flag(self, name: str, default: bool) -> bool:
        text = self.text(name)
        if text is None:
            return default
        if text.lower() not in ("true", "false"):
            raise BadOption(name, f"{text!r} is neither true nor false")
        return text.lower() == "true"

    def number(self, name: str, *, least: int = 0, most: int = _INT64_MAX) -> int | None:
        text = self.text(name)
        if text is None:
            return None
        if _WHOLE.fullmatch(text) is None:
            raise BadOption(name, f"{text!r} is not an integer")
        number = int(text)
        if not least <= number <= most:
            raise BadOption(name, f"{number} is out of range ({least} to {most})")
        return number

    def duration_ms(self, name: str) -> int | None:
        text = self.text(name)
        if text is None:
            return None
        found = _DURATION.fullmatch(text.lower())
        unit_ms = None if found is None else _UNIT_MS.get(found[2])
        if found is None or unit_ms is None:
            raise BadOption(name, f"{text!r} is not a duration like 500ms, 30s, 15m or 1h")
        return int(int(found[1]) * unit_ms)

    def starting_with(self, prefix: str) -> dict[str, str]:
        """Return all options with the prefix, which is removed from their names."""
        found = {}
        for lower, (name, text) in self._given.items():
            if lower.startswith(prefix.lower()):
                self._of_client.add(lower)
                found[name[len(prefix) :]] = text.strip()
        return found

    def refuse_misspelled(self, *wanted: str) -> None:
        """Raise BadOption if an unknown option looks like one of `wanted`, none of which is set."""
        unknown = self._unknown()
        for one in wanted:
            if (meant := nearest(one, unknown)) is not None:
                raise self._no_such(meant, wanted)

    def refuse_others(self, client: Iterable[str] = ()) -> None:
        """Raise BadOption for an option that was never read. `client` has further names to suggest."""
        for name in self._unknown():
            raise self._no_such(name, [*self._known.values(), *client])

    def _unknown(self) -> list[str]:
        return [
            name
            for lower, (name, _) in self._given.items()
            if lower not in self._known and lower not in self._of_client
        ]

    def _no_such(self, name: str, known: Iterable[str]) -> BadOption:
        return BadOption(name, f"no such {self._kind} option" + hint(nearest(name, known)))


def hint(meant: str | None) -> str:
    """Return the suggestion that ends an error about an unknown name."""
    return "" if meant is None else f"; did you mean {meant}?"
