"""The table of clients says what ran, and why the rest did not."""

import pytest

from support.clients.entries import all_entries
from support.clients.table import COLUMNS, PROPERTY, Table

KAFKA_PYTHON = next(client for client in COLUMNS if client.name == "kafka-python")
SARAMA = next(client for client in COLUMNS if client.name == "sarama")
FIRST, SECOND, THIRD = (entry.name for entry in all_entries()[:3])


def report(client: str, entry: str, outcome: str, *, reason: str = "") -> pytest.TestReport:
    return pytest.TestReport(
        nodeid="test",
        location=("test.py", 1, "test"),
        keywords={},
        outcome=outcome,  # type: ignore[arg-type]
        longrepr=("test.py", 1, f"Skipped: {reason}") if outcome == "skipped" else None,
        when="call",
        user_properties=[(PROPERTY, [client, entry])],
    )


def row(table: str, name: str) -> list[str]:
    [line] = [line for line in table.splitlines() if line.startswith(f"| {name} |")]
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_a_cell_shows_the_outcome_of_its_test() -> None:
    table = Table()
    table.add(report("kafka-python", FIRST, "passed"))
    table.add(report("kafka-python", SECOND, "failed"))
    table.add(report("kafka-python", THIRD, "skipped", reason="it has no such thing"))

    shown = table.render()

    column = 1 + COLUMNS.index(KAFKA_PYTHON)
    assert row(shown, FIRST)[column] == "yes"
    assert row(shown, SECOND)[column] == "**failed**"
    number = row(shown, THIRD)[column].removeprefix("no [").removesuffix("]")
    assert f"{number}. it has no such thing" in shown.splitlines()


def test_a_failure_is_not_forgotten_when_another_phase_passes() -> None:
    table = Table()
    table.add(report("kafka-python", FIRST, "failed"))
    table.add(report("kafka-python", FIRST, "passed"))

    assert row(table.render(), FIRST)[1 + COLUMNS.index(KAFKA_PYTHON)] == "**failed**"


def test_an_entry_without_a_report_is_not_run() -> None:
    table = Table()
    table.add(report("kafka-python", FIRST, "passed"))

    assert row(table.render(), SECOND)[1 + COLUMNS.index(KAFKA_PYTHON)] == "not run"


def test_a_client_that_was_not_selected_keeps_its_column_with_the_reason() -> None:
    table = Table()
    table.add(report("kafka-python", FIRST, "passed"))

    shown = table.render()

    [version] = row(shown, "sarama")[1:]
    cells = [row(shown, entry.name)[1 + COLUMNS.index(SARAMA)] for entry in all_entries()]
    assert version.startswith("not run here [")
    assert set(cells) == {version}
    number = version.removeprefix("not run here [").removesuffix("]")
    assert f"{number}. The tests of this client were not part of the run that wrote this page." in shown
