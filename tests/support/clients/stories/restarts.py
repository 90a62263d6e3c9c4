"""A broker that goes and comes back while the client stays: stopped cleanly, and killed under load.

The producer and the consumer of a story live through all of it. Nothing that was acknowledged may be missing,
what was sent in order is there in order, and with idempotence nothing is there twice.
"""

import threading
from collections.abc import Sequence

from support.clients.client import (
    WAIT_SECONDS_MAX,
    Client,
    Consumer,
    ConsumerOptions,
    Delivery,
    Message,
    Producer,
    ProducerOptions,
    Seen,
    opened,
)
from support.clients.entries import entry
from support.clients.stage import Stage
from support.clients.stories.words import values

PART = 50
# The load: a message every so often, as long as the story wants but not for ever.
LOAD_INTERVAL_S = 0.002
LOAD_MESSAGES_MAX = 30_000
LOAD_BEFORE = 200
LOAD_AFTER = 100


@entry("the broker restarts, and the client goes on", own_broker=True)
def clean_restart(client: Client, stage: Stage) -> None:
    topic = stage.topic()
    sent = [Message(value=b"%0100d" % number) for number in range(3 * PART)]
    options = ProducerOptions(idempotent=True)

    with (
        opened(client.consumer(stage.address, topic, ConsumerOptions())) as consumer,
        opened(client.producer(stage.address, topic, options)) as producer,
    ):
        _send(producer, sent[:PART])
        # Half of them, because kcat takes its input by the kilobyte and holds the rest back.
        found = consumer.read(PART // 2)
        stage.broker.stop()
        # Nobody is there to take these.
        _send(producer, sent[PART : 2 * PART])
        stage.broker.start()
        _send(producer, sent[2 * PART :])
        deliveries = producer.finish()
        found += consumer.read(3 * PART - len(found))

    assert [each.error for each in deliveries if each.error is not None] == []
    assert [each.offset for each in deliveries] == list(range(3 * PART))
    assert values(found) == [message.value for message in sent]
    assert stage.end(topic) == 3 * PART


def _send(producer: Producer, messages: Sequence[Message]) -> None:
    for message in messages:
        producer.send(message)


@entry("the broker is killed under load: nothing is lost, and all is in order", own_broker=True)
def killed(client: Client, stage: Stage) -> None:
    deliveries, found = _kill_under_load(client, stage, idempotent=False)

    _check_acknowledged(deliveries, found)
    # What was in flight may be there twice; the first of each is in its place.
    first_seen = list(dict.fromkeys(_number(each) for each in found))
    assert first_seen == list(range(len(deliveries)))


@entry("the broker is killed under load: with idempotence nothing is doubled", own_broker=True)
def killed_idempotent(client: Client, stage: Stage) -> None:
    deliveries, found = _kill_under_load(client, stage, idempotent=True)

    _check_acknowledged(deliveries, found)
    assert [_number(each) for each in found] == list(range(len(deliveries)))


def _kill_under_load(client: Client, stage: Stage, *, idempotent: bool) -> tuple[list[Delivery], list[Seen]]:
    """What became of every message, and all that is in the log at the end, as one consumer saw it."""
    topic = stage.topic()
    options = ProducerOptions(idempotent=idempotent)
    with (
        opened(client.consumer(stage.address, topic, ConsumerOptions())) as consumer,
        opened(client.producer(stage.address, topic, options)) as producer,
    ):
        load = _Load(producer)
        try:
            found = consumer.read(LOAD_BEFORE)
            stage.broker.kill()
            stage.broker.start()
            found += _read_up_to(consumer, load.sent + LOAD_AFTER)
        finally:
            load.end()
        deliveries = producer.finish()
        found += consumer.read(stage.end(topic) - len(found))
    return deliveries, found


def _read_up_to(consumer: Consumer, number: int) -> list[Seen]:
    """Until a message is seen that was sent after the restart."""
    found = consumer.read(1)
    while _number(found[-1]) < number:
        found += consumer.read(1)
    return found


class _Load:
    """Sends numbers from a thread of its own until it is ended."""

    def __init__(self, producer: Producer) -> None:
        self.sent = 0
        self._producer = producer
        self._failure: Exception | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            while self.sent < LOAD_MESSAGES_MAX and not self._ended.wait(LOAD_INTERVAL_S):
                self._producer.send(Message(value=b"%d" % self.sent))
                self.sent += 1
        except Exception as error:
            self._failure = error

    def end(self) -> None:
        self._ended.set()
        self._thread.join(WAIT_SECONDS_MAX)
        assert not self._thread.is_alive(), "the client does not come back from sending"
        if self._failure is not None:
            raise self._failure


def _check_acknowledged(deliveries: Sequence[Delivery], found: Sequence[Seen]) -> None:
    """The time for a delivery is longer than the restart takes, so all of them arrive; each is where it was
    said to be."""
    assert [each.error for each in deliveries if each.error is not None] == []
    assert [each.offset for each in found] == list(range(len(found)))
    by_offset = {each.offset: _number(each) for each in found}
    said = {each.offset: number for number, each in enumerate(deliveries)}
    wrong = {offset: number for offset, number in said.items() if by_offset.get(offset or 0) != number}
    assert wrong == {}, f"acknowledged, but something else or nothing is there: {wrong}"


def _number(record: Seen) -> int:
    assert record.value is not None
    return int(record.value)
