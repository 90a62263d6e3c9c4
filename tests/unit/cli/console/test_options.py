"""Options become settings as in Kafka's tools, and conflicts have Kafka's messages."""

import re
from pathlib import Path
from typing import Any

import pytest

from barnabas.base.errors import BarnabasError
from barnabas.cli import console_consumer, console_producer, consumer_perf_test
from barnabas.cli.main import main
from barnabas.cli.option_parser import Options, Parser

SERVER = ("--bootstrap-server", "localhost:9092")


def parsed(tool: Any, *words: str) -> Options:
    parser = Parser(prog="barnabas tool", description="")
    tool.arguments(parser)
    return parser.parse_args([*SERVER, *words])


def test_the_producer_lingers_and_retries_as_kafkas_console_does() -> None:
    settings = console_producer.producer_settings(parsed(console_producer, "--topic", "t"))

    assert settings == {
        "bootstrap.servers": "localhost:9092",
        "client.id": "console-producer",
        "linger.ms": 1000,
        "acks": "-1",
        "request.timeout.ms": 1500,
        "retries": 3,
        "retry.backoff.ms": 100,
        "send.buffer.bytes": 102_400,
        "buffer.memory": 33_554_432,
        "batch.size": 16_384,
        "metadata.max.age.ms": 300_000,
        "max.block.ms": 60_000,
    }


def test_an_option_wins_over_a_property_and_a_property_over_a_file(tmp_path: Path) -> None:
    file = tmp_path / "producer.properties"
    file.write_text("linger.ms=1\nretries=7\nacks=1\nkey.serializer=org.example.Mine\n")
    words = ["--command-config", str(file), "--command-property", "retries=8", "--request-required-acks", "0"]

    settings = console_producer.producer_settings(parsed(console_producer, "--topic", "t", *words))

    assert (settings["linger.ms"], settings["retries"], settings["acks"]) == ("1", "8", "0")
    assert "key.serializer" not in settings


@pytest.mark.parametrize(
    ("words", "codec"),
    [
        ([], None),
        (["--compression-codec"], "gzip"),
        (["--compression-codec", "zstd"], "zstd"),
        (["--command-property", "compression.type=lz4"], "lz4"),
        (["--command-property", "compression.type=lz4", "--compression-codec=none"], "none"),
    ],
)
def test_a_codec_without_a_name_is_gzip(words: list[str], codec: str | None) -> None:
    settings = console_producer.producer_settings(parsed(console_producer, "--topic", "t", *words))

    assert settings.get("compression.type") == codec


def test_the_old_name_of_the_batch_size_wins() -> None:
    words = ["--batch-size", "1", "--max-partition-memory-bytes", "2"]

    settings = console_producer.producer_settings(parsed(console_producer, "--topic", "t", *words))

    assert settings["batch.size"] == 2


def test_the_consumer_starts_at_the_log_end_by_default() -> None:
    latest = console_consumer.consumer_settings(parsed(console_consumer, "--topic", "t"))
    earliest = console_consumer.consumer_settings(
        parsed(console_consumer, "--topic", "t", "--from-beginning")
    )

    assert latest == {
        "bootstrap.servers": "localhost:9092",
        "client.id": "console-consumer",
        "auto.offset.reset": "latest",
        "isolation.level": "read_uncommitted",
    }
    assert earliest["auto.offset.reset"] == "earliest"


def test_the_group_may_be_named_in_several_places_if_it_is_the_same(tmp_path: Path) -> None:
    file = tmp_path / "consumer.properties"
    file.write_text("group.id=g\n")
    places = [["--group", "g"], ["--command-config", str(file)], ["--command-property", "group.id=g"]]

    for words in (*places, [word for place in places for word in place]):
        settings = console_consumer.consumer_settings(parsed(console_consumer, "--topic", "t", *words))

        # Without the option, the consumer's default of enable.auto.commit applies.
        assert (settings["group.id"], settings.get("enable.auto.commit")) == ("g", None)


@pytest.mark.parametrize(("said", "made_up"), [("true", True), ("TRUE", True), ("false", False)])
def test_a_random_group_is_used_only_to_commit(said: str, made_up: bool) -> None:
    words = ["--topic", "t", "--command-property", f"enable.auto.commit={said}"]

    settings = console_consumer.consumer_settings(parsed(console_consumer, *words))

    group = str(settings.get("group.id"))
    assert bool(re.fullmatch("console-consumer-[0-9]{1,5}", group)) == made_up


def test_auto_commit_of_a_given_group_can_be_disabled() -> None:
    words = ["--topic", "t", "--group", "g", "--command-property", "enable.auto.commit=false"]

    settings = console_consumer.consumer_settings(parsed(console_consumer, *words))

    assert (settings["group.id"], settings["enable.auto.commit"]) == ("g", "false")


def test_the_perf_consumer_takes_its_group_only_from_the_command_line() -> None:
    words = ["--topic", "t", "--num-records", "1", "--command-property", "group.id=other"]

    made_up = consumer_perf_test.consumer_settings(parsed(consumer_perf_test, *words))
    given = consumer_perf_test.consumer_settings(parsed(consumer_perf_test, *words, "--group", "g"))

    assert re.fullmatch("perf-consumer-[0-9]{1,5}", str(made_up["group.id"]))
    assert given["group.id"] == "g"


