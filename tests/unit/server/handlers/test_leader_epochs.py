"""OffsetForLeaderEpoch: the end offset of an epoch."""

import pytest

from barnabas.protocol.messages.offsets import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from barnabas.server.handlers.leader_epochs import API
from support.hosted import Hosted, hosted, image_of, one_topic, partition_image
from support.log.logs import put
from support.log.managers import on_a_loop

NOT_KNOWN = (-1, -1, 0)


async def ask(
    broker: Hosted, *epochs: int, topic: str = "orders", index: int = 0, current: int = -1, version: int = 4
) -> list[tuple[int, int, int]]:
    """Epoch, end offset and error for every epoch that is asked for."""
    asked = [
        OffsetForLeaderPartition(partition=index, current_leader_epoch=current, leader_epoch=epoch)
        for epoch in epochs
    ]
    body = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic=topic, partitions=asked)])
    answer = await broker.ask(API, body, version)
    return [
        (one.leader_epoch, one.end_offset, one.error_code)
        for topic in answer.topics
        for one in topic.partitions
    ]


async def with_epochs(leader_epoch: int) -> Hosted:
    """Offsets 0-2 are of epoch 2, 3-4 of epoch 5; the leader is of another one perhaps."""
    broker = await hosted(image_of({"orders": [partition_image(epoch=leader_epoch)]}))
    put(broker.log("orders"), b"a", b"b", b"c", epoch=2)
    put(broker.log("orders"), b"d", b"e", epoch=5)
    broker.settle()
    return broker


@pytest.mark.parametrize("version", [2, 3, 4])
@on_a_loop
async def test_an_epoch_ends_where_the_next_begins_and_the_last_with_the_log(version: int) -> None:
    broker = await with_epochs(5)

    answers = await ask(broker, 2, 3, 4, 5, version=version)

    assert answers == [(2, 3, 0), (2, 3, 0), (2, 3, 0), (5, 5, 0)]


@on_a_loop
async def test_later_and_negative_epochs_are_unknown() -> None:
    broker = await with_epochs(5)

    assert await ask(broker, 6, -1) == [NOT_KNOWN, NOT_KNOWN]


@on_a_loop
async def test_an_epoch_before_all_that_is_known_ends_where_those_begin() -> None:
    broker = await with_epochs(5)

    assert await ask(broker, 1, -2) == [(1, 0, 0), (-2, 0, 0)]

    broker.log("orders").advance_start(2)
    assert await ask(broker, -2) == [(-2, 2, 0)]


@on_a_loop
async def test_a_leader_that_has_written_nothing_knows_its_own_epoch() -> None:
    broker = await with_epochs(8)

    assert await ask(broker, 8, 7, 5, 2, 1, 9) == [
        (8, 5, 0),
        (5, 5, 0),
        (5, 5, 0),
        (2, 3, 0),
        (1, 0, 0),
        NOT_KNOWN,
    ]


@on_a_loop
async def test_an_empty_log_is_all_of_its_leaders_epoch() -> None:
    broker = await hosted(image_of({"orders": [partition_image(epoch=3)]}))

    assert await ask(broker, 3, 1, 4, -1, -2) == [(3, 0, 0), (1, 0, 0), NOT_KNOWN, NOT_KNOWN, (-2, 0, 0)]


@on_a_loop
async def test_a_wrong_leader_epoch_is_refused() -> None:
    broker = await with_epochs(5)

    assert await ask(broker, 2, current=5) == [(2, 3, 0)]
    assert await ask(broker, 2, current=6) == [(-1, -1, 75)]
    assert await ask(broker, 2, current=4) == [(-1, -1, 74)]
    assert await ask(broker, 2, current=-7) == [(-1, -1, 74)]


@on_a_loop
async def test_unknown_partitions_and_other_leaders_are_reported() -> None:
    broker = await hosted(image_of({"orders": [partition_image(leader=2, replicas=(1, 2))]}))

    assert await ask(broker, 0, topic="nobody") == [(-1, -1, 3)]
    assert await ask(broker, 0, index=1) == [(-1, -1, 3)]
    assert await ask(broker, 0, index=-1) == [(-1, -1, 3)]
    assert await ask(broker, 0) == [(-1, -1, 6)]


@on_a_loop
async def test_a_duplicate_partition_has_two_results() -> None:
    broker = await one_topic()

    assert await ask(broker, 0, 0) == [(0, 0, 0), (0, 0, 0)]
