"""`barnabas topics` against our broker: output and exit codes of kafka-topics.sh."""

import json
from pathlib import Path

import pytest

from support.process.ports import free_port
from support.process.processes import Ended, run_to_end
from support.process.tool_runs import Tools, run_tool, without_ids

FAILED = "Error while executing topic command : "
PARTITION = "\tTopic: {}\tPartition: {}\tLeader: 1\tReplicas: 1\tIsr: 1\tElr: \tLastKnownElr: "


def topics(tool: Tools, line: str) -> Ended:
    return tool("topics", *line.split())


def make(tool: Tools, name: str, *words: str) -> None:
    ended = tool("topics", "--create", "--topic", name, *words)
    assert ended == Ended(0, f"Created topic {name}.\n", "")


def test_a_topic_is_created_listed_described_altered_and_deleted(tool: Tools) -> None:
    make(tool, "orders", "--partitions", "2", "--config", "retention.ms=5000")

    assert topics(tool, "--list") == Ended(0, "orders\n", "")
    described = topics(tool, "--describe --topic orders")
    assert (described.code, described.err) == (0, "")
    assert without_ids(described.out).splitlines() == [
        "Topic: orders\tTopicId: ID\tPartitionCount: 2\tReplicationFactor: 1"
        "\tConfigs: min.insync.replicas=1,retention.ms=5000",
        PARTITION.format("orders", 0),
        PARTITION.format("orders", 1),
    ]
    assert topics(tool, "--alter --topic orders --partitions 3") == Ended(0, "", "")
    assert PARTITION.format("orders", 2) in topics(tool, "--describe").out
    assert topics(tool, "--delete --topic orders") == Ended(0, "", "")
    assert topics(tool, "--list") == Ended(0, "\n", "")


def test_patterns_select_topics_in_the_order_of_names(tool: Tools) -> None:
    for name in ("plain", "orders", "other"):
        make(tool, name)

    assert topics(tool, "--list --topic o.*").out == "orders\nother\n"
    assert topics(tool, "--list --topic plain,orders").out == "orders\nplain\n"
    assert topics(tool, "--alter --topic o.* --partitions 2") == Ended(0, "", "")
    assert topics(tool, "--delete --topic o.*") == Ended(0, "", "")
    assert topics(tool, "--list").out == "plain\n"


def test_replicas_can_be_assigned_to_new_partitions(tool: Tools) -> None:
    make(tool, "orders", "--replica-assignment", "1,1")

    assert topics(tool, "--alter --topic orders --partitions 3 --replica-assignment 1,1,1").code == 0
    assert "\tPartitionCount: 3\t" in topics(tool, "--describe --topic orders").out


def test_filters_omit_healthy_partitions(tool: Tools) -> None:
    make(tool, "orders")

    for healthy in ("under-replicated", "unavailable", "under-min-isr"):
        assert topics(tool, f"--describe --{healthy}-partitions") == Ended(0, "", "")
    assert topics(tool, "--describe --at-min-isr-partitions").out == f"{PARTITION.format('orders', 0)}\n"
    overridden = topics(tool, "--describe --topics-with-overrides").out
    assert without_ids(overridden) == (
        "Topic: orders\tTopicId: ID\tPartitionCount: 1\tReplicationFactor: 1"
        "\tConfigs: min.insync.replicas=1\n"
    )


def test_a_topic_is_described_by_its_id(tool: Tools) -> None:
    make(tool, "orders")
    make(tool, "plain")
    [listed] = json.loads(topics(tool, "--list --topic orders --json").out)["topics"]

    by_id = topics(tool, f"--describe --topic-id {listed['topicId']}")

    # A Metadata response, which is used for ids, has no eligible leader replicas.
    assert by_id.out.splitlines()[0].startswith(f"Topic: orders\tTopicId: {listed['topicId']}\t")
    assert by_id.out.endswith("\tElr: N/A\tLastKnownElr: N/A\n")
    missing = topics(tool, "--describe --topic-id 8UFBlDBzRM2WGJual5ztlg")
    assert missing == Ended(1, f"{FAILED}TopicId '8UFBlDBzRM2WGJual5ztlg' does not exist as expected\n", "")


