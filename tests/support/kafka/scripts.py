"""Kafka's own command-line tools as a user runs them, many in one Java process.

A Step is one command line, the same for our broker and for Apache Kafka; the steps are in
kafka_script_steps.py and build on one another. What two brokers cannot have in common (ports, ids, times, how
fast they are, places on the disk) is taken out by normal(); whatever is left has to be equal.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from support.clients.client import opened
from support.clients.confluent import Confluent
from support.clients.group_client import GroupProtocol, MemberOptions
from support.clients.java_client import java_program, kafka_jars
from support.clients.remote_process import RemoteProcess
from support.clients.stage import Broker, Stage, wait_until

MAIN_CLASSES = {
    "kafka-broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "kafka-cluster": "org.apache.kafka.tools.ClusterTool",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-consumer-perf-test": "org.apache.kafka.tools.ConsumerPerformance",
    "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "kafka-features": "org.apache.kafka.tools.FeatureCommand",
    "kafka-groups": "org.apache.kafka.tools.GroupsCommand",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "kafka-producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
}
# The jars of the tools themselves, which each run gets anew; Scala's library remembers where its output goes.
MEMBER_TOPIC = "pairs"
MEMBER_PARTITIONS = frozenset({0, 1})
_FRESH_JARS = ("kafka-tools-4", "kafka_2.13", "scala-")


@dataclass(frozen=True, slots=True)
class Excuse:
    """Lines that begin like one of these are not compared, and the reason."""

    lines: re.Pattern[str]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One run of one tool. {address}, {logs} and {files} in the arguments are the broker's."""

    name: str
    tool: str
    args: tuple[str, ...]
    stdin: str = ""
    # Whether the tool is to end with 1, whoever the broker is.
    fails: bool = False
    # By which protocol a member of the group "active" is there meanwhile, if one is.
    member: GroupProtocol | None = None
    # Where our broker answers otherwise on purpose.
    excuse: Excuse | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    code: int
    stdout: str
    stderr: str


class Scripts:
    """The process that runs them. CannotBuild if there is no Java, no Maven, or no way to the jars."""

    def __init__(self) -> None:
        fresh = [jar for jar in kafka_jars() if Path(jar).name.startswith(_FRESH_JARS)]
        self._process = RemoteProcess(
            "Kafka's tools", [*java_program("Scripts", without=_FRESH_JARS), *fresh]
        )

    def run(self, step: Step, places: Mapping[str, str]) -> Ended:
        args = [each.format_map(places) for each in step.args]
        asked = {"main": MAIN_CLASSES[step.tool], "args": args, "stdin": step.stdin}
        answer = self._process.ask(asked)["ok"]
        return Ended(answer["code"], answer["stdout"], answer["stderr"])

    def close(self) -> None:
        self._process.close()

    def kill(self) -> None:
        self._process.kill()


def run_all(steps: Sequence[Step], broker: Broker, files: Path) -> Mapping[str, Ended]:
    """Every step, in order; what each printed, in normal form, by its name."""
    places = {"address": broker.address, "logs": str(broker.logs), "files": str(files)}
    found: dict[str, Ended] = {}
    scripts = Scripts()
    # Those with the same member follow one another.
    for protocol, share in groupby(steps, key=lambda step: step.member):
        with _member(broker, protocol):
            for step in share:
                try:
                    found[step.name] = normal(scripts.run(step, places), step, places)
                except BaseException as error:
                    error.add_note(f"in the step {step.name!r}")
                    scripts.kill()
                    raise
    scripts.close()
    return found


@contextmanager
def _member(broker: Broker, protocol: GroupProtocol | None) -> Iterator[None]:
    """In the group "active", with all of its topic, as long as the block lasts."""
    if protocol is None:
        yield
        return
    options = MemberOptions(group="active", protocol=protocol)
    with opened(Confluent().member(broker.address, MEMBER_TOPIC, options)) as member:
        wait_until(lambda: member.partitions() == MEMBER_PARTITIONS, "the member has its partitions")
        # It has them a moment before the coordinator knows.
        stage = Stage(broker, "scripts")
        wait_until(lambda: stage.state(options.group, protocol) == "Stable", "the group is stable")
        yield


