"""Both brokers side by side, each in a process of its own, and what a process costs.

Kafka gets the memory and the collector that its own start script gives it. Both have their defaults
otherwise, and both run all the time: the one whose turn it is not has nothing to do.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pytest

from barnabas.protocol.messages.topics import (
    CreatableTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from support.kafka.broker import KafkaBroker
from support.kafka.tools import KafkaTools, kafka_tools
from support.process.our_broker import OurBroker
from support.wire.client import WireClient

T = TypeVar("T")
Broker = OurBroker | KafkaBroker

# As kafka-server-start.sh and kafka-run-class.sh of Kafka 4.3.0 have them.
JAVA_OPTIONS = (
    "-Xmx1g",
    "-Xms1g",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
)
CREATE_VERSION = 7
DELETE_VERSION = 6
ADMIN_TIMEOUT_MS = 60_000
# Kafka deletes nothing in the first 30 s after its start.
GONE_WITHIN_S = 60.0
# So that the files of one turn are gone before the next one. All else is as it comes.
SETTINGS = {"log.segment.delete.delay.ms": 0}
MB = 1e6
GB = 1e9


class NoKafka(Exception):
    """There is nothing to compare with."""


def find_kafka() -> KafkaTools:
    """Kafka's jars, or NoKafka with the reason."""
    try:
        return kafka_tools()
    except pytest.skip.Exception as missing:
        raise NoKafka(str(missing)) from None


@dataclass(frozen=True, slots=True)
class Pair:
    """Both brokers. `tools` has the jars, for clients in Java."""

    ours: OurBroker
    theirs: KafkaBroker
    tools: KafkaTools

    def alternate(
        self, run: Callable[[Broker], T], rounds: int, *, warm_up: int = 1
    ) -> tuple[list[T], list[T]]:
        """What each run returned: ours, theirs, ours, theirs, after rounds that do not count."""
        mine: list[T] = []
        others: list[T] = []
        for number in range(warm_up + rounds):
            for broker, results in ((self.ours, mine), (self.theirs, others)):
                result = run(broker)
                if number >= warm_up:
                    results.append(result)
        return mine, others


def make_pair(directory: Path, tools: KafkaTools) -> Pair:
    """Both, formatted and not started."""
    for name in ("ours", "theirs"):
        (directory / name).mkdir(parents=True)
    theirs = KafkaBroker(tools, directory / "theirs", settings=SETTINGS, java_options=JAVA_OPTIONS)
    theirs.format()
    return Pair(OurBroker(directory / "ours", settings=SETTINGS), theirs, tools)


@contextmanager
def running_pair(directory: Path, tools: KafkaTools) -> Iterator[Pair]:
    pair = make_pair(directory, tools)
    try:
        pair.ours.start()
        pair.theirs.start()
        yield pair
        pair.ours.stop()
        pair.theirs.stop()
    finally:
        # Nothing is left running, whatever went wrong.
        pair.ours.kill()
        pair.theirs.kill()


@contextmanager
def topic(broker: Broker, name: str, partitions: int = 1) -> Iterator[str]:
    """A topic for the length of a block; after it, its files are gone too."""
    create_topic(broker, name, partitions)
    yield name
    delete_topic(broker, name)


def create_topic(broker: Broker, name: str, partitions: int = 1) -> None:
    wanted = CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=1, assignments=[], configs=[]
    )
    request = CreateTopicsRequest(topics=[wanted], timeout_ms=ADMIN_TIMEOUT_MS, validate_only=False)
    with WireClient(broker.address, timeout_s=ADMIN_TIMEOUT_MS / 1000) as client:
        answer = client.ask(request, CREATE_VERSION)
    for one in answer.topics:
        assert one.error_code == 0, f"{one.name} was not created: {one.error_code} {one.error_message}"


def delete_topic(broker: Broker, name: str) -> None:
    state = DeleteTopicState(name=name)
    with WireClient(broker.address, timeout_s=ADMIN_TIMEOUT_MS / 1000) as client:
        request = DeleteTopicsRequest(topics=[state], topic_names=[], timeout_ms=ADMIN_TIMEOUT_MS)
        answer = client.ask(request, DELETE_VERSION)
    for one in answer.responses:
        assert one.error_code == 0, f"{name} was not deleted: {one.error_code} {one.error_message}"
    deadline = time.monotonic() + GONE_WITHIN_S
    while any(entry.startswith((f"{name}-", f"{name}.")) for entry in os.listdir(broker.logs)):
        assert time.monotonic() < deadline, f"{name}: files are left {GONE_WITHIN_S} s after it was deleted"
        time.sleep(0.05)


def segments(broker: Broker, name: str) -> list[Path]:
    return sorted(broker.logs.glob(f"{name}-*/*.log"))


# Linux names the CPU clock of a process by its inverted pid and, in the last three bits, the kind of clock.
_PROCESS_CPU_CLOCK = 2


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of all threads of a process, including those that ended.

    /proc/PID/stat counts in hundredths of a second, more than our broker takes to send 100 MB.
    """
    return time.clock_gettime((~pid << 3) | _PROCESS_CPU_CLOCK)


def memory_mb(pid: int) -> dict[str, float]:
    """Resident memory: `Rss`, and `Pss`, in which shared pages count by share."""
    found = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        name, _, rest = line.partition(":")
        if name in ("Rss", "Pss"):
            found[name] = int(rest.split()[0]) * 1024 / MB
    return found