@pytest.mark.parametrize("limit", [1, 2000])
def test_partitions_are_described_in_pages(tool: Tools, limit: int) -> None:
    make(tool, "orders", "--partitions", "5")

    out = topics(tool, f"--describe --partition-size-limit-per-response {limit}").out

    assert out.splitlines()[1:] == [PARTITION.format("orders", number) for number in range(5)]


def test_json_is_one_document_for_each_action(tool: Tools) -> None:
    made = json.loads(topics(tool, "--create --topic orders --partitions 2 --json").out)
    again = json.loads(topics(tool, "--create --topic orders --if-not-exists --json").out)
    listed = json.loads(topics(tool, "--list --json").out)
    described = json.loads(topics(tool, "--describe --json").out)
    altered = json.loads(topics(tool, "--alter --topic orders --partitions 3 --json").out)
    deleted = json.loads(topics(tool, "--delete --topic orders --json").out)

    topic_id = made["topicId"]
    assert made == {
        "topic": "orders",
        "created": True,
        "topicId": topic_id,
        "partitionCount": 2,
        "replicationFactor": 1,
    }
    assert again == {"topic": "orders", "created": False}
    assert listed == {
        "topics": [{"topic": "orders", "topicId": topic_id, "internal": False, "partitionCount": 2}]
    }
    [topic] = described["topics"]
    assert (topic["topicId"], topic["configs"]) == (topic_id, {"min.insync.replicas": "1"})
    assert topic["partitions"][1] == {
        "partition": 1,
        "leader": 1,
        "leaderEpoch": 0,
        "replicas": [1],
        "isr": [1],
        "elr": [],
        "lastKnownElr": [],
    }
    assert altered == {"altered": ["orders"], "partitionCount": 3}
    assert deleted == {"deleted": ["orders"]}


def test_an_error_is_not_printed_into_the_json(tool: Tools) -> None:
    assert topics(tool, "--describe --topic nowhere --json") == Ended(
        1, "", f"{FAILED}Topic 'nowhere' does not exist as expected\n"
    )


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("--describe --topic nowhere", "Topic 'nowhere' does not exist as expected"),
        ("--delete --topic nowhere", "Topic 'nowhere' does not exist as expected"),
        ("--alter --topic nowhere --partitions 2", "Topic 'nowhere' does not exist as expected"),
        ("--create --topic orders", "Topic 'orders' already exists."),
        ("--alter --topic orders --partitions 2", "Topic already has 2 partition(s)."),
        (
            "--alter --topic orders --partitions 1",
            "The topic orders currently has 2 partition(s); 1 would not be an increase.",
        ),
        ("--create --topic x --config no.such=1", "Unknown topic config name: no.such"),
        (
            "--create --topic x --config retention.ms=abc",
            "Invalid value abc for configuration retention.ms: Not a number of type LONG",
        ),
        ("--create --topic x --partitions 0", "The partitions must be greater than 0"),
        (
            "--create --topic x --replication-factor 0",
            "The replication factor must be between 1 and 32767 inclusive",
        ),
        (
            "--create --topic or/ders",
            "Topic name is invalid: 'or/ders' contains one or more characters other than ASCII alphanumerics,"
            " '.', '_' and '-'",
        ),
        (
            "--create --topic x --replica-assignment 9",
            "The manual partition assignment includes broker 9, but no such broker is registered.",
        ),
        ("--create --topic x --partitions abc", "Cannot parse argument 'abc' of option partitions"),
        (
            "--create --topic x --topic y",
            "Found multiple arguments for option topic, but you asked for only one",
        ),
        ("--list --topic or[d", "or[d is an invalid regex."),
    ],
)
def test_an_error_is_one_line_with_kafkas_message(tool: Tools, line: str, why: str) -> None:
    make(tool, "orders", "--partitions", "2")

    assert topics(tool, line) == Ended(1, f"{FAILED}{why}\n", "")


@pytest.mark.parametrize("action", ["--describe", "--delete", "--alter --partitions 2"])
def test_with_if_exists_a_missing_topic_is_not_an_error(tool: Tools, action: str) -> None:
    assert topics(tool, f"{action} --topic nowhere --if-exists") == Ended(0, "", "")


def test_with_if_not_exists_an_existing_topic_is_not_an_error(tool: Tools) -> None:
    make(tool, "orders")

    assert topics(tool, "--create --topic orders --if-not-exists") == Ended(0, "", "")


