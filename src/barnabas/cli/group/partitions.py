"""Parse --topic: `orders` selects all partitions, `orders:0,2` two of them."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from barnabas.base.ids import TopicPartition
from barnabas.cli.group.failures import Misused
from barnabas.cli.option_parser import integer

if TYPE_CHECKING:
    from barnabas.client.admin.admin import Admin


def parse_topics(texts: Iterable[str]) -> tuple[list[TopicPartition], list[str]]:
    """Return the named partitions, and the topics that are named without partitions."""
    named: list[TopicPartition] = []
    topics: list[str] = []
    for text in texts:
        if ":" in text:
            named += _partitions(text)
        else:
            topics.append(text)
    return named, topics


def _partitions(text: str) -> list[TopicPartition]:
    topic, _, numbers = text.partition(":")
    if not numbers or ":" in numbers.rstrip(":"):
        raise Misused(f"Invalid topic arg '{text}', expected topic name and partitions")
    found = []
    for number in numbers.rstrip(":").rstrip(",").split(","):
        try:
            found.append(TopicPartition(topic, integer(number)))
        except ValueError:
            # Kafka's message has the doubled quote.
            raise Misused(f"Invalid partition '{number}' specified in topic arg '{text}''") from None
    return found


async def every_partition(
    admin: "Admin", topics: Iterable[str], *, timeout_ms: float
) -> list[TopicPartition]:
    """Return all partitions of these topics. PartlyRefused if a topic does not exist."""
    described = await admin.describe_topics(dict.fromkeys(topics), timeout_ms=timeout_ms)
    return [
        TopicPartition(topic.name, each.partition)
        for topic in described.values()
        for each in topic.partitions
    ]
