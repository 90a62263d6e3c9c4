"""Steps that many stories take: send these, read them back."""

from collections.abc import Mapping, Sequence
from time import time

from barnabas.records.builder import NewRecord
from barnabas.records.header import Codec
from support.clients.client import (
    Ability,
    Client,
    ConsumerOptions,
    Delivery,
    Message,
    ProducerOptions,
    Seen,
    Setting,
    opened,
)
from support.clients.confluent import Confluent
from support.clients.stage import Stage

# Whole milliseconds of an hour ago: old enough to be told from now, and too young to be retained away.
START_MS = int(time() - 3600) * 1000

# All clients know the others.
CODEC_NEEDS = {
    Codec.SNAPPY: (Ability.SNAPPY,),
    Codec.LZ4: (Ability.LZ4,),
    Codec.ZSTD: (Ability.ZSTD,),
}


def codecs_of(client: Client) -> list[Codec]:
    return [codec for codec in Codec if not any(need in client.cannot for need in CODEC_NEEDS.get(codec, ()))]


def send(
    client: Client, stage: Stage, topic: str, messages: Sequence[Message], options: ProducerOptions
) -> list[Delivery]:
    with opened(client.producer(stage.address, topic, options)) as producer:
        for message in messages:
            producer.send(message)
        return producer.finish()


def deliver(
    client: Client,
    stage: Stage,
    topic: str,
    messages: Sequence[Message],
    options: ProducerOptions | None = None,
) -> list[Delivery]:
    """Send, and none may be refused."""
    deliveries = send(client, stage, topic, messages, options or ProducerOptions())
    assert len(deliveries) == len(messages)
    assert [each.error for each in deliveries if each.error is not None] == []
    return deliveries


def read(
    client: Client, stage: Stage, topic: str, count: int, options: ConsumerOptions | None = None
) -> list[Seen]:
    with opened(client.consumer(stage.address, topic, options or ConsumerOptions())) as consumer:
        return consumer.read(count)


def settings_of(client: Client, stage: Stage, topic: str) -> Mapping[str, Setting]:
    """As the client shows them, or one that can."""
    reader = Confluent() if Ability.SETTINGS in client.cannot else client
    with opened(reader.admin(stage.address)) as admin:
        return admin.topic_settings(topic)


def numbered(count: int, *, start: int = 0) -> list[NewRecord]:
    """Records a second apart, each with its number for a value."""
    return [
        (START_MS + 1000 * number, b"k%d" % number, b"v%d" % number, ())
        for number in range(start, start + count)
    ]


def values(found: Sequence[Seen]) -> list[bytes | None]:
    return [each.value for each in found]


def offsets(found: Sequence[Seen]) -> list[int]:
    return [each.offset for each in found]
