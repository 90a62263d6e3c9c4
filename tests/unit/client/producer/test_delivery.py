"""Deliveries: the awaitable outcomes of records."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client.errors import Closed
from barnabas.client.producer.batch import Batch
from barnabas.client.producer.delivery import BatchDelivery, Delivered, Delivery, finished
from barnabas.client.producer.queues import PartitionQueue
from barnabas.sim.world import run_sim


def simulated(story: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    def test() -> None:
        run_sim(lambda world: story())

    test.__name__ = story.__name__
    return test


def batch_of(count: int, base_offset: int = -1) -> Batch:
    batch = Batch(PartitionQueue(TopicPartition("orders", 3), idempotent=False), data=b"")
    batch.count = count
    batch.base_offset = base_offset
    return batch


def test_a_pending_delivery_has_no_result() -> None:
    delivery = Delivery(batch_of(1), 0, 5)

    assert not delivery.done()
    with pytest.raises(asyncio.InvalidStateError):
        delivery.result()
    with pytest.raises(asyncio.InvalidStateError):
        delivery.exception()


def test_the_offset_counts_from_that_of_the_batch() -> None:
    batch = batch_of(3, base_offset=100)
    delivery = Delivery(batch, 2, 5)
    batch.finish()

    assert delivery.result() == Delivered("orders", 3, 102, 5)
    assert delivery.exception() is None


def test_the_broker_s_append_time_replaces_the_timestamp() -> None:
    batch = batch_of(1, base_offset=0)
    batch.append_time_ms = 77
    batch.finish()

    assert Delivery(batch, 0, 5).result().timestamp_ms == 77


def test_without_an_offset_the_result_has_offset_minus_one() -> None:
    batch = batch_of(3)
    batch.finish()

    assert Delivery(batch, 2, 5).result().offset == -1


def test_records_have_errors_of_their_own() -> None:
    batch = batch_of(2)
    own, common = Closed("this one"), Closed("all")
    batch.record_errors = {1: own}
    batch.finish(common)

    assert Delivery(batch, 0, 5).exception() is common
    assert Delivery(batch, 1, 5).exception() is own
    for _ in range(3):
        with pytest.raises(Closed) as raised:
            Delivery(batch, 1, 5).result()
    assert len(raised.traceback) < 4, "the traces of others are not in it"


@simulated
async def test_cancelling_one_of_many_waiters_does_not_affect_the_others() -> None:
    batch = batch_of(2, base_offset=10)
    waiting = [asyncio.ensure_future(finished(batch)) for _ in range(3)]
    waiting.append(asyncio.ensure_future(_result(Delivery(batch, 1, 5))))
    await asyncio.sleep(0)
    assert len(batch._callbacks) == 4

    waiting[0].cancel()
    await asyncio.wait([waiting[0]])
    assert len(batch._callbacks) == 3
    batch.finish()
    await asyncio.gather(*waiting[1:])


async def _result(delivery: Delivery) -> None:
    assert (await delivery).offset == 11


@simulated
async def test_callbacks_run_in_the_loop_even_for_a_finished_delivery() -> None:
    batch = batch_of(1, base_offset=1)
    delivery = Delivery(batch, 0, 5)
    called: list[Delivery] = []
    delivery.add_done_callback(called.append)
    batch.finish()
    delivery.add_done_callback(called.append)

    assert called == []
    await asyncio.sleep(0)
    assert called == [delivery, delivery]


@simulated
async def test_a_batch_that_is_split_is_done_when_its_parts_are() -> None:
    batch = batch_of(5)
    first, second = batch_of(2, base_offset=10), batch_of(3, base_offset=50)
    rows = BatchDelivery(batch, 5)
    deliveries = [Delivery(batch, index, 5) for index in range(5)]
    waiting = asyncio.ensure_future(finished(batch))
    await asyncio.sleep(0)

    batch.become([first, second])
    first.finish()
    await asyncio.sleep(0)
    assert [each.done() for each in deliveries] == [True, True, False, False, False]
    assert not rows.done()
    assert not waiting.done()
    second.finish()
    await waiting
    assert [each.result().offset for each in deliveries] == [10, 11, 50, 51, 52]
    assert rows.result().offset == 10
    assert rows.records == 5


def test_a_table_delivery_fails_if_one_part_of_its_batch_fails() -> None:
    batch = batch_of(2)
    good, bad = batch_of(1, base_offset=1), batch_of(1)
    batch.become([good, bad])
    good.finish()
    bad.finish(Closed())

    assert isinstance(BatchDelivery(batch, 5).exception(), Closed)
