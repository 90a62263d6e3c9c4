"""`barnabas configs` against our broker: output and exit codes of kafka-configs.sh."""

import json
from pathlib import Path

import pytest

from support.process.processes import Ended
from support.process.tool_runs import Tools, run_tool

RETENTION = "  retention.ms=1000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=1000}\n"
POLICY = (
    "  cleanup.policy=compact,delete sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:cleanup.policy="
    "compact,delete, DEFAULT_CONFIG:log.cleanup.policy=delete}\n"
)


def configs(tool: Tools, line: str) -> Ended:
    return tool("configs", *line.split())


@pytest.fixture(autouse=True)
def _orders(tool: Tools) -> None:
    assert tool("topics", "--create", "--topic", "orders").code == 0


def test_topic_settings_are_added_described_and_removed(tool: Tools) -> None:
    done = Ended(0, "Completed updating config for topic orders.\n", "")

    assert configs(tool, "--describe --topic orders").out == "Dynamic configs for topic orders are:\n"
    added = configs(
        tool, "--alter --topic orders --add-config retention.ms=1000,cleanup.policy=[compact,delete]"
    )
    assert added == done
    assert configs(tool, "--describe --entity-type topics --entity-name orders") == Ended(
        0, f"Dynamic configs for topic orders are:\n{POLICY}{RETENTION}", ""
    )
    assert configs(tool, "--alter --topic orders --delete-config cleanup.policy") == done
    assert (
        configs(tool, "--describe --topic orders").out
        == f"Dynamic configs for topic orders are:\n{RETENTION}"
    )


def test_all_describes_all_settings(tool: Tools) -> None:
    head, *lines = configs(tool, "--describe --topic orders --all").out.splitlines()

    assert head == "All configs for topic orders are:"
    assert lines == sorted(lines)
    assert "  retention.bytes=-1 sensitive=false synonyms={DEFAULT_CONFIG:log.retention.bytes=-1}" in lines


def test_topics_are_described_in_the_order_of_names(tool: Tools) -> None:
    assert tool("topics", "--create", "--topic", "a", "--config", "retention.ms=1000").code == 0

    assert configs(tool, "--describe --entity-type topics").out == (
        f"Dynamic configs for topic a are:\n{RETENTION}Dynamic configs for topic orders are:\n"
    )


def test_settings_come_from_a_file_too(tool: Tools, tmp_path: Path) -> None:
    path = tmp_path / "add.properties"
    path.write_text("retention.ms=1000\n")

    assert configs(tool, f"--alter --topic orders --add-config-file {path}").code == 0
    assert configs(tool, "--describe --topic orders").out.endswith(RETENTION)


def test_settings_of_one_broker_and_of_all_are_distinguished(tool: Tools) -> None:
    own = configs(tool, "--alter --broker 1 --add-config background.threads=5")
    of_all = configs(
        tool, "--alter --entity-type brokers --entity-default --add-config log.retention.ms=86400000"
    )
    told = configs(tool, "--describe --entity-type brokers")
    removed = [
        configs(tool, "--alter --broker 1 --delete-config background.threads").code,
        configs(tool, "--alter --broker-defaults --delete-config log.retention.ms").code,
    ]

    assert own == Ended(0, "Completed updating config for broker 1.\n", "")
    assert of_all == Ended(0, "Completed updating default config for brokers in the cluster.\n", "")
    assert told.out.splitlines() == [
        "Dynamic configs for broker 1 are:",
        "  background.threads=5 sensitive=false synonyms={DYNAMIC_BROKER_CONFIG:background.threads=5,"
        " DEFAULT_CONFIG:background.threads=10}",
        "Default configs for brokers in the cluster are:",
        "  log.retention.ms=86400000 sensitive=false"
        " synonyms={DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=86400000}",
        "  min.insync.replicas=1 sensitive=false"
        " synonyms={DYNAMIC_DEFAULT_BROKER_CONFIG:min.insync.replicas=1}",
    ]
    assert removed == [0, 0]


