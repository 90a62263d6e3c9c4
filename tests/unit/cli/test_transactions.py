"""Option checks of `barnabas transactions`, with Kafka's messages where it has any."""

import pytest

from barnabas.cli.transactions import short
from support.process.processes import Ended
from support.process.tool_runs import run_tool

NOWHERE = "127.0.0.1:1"
NOT_IDENTIFIED = (
    "The transaction to abort must be identified either with --start-offset (for brokers on 3.0 or above) or"
    " with --producer-id, --producer-epoch, and --coordinator-epoch (for older brokers)"
)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("abort --topic t --partition 0", NOT_IDENTIFIED),
        ("abort --topic t --partition 0 --producer-epoch 1 --coordinator-epoch 1", NOT_IDENTIFIED),
        ("abort --topic t --partition 0 --producer-id 0", "Missing required argument --producer-epoch"),
        (
            "abort --topic t --partition 0 --producer-id 0 --producer-epoch 0",
            "Missing required argument --coordinator-epoch",
        ),
        (
            "find-hanging --max-transaction-timeout 5",
            "The `find-hanging` command requires either --topic or --broker-id to limit the scope of the"
            " search",
        ),
        (
            "find-hanging --broker-id 0 --partition 0",
            "The --partition argument requires --topic to be provided",
        ),
    ],
)
def test_conflicting_options_fail_before_any_request(words: str, why: str) -> None:
    assert run_tool("transactions", "--bootstrap-server", NOWHERE, *words.split()) == Ended(1, "", f"{why}\n")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("list", "argument --bootstrap-server is required"),
        (f"--bootstrap-server {NOWHERE}", "the following arguments are required: COMMAND"),
        (
            f"--bootstrap-server {NOWHERE} describe",
            "the following arguments are required: --transactional-id",
        ),
        (f"--bootstrap-server {NOWHERE} list --duration-filter x", "argument --duration-filter: invalid"),
        (f"--bootstrap-server {NOWHERE} list extra", "unrecognized arguments: extra"),
    ],
)
def test_misuse_ends_with_1_and_the_usage(words: str, why: str) -> None:
    ended = run_tool("transactions", *words.split())

    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("usage: barnabas transactions")
    assert f"error: {why}" in ended.err


def test_the_options_of_the_client_may_follow_the_command() -> None:
    words = f"find-hanging --bootstrap-server {NOWHERE} --json".split()

    ended = run_tool("transactions", *words)

    assert ended.code == 1
    assert ended.err.startswith("The `find-hanging` command requires")


def test_help_exits_with_zero() -> None:
    for words in (["--help"], ["abort", "--help"], ["--version"]):
        ended = run_tool("transactions", *words)
        assert (ended.code, ended.err) == (0, "")
        assert ended.out


def test_an_epoch_is_a_short() -> None:
    assert (short("-32768"), short("32767")) == (-32768, 32767)
    for text in ("32768", "-32769", "x", ""):
        with pytest.raises(ValueError, match=r"is out of range|is not a whole number"):
            short(text)
