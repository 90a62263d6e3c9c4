"""Option checks of `barnabas consumer-groups`, with Kafka's messages."""

import pytest

from support.process.tool_runs import run_tool

NOWHERE = "127.0.0.1:1"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("--describe", "Option [describe] takes one of these options: [group], [all-groups]"),
        (
            "--describe --group g --members --state",
            "Option [describe] takes at most one of these options: [members], [offsets], [state]",
        ),
        ("--describe --group g --state x", "Option [describe] does not take a value for [state]"),
        ("--delete", "Option [delete] takes one of these options: [group], [all-groups]"),
        (
            "--delete --group g --topic t",
            "The consumer does not support topic-specific offset deletion from a consumer group.",
        ),
        (
            "--delete-offsets --group g",
            "Option [delete-offsets] takes the following options: [group], [topic]",
        ),
        (
            "--reset-offsets --dry-run --execute",
            "Option [reset-offsets] only accepts one of [execute] and [dry-run]",
        ),
        (
            "--reset-offsets --dry-run",
            "Option [reset-offsets] takes one of these options: [group], [all-groups]",
        ),
        (
            "--reset-offsets --dry-run --group g --topic t --to-latest --shift-by 1",
            'Option "[to-latest]" can\'t be used with option "[shift-by]"',
        ),
        (
            "--reset-offsets --dry-run --group g --to-latest",
            "One of the reset scopes should be defined: --all-topics, --topic.",
        ),
        (
            "--reset-offsets --dry-run --group g --topic t",
            "Option '[reset-offsets]' requires one of the following scenarios: [[to-offset], [to-datetime],"
            " [by-duration], [to-earliest], [to-latest], [to-current], [shift-by], [from-file]]",
        ),
        ("--list --group g", 'Option "[group]" can\'t be used with option "[list]"'),
        ("--describe --group g --all-groups", 'Option "[group]" can\'t be used with option "[all-groups]"'),
        ("--describe --group g --topic t", 'Option "[topic]" can\'t be used with option "[describe]"'),
        ("--list --topic t", 'Option "[topic]" can\'t be used with option "[list]"'),
        (
            "--list --delete --all-groups",
            "Command must include exactly one action: --list, --describe, --delete, --reset-offsets,"
            " --delete-offsets, --validate-regex",
        ),
        (
            "--describe --group g --members --lag-seconds",
            'Option "[lag-seconds]" can\'t be used with option "[members]"',
        ),
    ],
)
def test_conflicting_options_print_an_error_and_the_usage(words: str, why: str) -> None:
    ended = run_tool("consumer-groups", "--bootstrap-server", NOWHERE, *words.split())

    first, second, *_ = ended.err.splitlines()
    assert (ended.code, ended.out, first) == (1, "", why)
    assert second.split() == ["Option", "Description"]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("--list --members", "Option(s) [members] are unavailable given other options on the command line"),
        ("--describe --all-groups --type", "Option(s) [type] are unavailable"),
        ("--list --lag-seconds", "Option(s) [lag-seconds] are unavailable"),
        ("--reset-offsets --state", "Option(s) [state] are unavailable"),
        ("--no-such-flag", "no-such-flag is not a recognized option"),
        ("--list --timeout soon", "Cannot parse argument 'soon' of option timeout"),
    ],
)
def test_a_parse_error_is_one_line(words: str, why: str) -> None:
    ended = run_tool("consumer-groups", "--bootstrap-server", NOWHERE, *words.split())

    [line] = ended.err.splitlines()
    assert (ended.code, ended.out) == (1, "")
    assert line.startswith(why)


def test_a_reset_without_execute_prints_a_warning() -> None:
    ended = run_tool("consumer-groups", "--bootstrap-server", NOWHERE, "--reset-offsets")

    first, second, *_ = ended.err.splitlines()
    assert first.startswith("WARN: No action will be performed as the --execute option is missing.")
    assert second == "Option [reset-offsets] takes one of these options: [group], [all-groups]"


def test_validating_a_regular_expression_needs_no_broker() -> None:
    good = run_tool("consumer-groups", "--validate-regex", "ord.*")
    bad = run_tool("consumer-groups", "--validate-regex", "ord[")
    document = run_tool("consumer-groups", "--validate-regex", "ord[", "--json")
    others = run_tool("consumer-groups", "--list")

    assert good == (0, "The regular expression `ord.*` is valid.\n", "")
    assert bad == (0, "The regular expression `ord[` is invalid: missing closing ].\n", "")
    assert document.out == '{"regex":"ord[","valid":false,"error":"missing closing ]"}\n'
    assert (others.code, others.err.splitlines()[0]) == (1, 'Missing required argument "[bootstrap-server]"')
