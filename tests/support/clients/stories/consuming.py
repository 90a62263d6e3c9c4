"""What a consumer asks for: where to start, limits, offsets that are gone, committed records, queries."""

import pytest

from barnabas.protocol.error_codes import ErrorCode
from barnabas.records.header import Codec
from support.clients.client import Ability, AtTime, Client, ConsumerOptions, Message, Refused, opened
from support.clients.entries import entry
from support.clients.stage import Stage
from support.clients.stories.words import START_MS, codecs_of, deliver, numbered, offsets, read, values

FETCH_BYTES_MAX = 1000
LARGE_BYTES = 300_000


@entry("consume from the beginning")
def from_the_beginning(client: Client, stage: Stage) -> None:
    topic = stage.topic()
    stage.write(topic, numbered(5))
    stage.write(topic, numbered(5, start=5))

    found = read(client, stage, topic, 10)

    assert offsets(found) == list(range(10))
    assert [(each.timestamp_ms, each.key, each.value, each.headers) for each in found] == numbered(10)


@entry("consume from the end")
def from_the_end(client: Client, stage: Stage) -> None:
    topic = stage.topic()
    stage.write(topic, numbered(5))

    with opened(client.consumer(stage.address, topic, ConsumerOptions(start="end"))) as consumer:
        consumer.settle()
        deliver(client, stage, topic, [Message(value=b"after")])
        found = consumer.read(1)

    assert (offsets(found), values(found)) == ([5], [b"after"])


@entry("consume from a time")
def from_a_time(client: Client, stage: Stage) -> None:
    topic = stage.topic()
    stage.write(topic, numbered(5))
    stage.write(topic, numbered(5, start=5))

    # A millisecond after the third record, in the middle of the first batch.
    found = read(client, stage, topic, 7, ConsumerOptions(start=AtTime(START_MS + 2001)))

    assert offsets(found) == list(range(3, 10))


@entry("consume from the middle of a batch")
def from_the_middle(client: Client, stage: Stage) -> None:
    topic = stage.topic()
    firsts = [
        stage.write(topic, numbered(10, start=10 * number), codec=codec)
        for number, codec in enumerate(codecs_of(client))
    ]
    end = stage.end(topic)

    for first in firsts:
        found = read(client, stage, topic, end - first - 4, ConsumerOptions(start=first + 4))

        assert offsets(found) == list(range(first + 4, end))
        assert values(found) == [b"v%d" % number for number in range(first + 4, end)]


@entry(
    "read headers without a value and records without key and value",
    needs=(Ability.READ_NULL_HEADERS,),
)
def odd_records(client: Client, stage: Stage) -> None:
    topic = stage.topic()
    odd = [
        (START_MS, None, None, (("null", None), ("null", None))),
        (START_MS, b"", b"", (("größe", "城".encode()), ("größe", b""))),
    ]
    stage.write(topic, odd)

    found = read(client, stage, topic, 2)

    assert [(each.timestamp_ms, each.key, each.value, each.headers) for each in found] == odd


@entry("a message larger than the fetch limit still arrives")
def larger_than_the_limit(client: Client, stage: Stage) -> None:
    topic = stage.topic()
    large = b"x" * LARGE_BYTES
    for value in (b"before", large, b"after"):
        stage.write(topic, [(START_MS, None, value, ())])

    found = read(client, stage, topic, 3, ConsumerOptions(fetch_bytes_max=FETCH_BYTES_MAX))

    assert values(found) == [b"before", large, b"after"]


@entry("an offset that is gone: start again at the earliest, or be told", needs=(Ability.FAIL_OUT_OF_RANGE,))
def offset_out_of_range(client: Client, stage: Stage) -> None:
    topic = stage.topic()
    stage.write(topic, numbered(10))
    stage.delete_records(topic, before=6)

    found = read(client, stage, topic, 4, ConsumerOptions(start=2))
    with pytest.raises(Refused) as refused:
        read(client, stage, topic, 1, ConsumerOptions(start=2, out_of_range="fail"))

    assert offsets(found) == [6, 7, 8, 9]
    assert refused.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


@entry("a read_committed consumer")
def read_committed(client: Client, stage: Stage) -> None:
    topic = stage.topic()
    stage.write(topic, numbered(5))
    stage.write(topic, numbered(5, start=5), codec=Codec.GZIP)

    found = read(client, stage, topic, 7, ConsumerOptions(start=3, committed=True))

    assert offsets(found) == list(range(3, 10))
    assert values(found) == [b"v%d" % number for number in range(3, 10)]


@entry("offset queries: watermarks and offsets for times")
def offset_queries(client: Client, stage: Stage) -> None:
    topic = stage.topic()
    stage.write(topic, numbered(5))
    stage.write(topic, numbered(5, start=5))
    stage.delete_records(topic, before=2)

    with opened(client.admin(stage.address)) as admin:
        assert admin.watermarks(topic, 0) == (2, 10)
        assert admin.offset_for_time(topic, 0, START_MS) == 2
        assert admin.offset_for_time(topic, 0, START_MS + 4000) == 4
        assert admin.offset_for_time(topic, 0, START_MS + 4001) == 5
        assert admin.offset_for_time(topic, 0, START_MS + 9001) is None


@entry("watermarks of an empty partition")
def empty_partition(client: Client, stage: Stage) -> None:
    topic = stage.topic()

    with opened(client.admin(stage.address)) as admin:
        assert admin.watermarks(topic, 0) == (0, 0)
        assert admin.offset_for_time(topic, 0, START_MS) is None