def test_the_perf_consumer_starts_at_the_earliest_record() -> None:
    words = ["--topic", "t", "--num-records", "1", "--group", "g"]

    settings = consumer_perf_test.consumer_settings(parsed(consumer_perf_test, *words))

    assert settings == {
        "bootstrap.servers": "localhost:9092",
        "client.id": "perf-consumer-client",
        "group.id": "g",
        "auto.offset.reset": "earliest",
        "receive.buffer.bytes": 2_097_152,
        "max.partition.fetch.bytes": 1_048_576,
        "check.crcs": "false",
    }


REFUSED = [
    ("console-producer", [], 'Missing required argument "[topic]"'),
    (
        "console-producer",
        ["--topic", "t", "--property", "a=b", "--reader-property", "a=b"],
        "Options --reader-property and --property cannot be specified together.",
    ),
    ("console-consumer", [], "Exactly one of the following arguments is required: [topic], [include]"),
    (
        "console-consumer",
        ["--topic", "t", "--include", "t"],
        "Exactly one of the following arguments is required: [topic], [include]",
    ),
    (
        "console-consumer",
        ["--include", "t", "--partition", "0"],
        "The topic is required when partition is specified.",
    ),
    (
        "console-consumer",
        ["--topic", "t", "--offset", "3"],
        "The partition is required when offset is specified.",
    ),
    (
        "console-consumer",
        ["--topic", "t", "--partition", "0", "--offset", "3", "--from-beginning"],
        "Options from-beginning and offset cannot be specified together.",
    ),
    (
        "console-consumer",
        ["--topic", "t", "--partition", "0", "--offset", "-5"],
        "The provided offset value '-5' is incorrect. "
        "Valid values are 'earliest', 'latest', or a non-negative long.",
    ),
    (
        "console-consumer",
        ["--topic", "t", "--partition", "0", "--group", "g"],
        "Options group and partition cannot be specified together.",
    ),
    (
        "console-consumer",
        ["--topic", "t", "--partition", "0", "--command-property", "group.id=g"],
        "Options group and partition cannot be specified together.",
    ),
    (
        "console-consumer",
        ["--topic", "t", "--group", "g", "--command-property", "group.id=h"],
        "The group ids provided in different places (directly using '--group', via '--consumer-property', or "
        "via '--consumer.config') do not match. Detected group ids: 'g', 'h'",
    ),
    (
        "console-consumer",
        ["--topic", "t", "--formatter", "com.example.Mine"],
        "--formatter com.example.Mine: cannot load Java classes",
    ),
    (
        "consumer-perf-test",
        ["--topic", "t"],
        "Exactly one of the following arguments is required: [messages], [num-records]",
    ),
    (
        "consumer-perf-test",
        ["--topic", "t", "--num-records", "1", "--consumer.config", "a", "--command-config", "b"],
        'Option "[consumer.config]" can\'t be used with option "[command-config]"',
    ),
]


@pytest.mark.parametrize(("tool", "words", "why"), REFUSED)
def test_invalid_options_are_rejected_with_kafkas_messages_and_the_usage(
    tool: str, words: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([tool, *SERVER, *words])

    told = capsys.readouterr()
    assert ended.value.code == 1
    assert told.out == ""
    assert told.err.startswith(f"{why}\n")
    assert "--bootstrap-server" in told.err


FAILED = [
    (
        "console-consumer",
        ["--topic", "t", "--group", ""],
        "group.id=: must be a name",
    ),
    (
        "consumer-perf-test",
        ["--include", "[", "--num-records", "1"],
        "--include [ is not a valid regular expression: unterminated character set at position 0",
    ),
    (
        "console-consumer",
        ["--topic", "t", "--from-beginning", "--command-property", "auto.offset.reset=latest"],
        "Can't simultaneously specify --from-beginning and 'auto.offset.reset=latest', "
        "please remove one option",
    ),
    (
        "console-consumer",
        ["--include", "["],
        "--include [ is not a valid regular expression: unterminated character set at position 0",
    ),
    (
        "console-producer",
        ["--topic", "t", "--line-reader", "com.example.Mine"],
        "--line-reader com.example.Mine: cannot load Java classes",
    ),
    (
        "console-producer",
        ["--topic", "t", "--command-config", "/no/such/file"],
        "/no/such/file: No such file or directory",
    ),
    (
        "consumer-perf-test",
        ["--topic", "t", "--num-records", "1", "--reporting-interval", "0"],
        "Reporting interval must be greater than 0.",
    ),
    (
        "consumer-perf-test",
        ["--topic", "t", "--num-records", "1", "--print-metrics"],
        "--print-metrics is not supported: this client has no metrics",
    ),
    (
        "consumer-perf-test",
        ["--topic", "t", "--num-records", "1", "--date-format", "b"],
        "Illegal pattern character 'b'",
    ),
]


@pytest.mark.parametrize(("tool", "words", "why"), FAILED)
def test_an_unsupported_option_or_missing_file_is_one_line(
    tool: str, words: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main([tool, *SERVER, *words])

    told = capsys.readouterr()
    assert code == 1
    assert (told.out, told.err) == ("", f"barnabas {tool}: {why}\n")


def test_a_bootstrap_server_must_have_a_port(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["console-producer", "--topic", "t", "--bootstrap-server", "localhost"])

    assert capsys.readouterr().err.startswith("Please provide valid host:port like host1:9091,host2:9092\n\n")


def test_an_invalid_property_is_named() -> None:
    words = ["--topic", "t", "--reader-property", "null.marker=,"]
    with pytest.raises(BarnabasError, match=r"null\.marker and headers\.separator may not be equal"):
        console_producer.line_reader(parsed(console_producer, *words))
