"""Checkers: they judge what clients and nodes did. Each states the settings under which it is valid."""

from typing import NamedTuple


class Violation(NamedTuple):
    """A rule that a run has broken."""

    checker: str
    at_ns: int
    # The node or client.
    who: str
    text: str

    def __str__(self) -> str:
        return f"{self.checker}: {self.at_ns / 1e9:.6f} s: {self.who}: {self.text}"
