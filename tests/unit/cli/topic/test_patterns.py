"""A pattern for topics is what Kafka's tools make of it."""

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
def test_it_is_a_regular_expression_for_the_whole_name(text: str, topics: list[str]) -> None:
    assert allowed(text) == topics


def test_topics_of_the_brokers_can_be_left_out() -> None:
    assert allowed(".*", internal=False) == ["orders", "orders-2", "plain"]
    assert allowed("__.*", internal=False) == []


def test_what_is_no_regular_expression_is_refused() -> None:
    with pytest.raises(ToolFailed, match=r"^or\[d is an invalid regex\.$"):
        TopicPattern("or[d")
