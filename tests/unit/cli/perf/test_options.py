"""producer-perf-test has the habits of argparse, and Kafka's words for what cannot be."""

from pathlib import Path

import pytest

from barnabas.cli.main import main

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
def test_what_cannot_be_is_refused_with_the_usage(
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
    (["--transactional-id", "x"], "--transactional-id: transactions are not served yet"),
    (["--transaction-duration-ms", "1"], "--transaction-duration-ms: transactions are not served yet"),
    (["--command-property", "transactional.id=x"], "transactional.id: transactions are not served yet"),
    (["--print-metrics"], "--print-metrics: the client has no metrics yet"),
    (["--command-property", "linger.ms"], "Invalid property: linger.ms"),
]


@pytest.mark.parametrize(("words", "why"), FAILED)
def test_what_is_not_built_is_told_in_one_line(
    words: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["producer-perf-test", *NEEDED, *SERVER, "--record-size", "1", *words])

    assert code == 1
    assert capsys.readouterr().err == f"barnabas producer-perf-test: {why}\n"


def test_without_a_word_the_help_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["producer-perf-test"])

    assert ended.value.code == 0
    assert "--payload-monotonic" in capsys.readouterr().out


def test_a_file_without_payloads_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = tmp_path / "missing"

    code = main(["producer-perf-test", *NEEDED, *SERVER, "--payload-file", str(missing)])

    told = capsys.readouterr()
    assert code == 1
    assert told.out == f"Reading payloads from: {missing}\n"
    assert told.err == "barnabas producer-perf-test: File does not exist or empty file provided.\n"
