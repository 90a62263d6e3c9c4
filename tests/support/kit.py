"""What the tests of the test kit share: another client to look with, and sessions of pytest as processes."""

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Consumer, Producer, TopicPartition

import barnabas

TIMEOUT_S = 30.0
SESSION_TIMEOUT_S = 300.0
SOURCE = Path(barnabas.__file__).parents[1]


def produce(bootstrap: str, topic: str, *values: bytes, partition: int = 0) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    for value in values:
        producer.produce(topic, value, partition=partition)
    assert producer.flush(TIMEOUT_S) == 0, f"{topic}: nothing was acknowledged"


def consume(bootstrap: str, topic: str, count: int, partition: int = 0) -> list[bytes]:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False, "log_level": 0}
    )
    try:
        consumer.assign([TopicPartition(topic, partition, 0)])
        return [message.value() for message in consumer.consume(count, TIMEOUT_S)]
    finally:
        consumer.close()


class Ended(NamedTuple):
    """How a process ended."""

    code: int
    out: str
    err: str


def python(*words: str, cwd: Path, environment: dict[str, str] | None = None) -> Ended:
    """Run the Python of this session, with the Barnabas of this session."""
    found = subprocess.run(
        [sys.executable, *words],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(SOURCE), **(environment or {})},
        capture_output=True,
        text=True,
        timeout=SESSION_TIMEOUT_S,
        check=False,
    )
    return Ended(found.returncode, found.stdout, found.stderr)


def installed_session(directory: Path, *words: str) -> Ended:
    """A session of pytest that finds the plugin by its entry point, as after `pip install`."""
    about = directory / "installed" / "barnabas_of_this_test-0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: barnabas-of-this-test\nVersion: 0\n")
    (about / "RECORD").write_text("barnabas/__init__.py,,\n")
    (about / "entry_points.txt").write_text("[pytest11]\nbarnabas = barnabas.testing.plugin\n")
    path = os.pathsep.join([str(about.parent), str(SOURCE)])
    return python("-m", "pytest", "-q", *words, cwd=directory, environment={"PYTHONPATH": path})


def pytest_session(
    directory: Path, *words: str, plugins: tuple[str, ...] = (), warnings: str = "error"
) -> Ended:
    """A session of pytest of somebody who has installed Barnabas, in a directory with tests."""
    # By name and not by its entry point: so it is this source's, wherever another one is installed.
    loaded = [option for name in ("barnabas.testing.plugin", *plugins) for option in ("-p", name)]
    return python(
        "-m",
        "pytest",
        "-q",
        "-W",
        warnings,
        "-p",
        "no:cacheprovider",
        *loaded,
        *words,
        cwd=directory,
        environment={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""},
    )
