"""Kafka's own command-line tools print and return the same with our broker as with Apache Kafka.

Both get the same command lines in the same order: support/kafka/script_steps.py. Needs Java and Maven as the
other tests here do.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

import pytest

from support.clients.remote import CannotBuild
from support.clients.stage import GROUP_SETTINGS
from support.kafka.broker import KafkaBroker
from support.kafka.script_rows import PROPERTY, ToolRows
from support.kafka.script_steps import FILES, STEPS
from support.kafka.scripts import Ended, Step, run_all, without_excused
from support.kafka.tools import kafka_tools
from support.process.our_broker import OurBroker

# Each of the two brokers has some of these by itself, and they are seen in what is described.
SETTINGS: Mapping[str, object] = {
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": 1,
    "offsets.topic.replication.factor": 1,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    **GROUP_SETTINGS,
}

each_step = pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("files")
    for name, text in FILES.items():
        (directory / name).write_text(text)
    return directory


@pytest.fixture(scope="module")
def with_kafka(tmp_path_factory: pytest.TempPathFactory, files: Path) -> Mapping[str, Ended]:
    broker = KafkaBroker(kafka_tools(), tmp_path_factory.mktemp("kafka"), settings=SETTINGS)
    broker.format()
    with broker.running():
        return run_all(STEPS, broker, files)


@pytest.fixture(scope="module")
def with_ours(tmp_path_factory: pytest.TempPathFactory, files: Path) -> Mapping[str, Ended]:
    broker = OurBroker(tmp_path_factory.mktemp("ours"), settings=SETTINGS)
    with broker.running():
        try:
            return run_all(STEPS, broker, files)
        except CannotBuild as reason:
            pytest.skip(str(reason))


@each_step
def test_a_tool_of_kafka_does_the_same_with_our_broker(
    step: Step,
    with_kafka: Mapping[str, Ended],
    with_ours: Mapping[str, Ended],
    record_property: Callable[[str, object], None],
) -> None:
    record_property(PROPERTY, [step.tool, step.name])

    ours, kafka = without_excused(step, with_ours[step.name], with_kafka[step.name])

    # That both do the same proves little if neither does what it was meant to.
    assert kafka.code == (1 if step.fails else 0), kafka
    assert ours == kafka
    if step.excuse is not None:
        assert with_ours[step.name] != with_kafka[step.name], f"no excuse is needed: {step.excuse.reason}"


def test_the_row_of_a_tool_counts_its_steps_and_says_why_some_are_missing() -> None:
    rows = ToolRows()
    for step in STEPS:
        if step.tool == "kafka-console-consumer":
            rows.add(_report(step, "skipped" if step.name.endswith(": in a group") else "passed"))
        elif step.tool == "kafka-features":
            rows.add(_report(step, "failed"))

    found = {tool: (count, why) for tool, count, why in rows.rows()}

    assert found["kafka-console-consumer"] == ("13 of 14", "in a group needs groups")
    assert found["kafka-features"] == ("0 of 1", "**failed**: describe")
    assert found["kafka-dump-log"] == ("0 of 3", "not run")


def _report(step: Step, outcome: Literal["passed", "failed", "skipped"]) -> pytest.TestReport:
    return pytest.TestReport(
        nodeid=step.name,
        location=("", 0, ""),
        keywords={},
        outcome=outcome,
        longrepr=("", 0, "Skipped: needs groups") if outcome == "skipped" else None,
        when="call",
        user_properties=[(PROPERTY, [step.tool, step.name])],
    )
