"""The time at which the markers of a decided transaction are written."""

import asyncio

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.coordinators.txn.table import MarkersToWrite
from barnabas.server.coordination.markers import MarkerDesk

pytestmark = pytest.mark.kernel

PARTITIONS = frozenset({TopicPartition("orders", 0)})


def markers_of(transactional_id: str) -> MarkersToWrite:
    return MarkersToWrite(
        transactional_id=transactional_id,
        producer_id=7,
        producer_epoch=0,
        commit=True,
        partitions=PARTITIONS,
        coordinator_epoch=0,
        transaction_version=2,
    )


def test_responses_of_an_iteration_are_sent_before_markers_are_written() -> None:
    async def story() -> None:
        happened: list[str] = []
        desk = MarkerDesk(lambda ended: happened.append(ended.transactional_id))
        desk.give(markers_of("first"))
        desk.give(markers_of("second"))
        # As an answer is, which is put on its way after the decision.
        asyncio.get_running_loop().call_soon(happened.append, "answer")

        await asyncio.sleep(0)
        await asyncio.sleep(0)

        assert happened == ["answer", "first", "second"]

    asyncio.run(story())


def test_flush_writes_queued_markers_at_once_and_only_once() -> None:
    async def story() -> None:
        happened: list[str] = []
        desk = MarkerDesk(lambda ended: happened.append(ended.transactional_id))
        desk.give(markers_of("first"))

        desk.flush()

        assert happened == ["first"]
        await asyncio.sleep(0)
        desk.give(markers_of("second"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert happened == ["first", "second"]

    asyncio.run(story())