def test_json_is_one_document(tool: Tools) -> None:
    altered = configs(tool, "--alter --topic orders --add-config retention.ms=1000 --json")
    told = configs(tool, "--describe --topic orders --json")

    assert json.loads(altered.out) == {"altered": {"topics": "orders"}}
    assert json.loads(told.out) == {
        "entities": [
            {
                "type": "topics",
                "name": "orders",
                "configs": [
                    {
                        "name": "retention.ms",
                        "value": "1000",
                        "source": "DYNAMIC_TOPIC_CONFIG",
                        "sensitive": False,
                        "readOnly": False,
                        "synonyms": [
                            {"name": "retention.ms", "value": "1000", "source": "DYNAMIC_TOPIC_CONFIG"}
                        ],
                    }
                ],
            }
        ]
    }
    assert json.loads(configs(tool, "--describe --topic gone --json").out) == {"entities": []}


@pytest.mark.parametrize(("entity", "name"), [("topic", "gone"), ("broker", "7")])
def test_a_missing_entity_has_no_settings_and_is_not_an_error(tool: Tools, entity: str, name: str) -> None:
    assert configs(tool, f"--describe --{entity} {name}") == Ended(
        0, f"The {entity} '{name}' doesn't exist and doesn't have dynamic config.\n", ""
    )


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (
            "--alter --topic orders --add-config retention.ms=abc",
            "Invalid value abc for configuration retention.ms: Not a number of type LONG",
        ),
        ("--alter --topic orders --add-config no.such=1", "Unknown topic config name: no.such"),
        # The message is our broker's, which may differ from Kafka's.
        ("--alter --topic gone --add-config retention.ms=1", "The topic 'gone' does not exist."),
        (
            "--alter --broker 1 --add-config node.id=2",
            "node.id=2: cannot be changed while the broker runs; set it in its properties file",
        ),
        (
            "--alter --topic orders --add-config retention.ms",
            "requirement failed: Invalid entity config: all configs to be added must be in the format"
            ' "key=val" or  "key=[val1,val2]" to group values which contain commas.',
        ),
        (
            "--alter --client c --add-config foo=1",
            "Only quota configs can be added for 'clients' using --bootstrap-server."
            " Unexpected config names: Set(foo)",
        ),
        (
            "--alter --client c --add-config producer_byte_rate=abc",
            "Cannot parse quota configuration value for producer_byte_rate: abc",
        ),
        (
            "--alter --ip 1.2.3.4 --add-config foo=1",
            "Only connection quota configs can be added for 'ips' using --bootstrap-server."
            " Unexpected config names: foo",
        ),
        (
            "--alter --user u --add-config SCRAM-SHA-256=[password=x]",
            "SCRAM credentials cannot be changed yet: authentication is not built",
        ),
    ],
)
def test_an_error_response_is_one_line_with_kafkas_message(tool: Tools, line: str, why: str) -> None:
    assert configs(tool, line) == Ended(1, "", f"{why}\n")


@pytest.mark.parametrize(
    ("line", "api"),
    [
        ("--describe --entity-type clients", "DESCRIBE_CLIENT_QUOTAS"),
        ("--alter --client c --add-config producer_byte_rate=1", "ALTER_CLIENT_QUOTAS"),
    ],
)
def test_an_unsupported_api_is_named(tool: Tools, line: str, api: str) -> None:
    assert configs(tool, line) == Ended(
        1, "", f"{tool.address} does not support {api}: the broker does not list it in ApiVersions\n"
    )


def test_bootstrap_controller_is_not_supported() -> None:
    ended = run_tool("configs", "--bootstrap-controller", "127.0.0.1:1", "--describe", "--topic", "orders")

    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("--bootstrap-controller is not supported: this client connects to brokers")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("--describe --alter --topic t", "Command must include exactly one action: --describe, --alter"),
        ("--topic t", "Command must include exactly one action: --describe, --alter"),
        (
            "--describe --topic t --add-config a=1",
            'Option "[describe]" can\'t be used with option "[add-config]"',
        ),
        ("--describe", "At least one entity type must be specified"),
        ("--alter --topic t", "At least one of --add-config, --add-config-file, or --delete-config must be"),
        (
            "--alter --topic t --add-config a=1 --add-config b=2",
            "Found multiple arguments for option add-config, but you asked for only one",
        ),
    ],
)
def test_misuse_is_reported_before_any_request(line: str, why: str) -> None:
    ended = run_tool("configs", "--bootstrap-server", "x:1", *line.split())

    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith(why)
