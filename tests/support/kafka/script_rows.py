"""One row for each of Kafka's tools: whether all that it was asked to do with our broker went as with Kafka.

Filled with the reports of tests/interop/test_kafka_scripts.py, as support.clients.table is with those of the
checklist.
"""

import pytest

from support.kafka.script_steps import STEPS

# Which tool and which step a test is about, in the properties of its report.
PROPERTY = "kafka-tool"


class ToolRows:
    def __init__(self) -> None:
        self._passed: set[str] = set()
        self._failed: set[str] = set()
        self._skipped: dict[str, str] = {}

    def add(self, report: pytest.TestReport) -> None:
        """A report of any phase; a failure stays."""
        for name, value in report.user_properties:
            if name != PROPERTY or not isinstance(value, list):
                continue
            _, step = value
            if report.failed:
                self._failed.add(step)
            elif report.skipped:
                assert isinstance(report.longrepr, tuple), report.longrepr
                self._skipped[step] = report.longrepr[2].removeprefix("Skipped: ")
            elif report.when == "call":
                self._passed.add(step)

    def rows(self) -> list[tuple[str, str, str]]:
        """(tool, how many of its runs went as with Kafka, why the others did not), by the tool's name."""
        return [self._row(tool) for tool in sorted({step.tool for step in STEPS})]

    def _row(self, tool: str) -> tuple[str, str, str]:
        names = [step.name for step in STEPS if step.tool == tool]
        good = [name for name in names if name in self._passed - self._failed]
        # In order and each once, as a dictionary keeps them.
        why = dict.fromkeys(self._why_not(name) for name in names if name not in good)
        return tool, f"{len(good)} of {len(names)}", "; ".join(why)

    def _why_not(self, name: str) -> str:
        short = name.partition(": ")[2]
        if name in self._failed:
            return f"**failed**: {short}"
        if name in self._skipped:
            return f"{short} {self._skipped[name]}"
        return "not run"
