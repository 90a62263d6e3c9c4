"""Writes the table of clients when BARNABAS_CLIENTS_TABLE names a file: what a run of the checklist found.

The conftest.py of every directory that has tests of the checklist registers it, and one run of all of them
writes one table: the reports of all workers come together in the process that started them.
"""

import os
from pathlib import Path

import pytest

from support.clients.table import Table
from support.kafka.script_rows import ToolRows

_TOOLS = """
## Kafka's own command-line tools

Apache Kafka 4.3.0's scripts run against Barnabas and against Kafka with the same preparation. A run counts if
both print the same and end with the same exit code.

| tool | as with Kafka | why not all |
| --- | --- | --- |"""
FILE = "BARNABAS_CLIENTS_TABLE"
_NAME = "clients-table"


class TableWriter:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._table = Table()
        self._tools = ToolRows()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._table.add(report)
        self._tools.add(report)

    def pytest_sessionfinish(self) -> None:
        self._path.write_text(self._table.render() + tools_section(self._tools))


def tools_section(tools: ToolRows) -> str:
    lines = [f"| {tool} | {went} | {why} |" for tool, went, why in tools.rows()]
    return "\n".join([_TOOLS, *lines, ""])


def register(config: pytest.Config) -> None:
    path = os.environ.get(FILE)
    is_worker = hasattr(config, "workerinput")
    if path and not is_worker and not config.pluginmanager.has_plugin(_NAME):
        config.pluginmanager.register(TableWriter(Path(path)), _NAME)
