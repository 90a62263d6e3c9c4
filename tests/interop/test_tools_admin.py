"""Kafka's own tools and ours against the same Kafka 4.3: output and exit codes.

Where Kafka prints in hash map order and we sort by name, lines are compared sorted. Only the first line of
stderr is compared, without stack traces and usage texts.
"""

import asyncio
import json
import re
from collections.abc import Iterator

import pytest

from barnabas.client import Producer
from support.kafka.broker import KafkaBroker
from support.kafka.tools import KafkaTools, kafka_tools
from support.process.tool_runs import run_tool

CLASSES = {
    "topics": "org.apache.kafka.tools.TopicCommand",
    "configs": "kafka.admin.ConfigCommand",
    "get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "cluster": "org.apache.kafka.tools.ClusterTool",
    "broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
}


@pytest.fixture(scope="module")
def tools() -> KafkaTools:
    return kafka_tools()


@pytest.fixture(scope="module")
def address(tools: KafkaTools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    broker = KafkaBroker(tools, tmp_path_factory.mktemp("kafka"))
    broker.format()
    with broker.running() as address:
        for line in (
            "topics --create --topic orders --partitions 3 --config retention.ms=5000",
            "topics --create --topic plain",
            "topics --create --topic under_score --config cleanup.policy=compact --config segment.ms=90000",
            "configs --alter --broker 1 --add-config log.cleaner.threads=2",
            "configs --alter --client c --add-config producer_byte_rate=1000,request_percentage=2.5",
            "configs --alter --user u --client c --add-config consumer_byte_rate=7",
            "configs --alter --ip 1.2.3.4 --add-config connection_creation_rate=5",
            "configs --alter --client-metrics m --add-config interval.ms=1000,metrics=[a,b]",
            "configs --alter --group g --add-config consumer.session.timeout.ms=46000",
        ):
            tool, *words = line.split()
            assert run_tool(tool, "--bootstrap-server", address, *words).code == 0, line
        asyncio.run(produce(address))
        yield address


async def produce(address: str) -> None:
    """Records whose timestamps are not in the order of offsets."""
    async with Producer(bootstrap_servers=address, linger_ms=0) as producer:
        for time in (1000, 3000, 2000):
            await (await producer.send("plain", b"v", partition=0, timestamp_ms=time))


def command(line: str, address: str) -> tuple[str, list[str]]:
    tool, *words = line.split()
    # The tool with subcommands takes its options after the subcommand.
    first = [words.pop(0)] if tool == "cluster" and words else []
    return tool, [*first, "--bootstrap-server", address, *words]


def both(tools: KafkaTools, line: str, address: str) -> tuple[tuple[int, str, str], tuple[int, str, str]]:
    tool, words = command(line, address)
    theirs = tools.run(CLASSES[tool], words)
    ours = run_tool(tool, *words)
    return (theirs.returncode, theirs.stdout, theirs.stderr), (ours.code, ours.out, ours.err)


@pytest.mark.parametrize(
    "line",
    [
        "topics --list",
        "topics --list --topic ord.*|plain --exclude-internal",
        "topics --describe",
        "topics --describe --topic orders --partition-size-limit-per-response 1",
        "topics --describe --at-min-isr-partitions",
        "topics --describe --unavailable-partitions --under-replicated-partitions",
        "topics --describe --topics-with-overrides",
        "topics --describe --topic nowhere",
        "topics --describe --topic-id 8UFBlDBzRM2WGJual5ztlg",
        "topics --create --topic orders",
        "topics --create --topic orders --if-not-exists",
        "topics --create --topic x --config no.such=1",
        "topics --create --topic x --config retention.ms=abc",
        "topics --create --topic x --replication-factor 2",
        "topics --create --topic x --replica-assignment 1:2,1",
        "topics --create --topic x --partitions abc",
        "topics --alter --topic orders --partitions 2",
        "topics --delete --topic nowhere",
        "topics --delete --topic nowhere --if-exists",
        "configs --describe --topic orders",
        "configs --describe --topic orders --all",
        "configs --describe --topic gone",
        "configs --describe --entity-type topics",
        "configs --describe --entity-type brokers",
        "configs --describe --broker 1 --all",
        "configs --describe --broker 7",
        "configs --describe --broker-logger 1",
        "configs --describe --entity-type clients",
        "configs --describe --entity-type users --entity-type clients",
        "configs --describe --entity-type users",
        "configs --describe --entity-type ips",
        "configs --describe --entity-type client-metrics",
        "configs --describe --entity-type groups",
        "configs --describe --group g --all",
        "get-offsets",
        "get-offsets --topic orders --time earliest --partitions 0,2",
        "get-offsets --topic plain --time max-timestamp",
        "get-offsets --topic plain|orders --time 1001",
        "get-offsets --topic-partitions orders:1-3,:0",
        "log-dirs --describe --topic-list plain",
        "cluster cluster-id",
        "cluster list-endpoints --include-fenced-brokers",
        "broker-api-versions",
    ],
)
def test_both_tools_print_the_same(tools: KafkaTools, address: str, line: str) -> None:
    theirs, ours = both(tools, line, address)

    assert ours[0] == theirs[0]
    assert sorted(ours[1].splitlines()) == sorted(theirs[1].splitlines())


def test_both_print_the_same_log_directories(tools: KafkaTools, address: str) -> None:
    documents = []
    for _, out, _ in both(tools, "log-dirs --describe", address):
        document = json.loads(out.splitlines()[-1])
        for directory in document["brokers"][0]["logDirs"]:
            directory["partitions"].sort(key=lambda row: row["partition"])
        documents.append(document)

    assert documents[0] == documents[1]


@pytest.mark.parametrize(
    "line",
    [
        "topics --list --create --topic a",
        "topics --create",
        "topics --list --partitions 1",
        "topics --no-such-flag",
        "configs --describe",
        "configs --describe --entity-type nothing",
        "configs --describe --entity-type brokers --entity-type topics",
        "configs --describe --broker seven",
        "configs --alter --topic orders",
        "configs --alter --topic orders --add-config retention.ms",
        "configs --alter --client c --add-config foo=1",
        "configs --alter --client c --delete-config consumer_byte_rate",
        "get-offsets --time xyz",
        "get-offsets --topic orders --partitions 99",
        "get-offsets --topic a --topic-partitions a:0",
        "log-dirs --describe --broker-list 1,7",
        "log-dirs",
    ],
)
def test_errors_have_kafkas_messages(tools: KafkaTools, address: str, line: str) -> None:
    theirs, ours = both(tools, line, address)

    assert ours[:2] == theirs[:2] == (1, "")
    assert ours[2].splitlines()[0] == theirs[2].splitlines()[0]


@pytest.mark.parametrize(
    "line",
    [
        "configs --alter --topic orders --add-config retention.ms=abc",
        "configs --alter --topic gone --add-config retention.ms=1",
        "configs --alter --broker 1 --add-config node.id=2",
        "cluster unregister --id 7",
    ],
)
def test_the_reason_of_kafkas_stack_trace_is_printed(tools: KafkaTools, address: str, line: str) -> None:
    theirs, ours = both(tools, line, address)

    assert ours[:2] == theirs[:2] == (1, "")
    [reason] = re.findall(r"^Caused by: \S+Exception: (.*)$", theirs[2], re.MULTILINE)
    assert ours[2] == f"{reason}\n"


def test_changes_of_one_tool_are_shown_by_the_other(tools: KafkaTools, address: str) -> None:
    made = tools.run(CLASSES["topics"], ["--bootstrap-server", address, "--create", "--topic", "theirs"])
    grown = run_tool(
        "topics", "--bootstrap-server", address, "--alter", "--topic", "theirs", "--partitions", "2"
    )
    altered, ours_altered = both(
        tools, "configs --alter --topic theirs --add-config segment.ms=77777", address
    )
    deleted = run_tool("topics", "--bootstrap-server", address, "--delete", "--topic", "theirs")
    gone = tools.run(CLASSES["topics"], ["--bootstrap-server", address, "--list", "--topic", "theirs"])

    assert (made.returncode, made.stdout) == (0, "Created topic theirs.\n")
    assert (grown.code, grown.out, grown.err) == (0, "", "")
    assert altered == ours_altered == (0, "Completed updating config for topic theirs.\n", "")
    assert (deleted.code, deleted.out) == (0, "")
    assert gone.stdout == "\n"
