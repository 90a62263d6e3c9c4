"""The tests of the checklist that are here fill the table of clients: see support.clients.table_writer."""

import pytest

from support.clients.table_writer import register


def pytest_configure(config: pytest.Config) -> None:
    register(config)
