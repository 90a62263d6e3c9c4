"""The history of a run: every operation of its clients with its outcome, and every event of its nodes.

One table, in the order of true time. An invoked operation gets exactly one completion: `ok`, `fail` (it has
surely had no effect) or `info` (unknown). Rows never change, so checkers can trust them.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

Kind = Literal["invoke", "ok", "fail", "info", "event"]


class Row(NamedTuple):
    """A step of an operation, or an event of a node."""

    number: int
    at_ns: int
    kind: Kind
    # The client or node.
    who: str
    # The operation, or what happened.
    what: str
    # The row of the invocation, for a completion.
    link: int | None
    facts: dict[str, Any]

    def __str__(self) -> str:
        facts = " ".join(f"{name}={value}" for name, value in self.facts.items())
        return f"{self.at_ns / 1e9:12.6f} s  {self.who:8} {self.kind:6} {self.what} {facts}".rstrip()


class Operation(NamedTuple):
    """An operation with its outcome."""

    client: str
    what: str
    invoked_ns: int
    # None if it was still open at the end of the run.
    completed_ns: int | None
    outcome: Literal["ok", "fail", "info"]
    # Of the invocation and of the completion.
    facts: dict[str, Any]


class InvalidHistory(Exception):
    """The history breaks its own rules: an error of the harness, not of a broker."""


class History:
    """The rows of one run. `now_ns` is true time."""

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self.rows: Final[list[Row]] = []
        self._now_ns = now_ns
        self._open: dict[int, Row] = {}

    def invoke(self, client: str, what: str, **facts: Any) -> int:
        """Note that a client begins an operation. Return the number to complete it with."""
        row = self._add("invoke", client, what, None, facts)
        self._open[row.number] = row
        return row.number

    def complete(self, number: int, outcome: Literal["ok", "fail", "info"], **facts: Any) -> None:
        invoked = self._open.pop(number, None)
        if invoked is None:
            raise InvalidHistory(f"row {number} is not an open operation")
        self._add(outcome, invoked.who, invoked.what, number, facts)

    def event(self, node: str, what: str, **facts: Any) -> None:
        self._add("event", node, what, None, facts)

    def close(self) -> None:
        """Complete the open operations as unknown."""
        for number in list(self._open):
            self.complete(number, "info", why="the run ended")

    def operations(self, what: str | None = None) -> list[Operation]:
        """The operations in the order of their invocation."""
        ends = {row.link: row for row in self.rows if row.link is not None}
        found = []
        for row in self.rows:
            if row.kind == "invoke" and what in (None, row.what):
                end = ends.get(row.number)
                outcome: Any = "info" if end is None else end.kind
                facts = row.facts if end is None else {**row.facts, **end.facts}
                ended_ns = None if end is None else end.at_ns
                found.append(Operation(row.who, row.what, row.at_ns, ended_ns, outcome, facts))
        return found

    def lines(self) -> Iterator[str]:
        """The rows as JSON, one per line."""
        for row in self.rows:
            yield json.dumps(row, default=str)

    def write(self, path: Path) -> None:
        path.write_text("".join(f"{line}\n" for line in self.lines()))

    def _add(self, kind: Kind, who: str, what: str, link: int | None, facts: dict[str, Any]) -> Row:
        row = Row(len(self.rows), self._now_ns(), kind, who, what, link, facts)
        self.rows.append(row)
        return row


def check_history(rows: list[Row]) -> None:
    """Raise InvalidHistory unless the rows keep the rules that checkers rely on."""
    invoked: dict[int, Row] = {}
    completed: set[int] = set()
    for number, row in enumerate(rows):
        if row.number != number:
            raise InvalidHistory(f"row {number} has number {row.number}")
        if number and row.at_ns < rows[number - 1].at_ns:
            raise InvalidHistory(f"row {number} is earlier than the row before it")
        if row.kind == "invoke":
            invoked[number] = row
        elif row.kind != "event":
            if row.link not in invoked:
                raise InvalidHistory(f"row {number} completes row {row.link}, which invokes nothing")
            if row.link in completed:
                raise InvalidHistory(f"row {number} completes row {row.link} again")
            if (row.who, row.what) != (invoked[row.link].who, invoked[row.link].what):
                raise InvalidHistory(f"row {number} completes another client's row {row.link}")
            completed.add(row.link)
    for number in invoked.keys() - completed:
        raise InvalidHistory(f"row {number} was never completed")
