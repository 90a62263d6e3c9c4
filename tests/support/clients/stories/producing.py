"""What a producer asks for: codecs, acknowledgements, headers, nulls, timestamps, limits, idempotence."""

from time import time

from barnabas.protocol.error_codes import ErrorCode
from barnabas.records.header import Codec, TimestampType
from support.clients.client import Ability, Client, ConsumerOptions, Message, ProducerOptions
from support.clients.entries import Story, entry
from support.clients.stage import Stage, wait_until
from support.clients.stories.words import CODEC_NEEDS, START_MS, deliver, offsets, read, send, values

ACKS = (0, 1, -1)
BATCH_MESSAGES = 20
# Something that every codec makes smaller, because clients send a batch as it is where it does not.
TEXT = b"It was late in the evening when K. arrived. " * 20
LARGE_TOPIC_BYTES = 10_000
IDEMPOTENT_MESSAGES = 500
MANY_PARTITIONS = 100
MANY_MESSAGES = 600


def _with_codec(codec: Codec) -> Story:
    def story(client: Client, stage: Stage) -> None:
        topic = stage.topic()
        sent = [
            [Message(value=b"%d %d " % (acks, number) + TEXT) for number in range(BATCH_MESSAGES)]
            for acks in ACKS
        ]

        for turn, (acks, messages) in enumerate(zip(ACKS, sent, strict=True)):
            options = ProducerOptions(codec=codec, acks=acks)
            deliveries = deliver(client, stage, topic, messages, options)
            first = BATCH_MESSAGES * turn
            if acks == 0:
                # Nobody tells the client when they are there. Nothing was written before.
                wait_until(lambda: stage.end(topic) == BATCH_MESSAGES, "messages without acks are written")
            else:
                assert [each.offset for each in deliveries] == list(range(first, first + BATCH_MESSAGES))

        everything = [message.value for messages in sent for message in messages]
        assert values(read(client, stage, topic, len(everything))) == everything
        assert stage.end(topic) == len(everything)
        assert {header.codec for header in stage.batches(topic)} == {codec}

    return story


for _codec in Codec:
    entry(f"produce with {_codec.name.lower()} and acks 0, 1 and all", needs=CODEC_NEEDS.get(_codec, ()))(
        _with_codec(_codec)
    )


@entry("headers: repeated, not ASCII, empty")
def headers(client: Client, stage: Stage) -> None:
    topic = stage.topic()
    given = (("colour", b"red"), ("colour", b"blue"), ("größe", "größer als 城".encode()), ("empty", b""))

    deliver(client, stage, topic, [Message(value=b"v", headers=given), Message(value=b"w")])

    assert [each.headers for each in read(client, stage, topic, 2)] == [given, ()]


@entry("a header without a value", needs=(Ability.NULL_HEADERS,))
def null_header(client: Client, stage: Stage) -> None:
    topic = stage.topic()
    given = (("null", None), ("empty", b""), ("null", None))

    deliver(client, stage, topic, [Message(value=b"v", headers=given)])

    assert [each.headers for each in read(client, stage, topic, 1)] == [given]


@entry("null keys, tombstones, empty keys and values")
def nulls(client: Client, stage: Stage) -> None:
    topic = stage.topic(settings={"cleanup.policy": "delete"})
    pairs = [(None, b"no key"), (b"tombstone", None), (b"empty value", b""), (b"", b"empty key")]

    deliver(client, stage, topic, [Message(key=key, value=value) for key, value in pairs])

    assert [(each.key, each.value) for each in read(client, stage, topic, len(pairs))] == pairs


@entry("neither key nor value", needs=(Ability.NULL_KEY_AND_VALUE,))
def nothing_at_all(client: Client, stage: Stage) -> None:
    topic = stage.topic()

    deliver(client, stage, topic, [Message(key=None, value=None)])

    assert [(each.key, each.value) for each in read(client, stage, topic, 1)] == [(None, None)]


