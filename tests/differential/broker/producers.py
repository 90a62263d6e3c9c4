"""Idempotent producers: InitProducerId, sequences, DescribeProducers, and batches of no transaction."""

from typing import Any

from barnabas.protocol.messages.transaction_admin import DescribeProducersRequest, TopicRequest
from barnabas.protocol.messages.transactions import InitProducerIdRequest
from barnabas.records.header import Codec
from differential.broker.batches import batch
from differential.broker.sending import fetch, produce
from differential.broker.talk import Family, Talk

PRODUCERS = Family("producers")


def init(
    transactional_id: str | None = None, timeout_ms: int = 60_000, producer_id: int = -1, epoch: int = -1
) -> InitProducerIdRequest:
    return InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=timeout_ms,
        producer_id=producer_id,
        producer_epoch=epoch,
    )


def producers_of(*partitions: tuple[str, int]) -> DescribeProducersRequest:
    topics = [TopicRequest(name=name, partition_indexes=[index]) for name, index in partitions]
    return DescribeProducersRequest(topics=topics)


def new_producer(talk: Talk, step: str) -> int:
    # Right after its start a broker may still wait for ids from the controller.
    talk.until(init(), 5, lambda answer: answer.error_code == 0)
    answer: Any = talk.ask(step, init())
    producer_id: int = answer.producer_id
    return producer_id


@PRODUCERS.story
def init_producer_id(talk: Talk) -> None:
    new_producer(talk, "the first")
    talk.same("plain", init())
    for timeout_ms in (0, -1, 2_147_483_647):
        talk.same(f"timeout {timeout_ms}", init(timeout_ms=timeout_ms), [0, 5])
    producer = new_producer(talk, "one more")
    talk.same("with an id and epoch", init(producer_id=producer, epoch=0), range(3, 6))
    talk.same("with an id only", init(producer_id=producer), range(3, 6))
    talk.same("with an epoch only", init(epoch=3), range(3, 6))
    talk.same("with an unknown id", init(producer_id=123_456, epoch=0), range(3, 6))
    talk.same("with the last epoch", init(producer_id=producer, epoch=32_767), [3, 5])
    talk.same("with a negative id", init(producer_id=-5, epoch=0), [3, 5])


@PRODUCERS.story
def sequences(talk: Talk) -> None:
    topic_id = talk.create("sequenced")
    producer = new_producer(talk, "producer")

    def send(step: str, sequence: int, *values: bytes, epoch: int = 0, version: int = 13) -> None:
        records = batch(*values, at_ms=talk.base_ms, producer=(producer, epoch, sequence))
        talk.ask(step, produce("sequenced", records, topic_id=topic_id), version)

    send("first", 0, b"a", b"b")
    send("second", 2, b"c")
    for version in (3, 8, 12, 13):
        send(f"the second again v{version}", 2, b"c", version=version)
    send("the first again", 0, b"a", b"b")
    send("a part of the first", 0, b"a")
    for version in (3, 8, 13):
        send(f"a gap v{version}", 5, b"f", version=version)
    send("overlaps", 2, b"c", b"d")
    for number in range(3, 9):
        send(f"sequence {number}", number, b"x")
    send("a duplicate that is forgotten", 0, b"a", b"b")
    send("the fifth last again", 4, b"x")
    send("the sixth last again", 3, b"x")
    send("new epoch, not from zero", 4, b"e", epoch=1)
    send("new epoch", 0, b"e", epoch=1)
    for version in (3, 8, 13):
        send(f"the old epoch v{version}", 9, b"x", epoch=0, version=version)
    talk.ask("described", producers_of(("sequenced", 0)))
    talk.ask("read back", fetch("sequenced", topic_id=topic_id))


@PRODUCERS.story
def unknown_producers(talk: Talk) -> None:
    topic_id = talk.create("strangers", 7)
    # Nobody gave these ids away; a broker takes them, as their state may have expired.
    for partition, (step, producer) in enumerate(
        {
            "starts at zero": (777_001, 0, 0),
            "starts at five": (777_002, 0, 5),
            "starts at epoch seven": (777_003, 7, 3),
            "no sequence": (777_004, 0, -1),
            "no epoch": (777_005, -1, 0),
            "negative id": (-2, 0, 0),
        }.items(),
        start=1,
    ):
        records = batch(b"a", at_ms=talk.base_ms, producer=producer)
        talk.same(step, produce("strangers", records, topic_id=topic_id, partition=partition), [3, 13])
        talk.ask(f"{step}: described", producers_of(("strangers", partition)))
    wraps = batch(b"a", b"b", b"c", at_ms=talk.base_ms, producer=(777_006, 0, 2_147_483_646))
    talk.ask("sequence wraps", produce("strangers", wraps, topic_id=topic_id))
    after = batch(b"d", at_ms=talk.base_ms, producer=(777_006, 0, 1))
    talk.ask("after the wrap", produce("strangers", after, topic_id=topic_id))
    packed = batch(b"a", b"b", at_ms=talk.base_ms, producer=(777_007, 0, 0), codec=Codec.GZIP)
    talk.ask("compressed", produce("strangers", packed, topic_id=topic_id))
    talk.ask("compressed, again", produce("strangers", packed, topic_id=topic_id))
    two = batch(b"a", at_ms=talk.base_ms, producer=(777_008, 0, 0))
    more = batch(b"b", at_ms=talk.base_ms, producer=(777_008, 0, 1))
    talk.ask("two idempotent batches in one request", produce("strangers", two + more, topic_id=topic_id))
    talk.ask("described", producers_of(("strangers", 0)))


@PRODUCERS.story
def a_transaction_that_was_not_begun(talk: Talk) -> None:
    topic_id = talk.create("transactional")
    producer = new_producer(talk, "producer")
    records = batch(b"a", at_ms=talk.base_ms, producer=(producer, 0, 0), transactional=True)
    talk.same(
        "without a transactional id", produce("transactional", records, topic_id=topic_id), [3, 8, 11, 13]
    )
    bare = batch(b"a", at_ms=talk.base_ms, transactional=True)
    talk.same("without a producer id", produce("transactional", bare, topic_id=topic_id), [3, 13])


@PRODUCERS.story
def describe_producers(talk: Talk) -> None:
    talk.create("described", 2)
    talk.ask("nobody yet", producers_of(("described", 0)))
    producer = new_producer(talk, "producer")
    records = batch(b"a", b"b", at_ms=talk.base_ms, producer=(producer, 0, 0))
    talk.ask("produced", produce("described", records), 9)
    talk.ask("one", producers_of(("described", 0)))
    talk.ask("two partitions", producers_of(("described", 0), ("described", 1)))
    talk.ask("unknown partition", producers_of(("described", 2)))
    talk.ask("negative partition", producers_of(("described", -1)))
    talk.ask("unknown topic", producers_of(("nobody-made-this", 0)))
    talk.ask("bad name", producers_of(("a b", 0)))
    talk.ask("nothing", producers_of())
