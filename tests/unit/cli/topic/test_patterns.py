"""Topic patterns match as in Kafka's tools."""

import pytest

from barnabas.cli.tool import ToolFailed
from barnabas.cli.topic.patterns import TopicPattern

TOPICS = ("orders", "orders-2", "plain", "__consumer_offsets")


def allowed(text: str, *, internal: bool = True) -> list[str]:
    pattern = TopicPattern(text)
    return [topic for topic in TOPICS if pattern.allows(topic, internal=internal)]


@pytest.mark.parametrize(
    ("text", "topics"),
    [
        ("orders", ["orders"]),
        ("order", []),
        ("ord.*", ["orders", "orders-2"]),
        ("orders,plain", ["orders", "plain"]),
        (" orders , plain ", ["orders", "plain"]),
        ("'orders'", ["orders"]),
        ('"plain"', ["plain"]),
        ("", []),
    ],
)
def test_a_pattern_matches_full_names(text: str, topics: list[str]) -> None:
    assert allowed(text) == topics


def test_internal_topics_can_be_excluded() -> None:
    assert allowed(".*", internal=False) == ["orders", "orders-2", "plain"]
    assert allowed("__.*", internal=False) == []


def test_an_invalid_regular_expression_is_rejected() -> None:
    with pytest.raises(ToolFailed, match=r"^or\[d is an invalid regex\.$"):
        TopicPattern("or[d")
