"""The table of what clients can do with our broker, as docs/reference/clients.md shows it.

Filled with the reports of a run of the checklist; an entry that did not run is shown as that, so a partial
run cannot pass for a whole one. A client that did not run at all keeps its column, with the reason.
"""

import pytest

from support.clients.client import Client
from support.clients.entries import CLIENTS, Entry, all_entries
from support.clients.other_languages import OTHER_LANGUAGES

# Which client and which entry a test is about, in the properties of its report.
PROPERTY = "checklist"
COLUMNS: tuple[Client, ...] = (*CLIENTS, *OTHER_LANGUAGES)
_PASSED = "yes"
_FAILED = "**failed**"
_NOT_RUN = "not run"
_NOT_RUN_HERE = "not run here"
_NOT_SELECTED = "The tests of this client were not part of the run that wrote this page."

_INTRODUCTION = """# Clients

Unmodified clients run one checklist against Barnabas. Every cell is a test. `make test` runs the Python
clients and kcat; `make interop` runs all of them, repeats the checklist against Apache Kafka 4.3, and writes
this page.

Consumers are assigned their partitions unless the row is about groups; kafkajs cannot assign partitions and
is alone in a group instead. Each row about groups names its protocol: the classic one, or the one of KIP-848
(`group.protocol=consumer`). Where a client cannot describe the topic that it created, confluent-kafka does.
Transactions have tests of their own: confluent-kafka and barnabas in
[tests/scenario/transactions](../../tests/scenario/transactions), Kafka Streams in
[tests/interop](../../tests/interop/test_streams_exactly_once.py).
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
        # Numbered in the order of the page, whatever the order of the run was.
        reasons: list[str] = []
        missing = {client.name: self._why_missing(client) for client in COLUMNS}
        lines = [_INTRODUCTION, "| client | version |", "| --- | --- |"]
        for client in COLUMNS:
            reason = missing[client.name]
            version = client.version() if reason is None else _because(_NOT_RUN_HERE, reason, reasons)
            lines.append(f"| {client.name} | {version} |")
        lines += ["", f"| | {' | '.join(missing)} |", f"| --- | {' | '.join('---' for _ in missing)} |"]
        for entry in all_entries():
            cells = [self._cell(name, entry, why, reasons) for name, why in missing.items()]
            lines.append(f"| {entry.name} | {' | '.join(cells)} |")
        lines.append("")
        lines += [f"{number}. {reason}" for number, reason in enumerate(reasons, 1)]
        return "\n".join(lines) + "\n"

    def _why_missing(self, client: Client) -> str | None:
        """Why the client did not run, if it did not. Who was not selected is not built only to be named."""
        if not any(name == client.name for name, _ in (*self._cells, *self._skipped)):
            return _NOT_SELECTED
        return client.missing()

    def _cell(self, client: str, entry: Entry, missing: str | None, reasons: list[str]) -> str:
        if missing is not None:
            return _because(_NOT_RUN_HERE, missing, reasons)
        reason = self._skipped.get((client, entry.name))
        if reason is None:
            return self._cells.get((client, entry.name), _NOT_RUN)
        return _because("no", reason, reasons)


def _because(what: str, reason: str, reasons: list[str]) -> str:
    """With the number of the reason, which is explained below the table."""
    if reason not in reasons:
        reasons.append(reason)
    return f"{what} [{reasons.index(reason) + 1}]"


def _reason(report: pytest.TestReport) -> str:
    not_yet: str | None = getattr(report, "wasxfail", None)
    if not_yet is not None:
        return not_yet
    assert isinstance(report.longrepr, tuple), report.longrepr
    return report.longrepr[2].removeprefix("Skipped: ")
