"""Writes the table of clients when BARNABAS_CLIENTS_TABLE names a file: what a run of the checklist found.

The reports of all workers come together in the process that started them, and only that one writes.
"""

import os
from pathlib import Path

import pytest

from support.clients.table import Table

FILE = "BARNABAS_CLIENTS_TABLE"


class Collector:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._table = Table()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._table.add(report)

    def pytest_sessionfinish(self) -> None:
        self._path.write_text(self._table.render())


def pytest_configure(config: pytest.Config) -> None:
    path = os.environ.get(FILE)
    if path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Collector(Path(path)), "clients-table")
