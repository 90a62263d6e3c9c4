"""Patterns of topics and partitions on the command line, as Kafka's tools read them. Pure.

For the characters of topic names, Java's and Python's regular expressions agree; a pattern that only Java
accepts is rejected as invalid.

The filters of `barnabas get-offsets` are a topic pattern with a set of partition numbers, or a list of rules
`TOPICS:PARTITIONS,...`. TOPICS is a regular expression (empty: all). PARTITIONS is a number, a range
`FROM-END` without END itself and with either side optional, or empty for all.
"""

import re
from typing import Final

from barnabas.base.values import value
from barnabas.cli.option_parser import INT_MAX, integer
from barnabas.cli.tool import ToolFailed

# Kafka's tools hard-code the names of internal topics.
INTERNAL_TOPICS: Final = frozenset(("__consumer_offsets", "__transaction_state", "__share_group_state"))
_RULE: Final = re.compile(r"([^:,]*)(?::(?:([0-9]*)|(?:([0-9]*)-([0-9]*))))?")


class TopicPattern:
    """A regular expression of full names. A comma separates alternatives; blanks and quotes are dropped."""

    def __init__(self, text: str) -> None:
        cleaned = text.strip().replace(",", "|").replace(" ", "")
        cleaned = cleaned.lstrip("\"'").rstrip("\"'")
        try:
            self._pattern = re.compile(cleaned)
        except re.error:
            raise ToolFailed(f"{cleaned} is an invalid regex.") from None

    def allows(self, topic: str, *, internal: bool = True) -> bool:
        """Without `internal`, internal topics never match."""
        return self._pattern.fullmatch(topic) is not None and (internal or topic not in INTERNAL_TOPICS)


@value
class Rule:
    """Matches the partitions from `first` to before `end`, or exactly those in `only`."""

    topics: TopicPattern
    first: int = 0
    end: int = INT_MAX
    only: frozenset[int] | None = None

    def allows_topic(self, topic: str) -> bool:
        return self.topics.allows(topic)

    def allows(self, topic: str, partition: int) -> bool:
        if not self.allows_topic(topic):
            return False
        return partition in self.only if self.only is not None else self.first <= partition < self.end


class PartitionFilter:
    """Allows a partition if one of the rules does."""

    def __init__(self, rules: list[Rule]) -> None:
        self._rules = rules

    def allows_topic(self, topic: str) -> bool:
        return any(rule.allows_topic(topic) for rule in self._rules)

    def allows(self, topic: str, partition: int) -> bool:
        return any(rule.allows(topic, partition) for rule in self._rules)


def by_topic(topic: str | None, partitions: str | None) -> PartitionFilter:
    """Build the filter of --topic and --partitions; an option that is not given matches everything."""
    pattern = TopicPattern(topic if topic is not None else ".*")
    return PartitionFilter([Rule(pattern, only=_numbers(partitions) if partitions else None)])


def _numbers(text: str) -> frozenset[int]:
    try:
        return frozenset(integer(each) for each in text.rstrip(",").split(","))
    except ValueError:
        raise ToolFailed(
            f"--partitions expects a comma separated list of numeric partition ids, but received: {text}"
        ) from None


def by_rules(text: str) -> PartitionFilter:
    """Build the filter of --topic-partitions."""
    return PartitionFilter([_rule(each) for each in text.rstrip(",").split(",")])


def _rule(text: str) -> Rule:
    found = _RULE.fullmatch(text)
    if found is None:
        raise ToolFailed(f"Invalid rule specification: {text}")
    topics, number, first, end = found.groups()
    pattern = TopicPattern(topics or ".*")
    try:
        if number:
            return Rule(pattern, only=frozenset((integer(number),)))
        return Rule(pattern, integer(first) if first else 0, integer(end) if end else INT_MAX)
    except ValueError as error:
        raise ToolFailed(f"Invalid rule specification: {text}: {error}") from None
