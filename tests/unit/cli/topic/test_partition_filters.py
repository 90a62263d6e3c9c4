"""Partition filters of `barnabas get-offsets`."""

import pytest

from barnabas.cli.get_offsets import parse_time
from barnabas.cli.tool import ToolFailed
from barnabas.cli.topic.patterns import PartitionFilter, by_rules, by_topic


def allowed(wanted: PartitionFilter) -> list[str]:
    return [
        f"{topic}:{number}"
        for topic in ("orders", "plain")
        if wanted.allows_topic(topic)
        for number in range(4)
        if wanted.allows(topic, number)
    ]


def test_an_empty_filter_matches_everything() -> None:
    assert len(allowed(by_topic(None, None))) == 8
    assert len(allowed(by_topic(None, ""))) == 8


def test_a_pattern_and_numbers_go_together() -> None:
    assert allowed(by_topic("ord.*", "0,2")) == ["orders:0", "orders:2"]


@pytest.mark.parametrize(
    ("rules", "partitions"),
    [
        ("orders:1", ["orders:1"]),
        ("orders:1-3", ["orders:1", "orders:2"]),
        ("orders:2-", ["orders:2", "orders:3"]),
        ("orders:-2", ["orders:0", "orders:1"]),
        ("orders:", ["orders:0", "orders:1", "orders:2", "orders:3"]),
        (":3", ["orders:3", "plain:3"]),
        ("orders:0,pl.*:3", ["orders:0", "plain:3"]),
        ("orders:0,", ["orders:0"]),
    ],
)
def test_rules_are_alternatives(rules: str, partitions: list[str]) -> None:
    assert allowed(by_rules(rules)) == partitions


def test_an_invalid_rule_is_rejected() -> None:
    with pytest.raises(ToolFailed, match=r"^Invalid rule specification: a:b$"):
        by_rules("a:b")
    with pytest.raises(ToolFailed, match=r"^Invalid rule specification: a:99999999999: "):
        by_rules("a:99999999999")
    with pytest.raises(ToolFailed, match="numeric partition ids, but received: 0,x"):
        by_topic(None, "0,x")


@pytest.mark.parametrize(
    ("text", "number"), [("latest", -1), ("-2", -2), ("-6", -6), ("0", 0), ("1700", 1700)]
)
def test_a_time_has_a_name_or_a_number(text: str, number: int) -> None:
    assert parse_time(text) == number


@pytest.mark.parametrize("text", ["xyz", "", "-7", "9223372036854775808"])
def test_an_invalid_time_is_rejected_with_all_valid_forms(text: str) -> None:
    with pytest.raises(
        ToolFailed, match=f"^Malformed time argument {text}. Please use -1 or latest / -2 or "
    ):
        parse_time(text)