@entry("timestamps are kept (CreateTime)", needs=(Ability.SET_TIMESTAMPS,))
def create_time(client: Client, stage: Stage) -> None:
    topic = stage.topic()
    # Not in order: the time of a message is its sender's affair.
    times = [START_MS + 5000, START_MS, START_MS + 123]

    deliver(client, stage, topic, [Message(value=b"v", timestamp_ms=each) for each in times])

    found = read(client, stage, topic, len(times))
    assert [each.timestamp_ms for each in found] == times
    assert {each.timestamp_type for each in found} <= {TimestampType.CREATE_TIME, None}


@entry("timestamps are set by the broker (LogAppendTime)")
def log_append_time(client: Client, stage: Stage) -> None:
    topic = stage.topic(settings={"message.timestamp.type": "LogAppendTime"})
    stamp = None if Ability.SET_TIMESTAMPS in client.cannot else START_MS

    before = int(time() * 1000)
    deliver(client, stage, topic, [Message(value=b"%d" % each, timestamp_ms=stamp) for each in range(3)])
    after = int(time() * 1000) + 1

    found = read(client, stage, topic, 3)
    assert {each.timestamp_type for each in found} <= {TimestampType.LOG_APPEND_TIME, None}
    assert all(before <= each.timestamp_ms <= after for each in found), (before, found, after)


@entry("a message larger than the topic allows is refused")
def too_large(client: Client, stage: Stage) -> None:
    topic = stage.topic(settings={"max.message.bytes": str(LARGE_TOPIC_BYTES)})
    large = Message(value=b"x" * (2 * LARGE_TOPIC_BYTES))

    [refused] = send(client, stage, topic, [large], ProducerOptions())
    [taken] = deliver(client, stage, topic, [Message(value=b"small enough")])

    assert refused.error is not None
    assert refused.error.code is ErrorCode.MESSAGE_TOO_LARGE
    assert taken.offset == 0
    assert values(read(client, stage, topic, 1)) == [b"small enough"]


@entry("an idempotent producer")
def idempotent(client: Client, stage: Stage) -> None:
    topic = stage.topic()
    sent = [Message(value=b"%d" % number) for number in range(IDEMPOTENT_MESSAGES)]

    deliveries = deliver(client, stage, topic, sent, ProducerOptions(idempotent=True))

    assert [each.offset for each in deliveries] == list(range(len(sent)))
    found = read(client, stage, topic, len(sent))
    assert values(found) == [message.value for message in sent]
    assert offsets(found) == list(range(len(sent)))
    batches = stage.batches(topic)
    assert len({header.producer_id for header in batches}) == 1
    assert all(header.has_producer_id for header in batches)
    # The first sequence number is 0, so sequences are offsets in a topic of one producer.
    assert [header.base_sequence for header in batches] == [header.base_offset for header in batches]


@entry("many partitions")
def many_partitions(client: Client, stage: Stage) -> None:
    topic = stage.topic(partitions=MANY_PARTITIONS)
    sent = [Message(key=b"k%d" % each, value=b"v%d" % each, partition=None) for each in range(MANY_MESSAGES)]

    deliveries = deliver(client, stage, topic, sent)

    options = ConsumerOptions(partitions=tuple(range(MANY_PARTITIONS)))
    found = read(client, stage, topic, len(sent), options)
    assert {each.key for each in found} == {message.key for message in sent}
    assert all(each.value == b"v" + (each.key or b"")[1:] for each in found)
    assert len({each.partition for each in found}) > MANY_PARTITIONS // 2
    assert {(each.partition, each.offset) for each in found} == {
        (each.partition, each.offset) for each in deliveries
    }
    for partition in range(MANY_PARTITIONS):
        there = [each.offset for each in found if each.partition == partition]
        assert there == list(range(len(there)))


@entry("a topic is created by producing to it", own_broker=True)
def auto_created(client: Client, stage: Stage) -> None:
    topic = stage.fresh_name()

    deliver(client, stage, topic, [Message(value=b"v", partition=None)])

    assert stage.partitions(topic) == 1
    assert values(read(client, stage, topic, 1)) == [b"v"]