def test_colliding_metric_names_print_a_warning(tool: Tools) -> None:
    assert topics(tool, "--create --topic a_b") == Ended(
        0,
        "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') could"
        " collide. To avoid issues it is best to use either, but not both.\nCreated topic a_b.\n",
        "",
    )


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("--create --topic a", "--bootstrap-server must be specified"),
        (
            "--bootstrap-server x:1 --create --list --topic a",
            "Command must include exactly one action: --list, --describe, --create, --alter or --delete",
        ),
        ("--bootstrap-server x:1 --create", 'Missing required argument "[topic]"'),
        ("--bootstrap-server x:1 --alter --topic a", 'Missing required argument "[partitions]"'),
        (
            "--bootstrap-server x:1 --list --partitions 1",
            'Option "[partitions]" can\'t be used with option "[list]"',
        ),
        (
            "--bootstrap-server x:1 --create --topic a --partitions 1 --replica-assignment 1",
            'Option "[replica-assignment]" can\'t be used with option "[partitions]"',
        ),
        (
            "--bootstrap-server x:1 --alter --topic a --partitions 2 --config a=b",
            'Option combination "[[config], [bootstrap-server]]" can\'t be used with option "[alter]"'
            " (To alter topic configurations, the kafka-configs tool can be used.)",
        ),
        (
            "--bootstrap-server x:1 --describe --if-exists",
            "--topic or --topic-id is required to describe a topic",
        ),
        (
            "--bootstrap-server x:1 --describe --topics-with-overrides --unavailable-partitions",
            'Option "[unavailable-partitions]" can\'t be used with option "[topics-with-overrides]"',
        ),
        ("--no-such-flag", "no-such-flag is not a recognized option"),
    ],
)
def test_misuse_is_reported_on_stderr_before_any_request(line: str, why: str) -> None:
    ended = run_tool("topics", *line.split())

    assert (ended.code, ended.out) == (1, "")
    assert ended.err.splitlines()[0] == why


def test_delete_config_prints_kafkas_warning(tool: Tools) -> None:
    ended = topics(tool, "--list --delete-config a")

    assert (ended.code, ended.out) == (0, "\n")
    assert ended.err.startswith(
        "delete-config option is no longer supported and deprecated since version 4.0."
    )


def test_an_unreachable_broker_is_reported_at_once_and_at_the_timeout(tmp_path: Path) -> None:
    settings = tmp_path / "client.properties"
    settings.write_text("default.api.timeout.ms=300\n")
    address = f"127.0.0.1:{free_port()}"

    ended = run_to_end(
        tmp_path / "err", "topics", "--bootstrap-server", address, "--command-config", str(settings), "--list"
    )

    at_once = f"no broker at {address}: Connection refused; retrying\n"
    assert (ended.code, ended.err) == (1, at_once)
    assert ended.out.startswith(f"{FAILED}no broker at {address}: ")
    assert ended.out.count("\n") == 1


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("no.such.setting=1\n", "no.such.setting=1"),
        ("request.timeout.ms=soon\n", "request.timeout.ms=soon"),
        ("sasl.mechanism=PLAIN\n", "TLS and SASL are not supported yet"),
        ("a=\\u00zz\n", "client.properties: "),
    ],
)
def test_an_invalid_properties_file_is_rejected(tool: Tools, tmp_path: Path, content: str, why: str) -> None:
    path = tmp_path / "client.properties"
    path.write_text(content)

    ended = topics(tool, f"--list --command-config {path}")

    assert (ended.code, ended.err) == (1, "")
    assert ended.out.startswith(FAILED)
    assert why in ended.out


def test_an_invalid_address_is_rejected() -> None:
    ended = run_tool("topics", "--bootstrap-server", "nohost", "--list")

    assert (ended.code, ended.out) == (1, f"{FAILED}bootstrap.servers=nohost: must be HOST:PORT\n")


def test_settings_of_other_clients_in_a_shared_file_are_ignored_with_a_note(
    tool: Tools, tmp_path: Path
) -> None:
    path = tmp_path / "client.properties"
    path.write_text("acks=all\ngroup.id=g\nkey.deserializer=X\nrequest.timeout.ms=5000\n")

    ended = topics(tool, f"--list --command-config {path}")

    assert (ended.code, ended.out) == (0, "\n")
    assert ended.err.splitlines() == [
        f"{path}: {name} is a producer or consumer setting; ignored"
        for name in ("acks", "group.id", "key.deserializer")
    ]
