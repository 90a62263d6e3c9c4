"""Topics that are created because a client asked for their metadata."""

import asyncio

import pytest

from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.cluster import MetadataRequest, MetadataRequestTopic, MetadataResponse
from barnabas.protocol.messages.topics import CreateTopicsRequest
from barnabas.server.cluster.auto_topics import IN_FLIGHT_MAX
from barnabas.server.handlers.metadata import API
from support.decided import Decided, one_broker
from support.log.managers import on_a_loop

UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def asked(*names: str, create: bool = True) -> MetadataRequest:
    topics = [MetadataRequestTopic(name=name) for name in names]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=create)


def errors(answer: MetadataResponse) -> list[int]:
    return [topic.error_code for topic in answer.topics]


async def settled(broker: Decided) -> None:
    """Wait until all started tasks are done."""
    for _ in range(10):
        await asyncio.sleep(0)
    assert broker.crashes == []


def created(broker: Decided) -> list[list[str]]:
    """The topic names in each request that the controller received."""
    found = []
    for request in broker.channel.asked:
        assert isinstance(request, CreateTopicsRequest)
        found.append([topic.name for topic in request.topics])
    return found


@on_a_loop
async def test_a_topic_is_unknown_at_first_and_exists_at_the_next_request() -> None:
    broker = one_broker({"num.partitions": "3"})

    first = broker.ask(API, asked("orders"), 12)
    await settled(broker)
    then = broker.ask(API, asked("orders"), 12)

    assert errors(first) == [UNKNOWN]
    assert errors(then) == [ErrorCode.NONE]
    assert len(then.topics[0].partitions) == 3
    assert created(broker) == [["orders"]]


@pytest.mark.parametrize("version", [0, 3])
def test_before_version_4_every_requested_topic_is_created(version: int) -> None:
    @on_a_loop
    async def story() -> None:
        broker = one_broker()
        broker.ask(API, asked("orders"), version)
        await settled(broker)
        assert list(broker.image.topics) == ["orders"]

    story()


@on_a_loop
async def test_no_topic_is_created_if_the_request_forbids_it() -> None:
    broker = one_broker()

    assert errors(broker.ask(API, asked("orders", create=False), 12)) == [UNKNOWN]
    await settled(broker)

    assert created(broker) == []


@on_a_loop
async def test_no_topic_is_created_if_the_settings_forbid_it() -> None:
    broker = one_broker({"auto.create.topics.enable": "false"})

    assert errors(broker.ask(API, asked("orders"), 12)) == [UNKNOWN]
    await settled(broker)

    assert created(broker) == []


@on_a_loop
async def test_invalid_and_internal_names_are_not_sent_to_the_controller() -> None:
    broker = one_broker()

    answer = broker.ask(API, asked("a/b", "__consumer_offsets", "orders"), 12)
    await settled(broker)

    assert errors(answer) == [ErrorCode.INVALID_TOPIC_EXCEPTION, UNKNOWN, UNKNOWN]
    assert created(broker) == [["orders"]]


@on_a_loop
async def test_a_topic_in_creation_is_not_sent_again() -> None:
    broker = one_broker()
    broker.channel.released.clear()
    broker.ask(API, asked("orders"), 12)
    await settled(broker)

    broker.ask(API, asked("orders", "visits"), 12)
    await settled(broker)

    assert created(broker) == [["orders"], ["visits"]]
    broker.channel.released.set()
    await settled(broker)
    assert sorted(broker.image.topics) == ["orders", "visits"]
    assert broker.services.auto_topics.in_flight == set()


@on_a_loop
async def test_a_refused_topic_stays_unknown_and_may_be_retried() -> None:
    broker = one_broker({"default.replication.factor": "3"})

    for _ in range(2):
        assert errors(broker.ask(API, asked("orders"), 12)) == [UNKNOWN]
        await settled(broker)

    assert created(broker) == [["orders"], ["orders"]]
    assert not broker.image.topics


@on_a_loop
async def test_a_name_that_collides_with_another_is_unknown_too() -> None:
    broker = one_broker()
    broker.create("a.b")

    assert errors(broker.ask(API, asked("a_b"), 12)) == [UNKNOWN]
    await settled(broker)

    assert list(broker.image.topics) == ["a.b"]


@on_a_loop
async def test_the_number_of_topics_in_creation_is_limited() -> None:
    broker = one_broker()
    broker.channel.released.clear()

    await broker.ask_and_wait(API, asked(*(f"t{number}" for number in range(IN_FLIGHT_MAX + 5))), 12)
    broker.ask(API, asked("one-more"), 12)
    await settled(broker)

    assert sum(map(len, created(broker))) == IN_FLIGHT_MAX
    broker.channel.released.set()
    await settled(broker)
    broker.ask(API, asked("one-more"), 12)
    await settled(broker)
    assert "one-more" in broker.image.topics


@on_a_loop
async def test_topics_in_creation_are_forgotten_when_the_broker_stops() -> None:
    broker = one_broker()
    broker.channel.released.clear()
    broker.ask(API, asked("orders"), 12)
    await settled(broker)

    await broker.services.tasks.close()

    assert broker.services.auto_topics.in_flight == set()
