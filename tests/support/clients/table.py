"""The table of what clients can do with our broker, as docs/reference/clients.md shows it.

Filled with the reports of a run of the checklist; an entry that did not run is shown as that, so a partial
run cannot pass for a whole one.
"""

import pytest

from support.clients.entries import CLIENTS, all_entries

# Which client and which entry a test is about, in the properties of its report.
PROPERTY = "checklist"
_PASSED = "yes"
_FAILED = "**failed**"
_NOT_RUN = "not run"

_INTRODUCTION = """# Clients

Unmodified clients and one checklist. Every cell is a test that runs in `make test`, and the same stories run
against Apache Kafka 4.3 in `make interop`. `make clients` runs the checklist and writes this page.

Consumers are assigned their partitions: there are no consumer groups yet, and no transactions.
"""


class Table:
    def __init__(self) -> None:
        self._cells: dict[tuple[str, str], str] = {}
        # Why a cell is empty.
        self._skipped: dict[tuple[str, str], str] = {}

    def add(self, report: pytest.TestReport) -> None:
        """A report of any phase; the last word counts, but a failure stays."""
        for name, value in report.user_properties:
            if name != PROPERTY or not isinstance(value, list):
                continue
            client, entry = value
            if report.failed:
                self._cells[client, entry] = _FAILED
            elif report.skipped:
                self._skipped[client, entry] = _reason(report)
            elif report.when == "call":
                self._cells.setdefault((client, entry), _PASSED)

    def render(self) -> str:
        names = [client.name for client in CLIENTS]
        lines = [_INTRODUCTION, "| client | version |", "| --- | --- |"]
        for client in CLIENTS:
            lines.append(f"| {client.name} | {client.missing() or client.version()} |")
        lines += ["", f"| | {' | '.join(names)} |", f"| --- | {' | '.join('---' for _ in names)} |"]
        # Numbered in the order of the page, whatever the order of the run was.
        reasons: list[str] = []
        for entry in all_entries():
            cells = [self._cell(name, entry.name, reasons) for name in names]
            lines.append(f"| {entry.name} | {' | '.join(cells)} |")
        lines.append("")
        lines += [f"{number}. {reason}" for number, reason in enumerate(reasons, 1)]
        return "\n".join(lines) + "\n"

    def _cell(self, client: str, entry: str, reasons: list[str]) -> str:
        reason = self._skipped.get((client, entry))
        if reason is None:
            return self._cells.get((client, entry), _NOT_RUN)
        if reason not in reasons:
            reasons.append(reason)
        return f"no [{reasons.index(reason) + 1}]"


def _reason(report: pytest.TestReport) -> str:
    not_yet: str | None = getattr(report, "wasxfail", None)
    if not_yet is not None:
        return not_yet
    assert isinstance(report.longrepr, tuple), report.longrepr
    return report.longrepr[2].removeprefix("Skipped: ")
