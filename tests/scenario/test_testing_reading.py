"""Reading a topic in tests: all records, or a number of records to wait for.

What they are told when that does not come is in simulation/, where waiting costs nothing.
"""

import asyncio
import threading
from collections.abc import Iterator

import pytest

from barnabas.client.errors import UnknownTopic
from barnabas.testing import (
    Broker,
    BrokerStopped,
    records_async,
    wait_for_offset_async,
    wait_for_records,
    wait_for_records_async,
)
from support.kit import produce


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def topic(broker: Broker, request: pytest.FixtureRequest) -> str:
    return broker.create_topic(request.node.name[:200], partitions=2)


def test_records_are_sorted_by_partition_and_offset(broker: Broker, topic: str) -> None:
    # Large records, so that a fetch returns one or two per partition, alternating.
    large = b"x" * 900_000
    produce(broker.bootstrap, topic, large, large, b"last", partition=1)
    produce(broker.bootstrap, topic, b"first", large, large, partition=0)

    found = broker.records(topic)

    assert [(one.partition, one.offset) for one in found] == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    assert (found[0].value, found[5].value) == (b"first", b"last")


def test_an_empty_topic_has_no_records(broker: Broker, topic: str) -> None:
    assert broker.records(topic) == []


def test_a_missing_topic_is_an_error_and_is_not_created(broker: Broker) -> None:
    with pytest.raises(UnknownTopic, match="topic nobody-made-it"):
        broker.records("nobody-made-it")

    assert not list(broker.directory.glob("nobody-made-it-*"))


def test_existing_records_are_returned_at_once(broker: Broker, topic: str) -> None:
    produce(broker.bootstrap, topic, b"one", b"two", b"three")

    assert [one.value for one in broker.wait_for_records(topic, 2)] == [b"one", b"two"]


def test_later_records_and_their_topic_are_waited_for(broker: Broker) -> None:
    later = threading.Timer(0.05, produce, [broker.bootstrap, "made-later", b"one"])
    later.start()

    found = broker.wait_for_records("made-later")

    later.join()
    assert [one.value for one in found] == [b"one"]


def test_wait_for_offset_waits(broker: Broker, topic: str) -> None:
    produce(broker.bootstrap, topic, b"one", b"two", partition=1)

    assert broker.wait_for_offset(topic, 1, partition=1) == 2


def test_every_function_has_an_async_variant(broker: Broker, topic: str) -> None:
    produce(broker.bootstrap, topic, b"one")

    async def story() -> None:
        assert [one.value for one in await records_async(broker.bootstrap, topic)] == [b"one"]
        assert [one.value for one in await wait_for_records_async(broker.bootstrap, topic)] == [b"one"]
        assert await wait_for_offset_async(broker.bootstrap, topic, 1) == 1
        # The blocking function works although an event loop is running here.
        assert len(wait_for_records(broker.bootstrap, topic)) == 1

    asyncio.run(story())


def test_a_stopped_broker_raises_instead_of_waiting() -> None:
    with Broker(topics=["orders"]) as broker:
        pass

    with pytest.raises(BrokerStopped):
        broker.wait_for_records("orders")
