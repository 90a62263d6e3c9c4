"""producer-perf-test parses options like argparse, with Kafka's messages for invalid ones."""

from pathlib import Path

import pytest

from barnabas.base.ids import parse_uuid
from barnabas.cli.main import main
from barnabas.cli.producer_perf_test import Parser, arguments, producer_settings, transaction_duration_ms

NEEDED = ("--topic", "t", "--throughput", "-1", "--num-records", "10")
SERVER = ("--bootstrap-server", "localhost:9092")

REFUSED = [
    ([*NEEDED, *SERVER], "one of the arguments --record-size --payload-file --payload-monotonic is required"),
    (
        [*NEEDED, "--record-size", "1"],
        "At least one of --bootstrap-server, --command-property, --producer-props, --producer.config or "
        "--command-config must be specified.",
    ),
    ([*NEEDED, *SERVER, "--record-size", "0"], "--record-size should be greater than zero."),
    (
        [*NEEDED, *SERVER, "--record-size", "1", "--warmup-records", "10"],
        "The value for --warmup-records must be strictly fewer than the number of records in the test, "
        "--num-records.",
    ),
    (
        [*NEEDED, *SERVER, "--record-size", "1", "--reporting-interval", "0"],
        "--reporting-interval should be greater than zero.",
    ),
    (
        [*NEEDED, *SERVER, "--record-size", "1", "--transaction-duration-ms", "0"],
        "--transaction-duration-ms should be greater than zero.",
    ),
    (
        [*NEEDED, "--record-size", "1", "--producer-props", "a=b", "--command-property", "a=b"],
        "--command-property and --producer-props cannot be specified together.",
    ),
    (
        [*NEEDED, *SERVER, "--record-size", "1", "--throughput", "0"],
        "--throughput should be greater than zero, or -1 for no limit.",
    ),
    ([*NEEDED, *SERVER, "--no-such-flag"], "unrecognized arguments: --no-such-flag"),
]


@pytest.mark.parametrize(("words", "why"), REFUSED)
def test_invalid_options_are_rejected_with_the_usage(
    words: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if "--no-such-flag" in words:
        words = [*words, "--record-size", "1"]
    with pytest.raises(SystemExit) as ended:
        main(["producer-perf-test", *words])

    told = capsys.readouterr()
    assert ended.value.code == 1
    assert told.out == ""
    assert told.err.startswith("usage: barnabas producer-perf-test")
    assert told.err.endswith(f"barnabas producer-perf-test: error: {why}\n")


FAILED = [
    (["--print-metrics"], "--print-metrics is not supported: this client has no metrics"),
    (["--command-property", "linger.ms"], "Invalid property: linger.ms"),
]


@pytest.mark.parametrize(("words", "why"), FAILED)
def test_an_unsupported_option_is_one_line(
    words: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["producer-perf-test", *NEEDED, *SERVER, "--record-size", "1", *words])

    assert code == 1
    assert capsys.readouterr().err == f"barnabas producer-perf-test: {why}\n"


def test_an_empty_command_line_prints_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["producer-perf-test"])

    assert ended.value.code == 0
    assert "--payload-monotonic" in capsys.readouterr().out


def test_a_file_without_payloads_is_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = tmp_path / "missing"

    code = main(["producer-perf-test", *NEEDED, *SERVER, "--payload-file", str(missing)])

    told = capsys.readouterr()
    assert code == 1
    assert told.out == f"Reading payloads from: {missing}\n"
    assert told.err == "barnabas producer-perf-test: File does not exist or empty file provided.\n"


def transactions_of(*words: str) -> tuple[object, int | None]:
    """Return the transactional id and the transaction duration."""
    parser = Parser()
    arguments(parser)
    options = parser.parse_args([*NEEDED, *SERVER, "--record-size", "1", *words])
    settings = producer_settings(options)
    return settings.get("transactional.id"), transaction_duration_ms(options, settings)


def test_without_an_id_and_a_duration_there_are_no_transactions() -> None:
    assert transactions_of() == (None, None)


def test_an_id_alone_means_transactions_of_three_seconds(tmp_path: Path) -> None:
    file = tmp_path / "producer.properties"
    file.write_text("transactional.id=of-the-file\n")

    assert transactions_of("--transactional-id", "x") == ("x", 3000)
    assert transactions_of("--command-property", "transactional.id=x") == ("x", 3000)
    assert transactions_of("--producer-props", "transactional.id=x") == ("x", 3000)
    assert transactions_of("--command-config", str(file)) == ("of-the-file", 3000)


def test_a_duration_alone_generates_a_unique_id() -> None:
    made = [transactions_of("--transaction-duration-ms", "20") for _ in range(2)]

    (first, duration_ms), (second, _) = made
    assert isinstance(first, str)
    prefix, dash, uuid = first.partition("performance-producer-")
    assert (prefix, dash, len(parse_uuid(uuid))) == ("", "performance-producer-", 16)
    assert duration_ms == 20
    assert first != second


def test_the_option_overrides_the_setting_and_a_duration_applies_to_both() -> None:
    setting = ("--command-property", "transactional.id=setting")
    duration = ("--transaction-duration-ms", "7")

    assert transactions_of(*setting, "--transactional-id", "option") == ("option", 3000)
    assert transactions_of(*setting, *duration) == ("setting", 7)
    assert transactions_of(*setting, *duration, "--transactional-id", "option") == ("option", 7)
