"""Options as Spark hands them over: text by names in any case. What was not asked for is not known."""

import re
from collections.abc import Mapping
from typing import Final

from barnabas.spark.options.errors import BadOption

_INT64_MAX: Final = (1 << 63) - 1
_DURATION: Final = re.compile(r"(\d+)\s*([a-z]*)", re.ASCII)
# As Spark writes times; a number alone is milliseconds.
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


class Values:
    """Takes options one by one. refuse_others() tells of those that nobody has asked for."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = {name.lower(): (name, text) for name, text in given.items()}
        self._known: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._given

    def text(self, name: str) -> str | None:
        self._known.add(name.lower())
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
        try:
            number = int(text)
        except ValueError:
            raise BadOption(name, f"{text!r} is no whole number") from None
        if not least <= number <= most:
            raise BadOption(name, f"{number} is not between {least} and {most}")
        return number

    def duration_ms(self, name: str) -> int | None:
        text = self.text(name)
        if text is None:
            return None
        found = _DURATION.fullmatch(text.lower())
        unit_ms = None if found is None else _UNIT_MS.get(found[2])
        if found is None or unit_ms is None:
            raise BadOption(name, f"{text!r} is no time like 500ms, 30s, 15m or 1h")
        return int(int(found[1]) * unit_ms)

    def starting_with(self, prefix: str) -> dict[str, str]:
        """All whose name begins so, without that: with the rest of the name as it was written."""
        found = {}
        for lower, (name, text) in self._given.items():
            if lower.startswith(prefix.lower()):
                self._known.add(lower)
                found[name[len(prefix) :]] = text.strip()
        return found

    def refuse_others(self) -> None:
        for lower, (name, _) in self._given.items():
            if lower not in self._known:
                raise BadOption(name, "there is no such option")
