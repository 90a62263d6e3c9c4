"""Which partitions --topic means: `orders` is all of them, `orders:0,2` is two."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from barnabas.base.ids import TopicPartition
from barnabas.cli.group.failures import Misused
from barnabas.cli.option_parser import integer

if TYPE_CHECKING:
    from barnabas.client.admin.admin import Admin


def parse_topics(texts: Iterable[str]) -> tuple[list[TopicPartition], list[str]]:
    """Partitions that are named, and topics all of whose partitions are meant."""
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
            # The two quotes are Kafka's.
            raise Misused(f"Invalid partition '{number}' specified in topic arg '{text}''") from None
    return found


async def every_partition(
    admin: "Admin", topics: Iterable[str], *, timeout_ms: float
) -> list[TopicPartition]:
    """All partitions of these topics. PartlyRefused if one is not there."""
    described = await admin.describe_topics(dict.fromkeys(topics), timeout_ms=timeout_ms)
    return [
        TopicPartition(topic.name, each.partition)
        for topic in described.values()
        for each in topic.partitions
    ]