# What is different on every run, whoever the broker is.
_EVERYWHERE = (
    (re.compile(r"^\s+at .*\n", re.MULTILINE), ""),
    (re.compile(r"TopicId: [-\w]{22}"), "TopicId: ID"),
    (re.compile(r"(?<=Cluster ID: )[-\w]{22}"), "ID"),
    (re.compile(r"(CONTROLLER://|1@)127.0.0.1:\d+"), r"\1127.0.0.1:PORT"),
)
_TIME = (re.compile(r"\b1\d{12}\b"), "TIME")
_NUMBER = (re.compile(r"\b\d+(\.\d+)?\b"), "N")
_GROUPS = (
    # A member's id, which is before its address.
    (re.compile(r"\S{22,}(?= +/)"), "MEMBER"),
    # In columns.
    (re.compile(r" +"), " "),
)
_OF_TOOL: Mapping[str, tuple[tuple[re.Pattern[str], str], ...]] = {
    # The checksum covers the times.
    "kafka-dump-log": (_TIME, (re.compile(r"crc: \d+"), "crc: N")),
    "kafka-console-consumer": (_TIME,),
    "kafka-consumer-groups": _GROUPS,
    "kafka-groups": _GROUPS,
    "kafka-metadata-quorum": (_NUMBER, (re.compile(r"[-\w]{22}"), "ID"), (re.compile(r" +"), " ")),
    "kafka-features": ((re.compile(r"Epoch: \d+"), "Epoch: N"),),
    # In columns, and the port is as wide as it is.
    "kafka-cluster": ((re.compile(r" +"), " "),),
    "kafka-producer-perf-test": (_NUMBER,),
    "kafka-consumer-perf-test": (_NUMBER,),
}


def normal(ended: Ended, step: Step, places: Mapping[str, str]) -> Ended:
    """The same for two brokers that did the same."""
    stdout, stderr = (_without_places(text, places) for text in (ended.stdout, ended.stderr))
    for pattern, instead in (*_EVERYWHERE, *_OF_TOOL.get(step.tool, ())):
        stdout, stderr = pattern.sub(instead, stdout), pattern.sub(instead, stderr)
    if step.tool == "kafka-log-dirs":
        stdout = "\n".join(_normal_log_dirs(line) for line in stdout.splitlines())
    return Ended(ended.code, stdout, stderr)


def _without_places(text: str, places: Mapping[str, str]) -> str:
    for name, place in places.items():
        text = text.replace(place, f"<{name}>")
    port = places["address"].rpartition(":")[2]
    return re.sub(rf"\b{port}\b", "PORT", text)


def _normal_log_dirs(line: str) -> str:
    """The partitions in order: Kafka has them in none."""
    if not line.startswith("{"):
        return line
    found = json.loads(line)
    for directory in (each for broker in found["brokers"] for each in broker["logDirs"]):
        directory["partitions"].sort(key=lambda each: each["partition"])
    return json.dumps(found)


def without_excused(step: Step, ours: Ended, kafka: Ended) -> tuple[Ended, Ended]:
    """Both as they are compared."""
    if step.tool == "kafka-broker-api-versions":
        # What is not built yet is not offered, and the tool has a line for it too.
        missing = [line.partition(":")[0] for line in ours.stdout.splitlines() if "UNSUPPORTED" in line]
        pattern = re.compile("|".join(map(re.escape, missing)))
    elif step.excuse is not None:
        pattern = step.excuse.lines
    else:
        return ours, kafka
    return _without_lines(ours, pattern), _without_lines(kafka, pattern)


def _without_lines(ended: Ended, pattern: re.Pattern[str]) -> Ended:
    def kept(text: str) -> str:
        return "\n".join(line.rstrip(",") for line in text.splitlines() if not pattern.match(line))

    return Ended(ended.code, kept(ended.stdout), kept(ended.stderr))
