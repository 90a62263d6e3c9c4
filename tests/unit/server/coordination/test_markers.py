"""Writing the markers of a transaction to real logs: retries, and when another coordinator takes over."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.coordinators.decision.outcome import EndMarker
from barnabas.coordinators.txn.table import MarkersToWrite
from barnabas.protocol.error_codes import ErrorCode
from barnabas.server.coordination.markers import TransactionMarkerManager
from barnabas.sim.world import World, run_sim
from support.hosted import Hosted, image_of, one_topic, partition_image

pytestmark = pytest.mark.kernel

FIRST, SECOND, THIRD = PARTITIONS = tuple(TopicPartition("orders", number) for number in range(3))
PRODUCER, EPOCH, COORDINATOR = 7, 1, 4
ENDED = MarkersToWrite(
    transactional_id="t",
    producer_id=PRODUCER,
    producer_epoch=EPOCH,
    commit=True,
    partitions=frozenset(PARTITIONS),
    coordinator_epoch=COORDINATOR,
    transaction_version=2,
)


class Desk:
    """A broker with the partitions of the transaction, and a record of the coordinator's notifications."""

    def __init__(self, broker: Hosted) -> None:
        self.broker = broker
        self.appender = broker.services.transactions.marker_appender
        self.tried_at: list[float] = []
        self.written: list[frozenset[TopicPartition]] = []
        self.markers = TransactionMarkerManager(
            self.appender,
            image=lambda: broker.services.image,
            is_pending=self._is_pending,
            on_written=lambda _, partitions: self.written.append(partitions),
        )

    def _is_pending(self, _ended: MarkersToWrite) -> bool:
        """Asked once for each attempt."""
        self.tried_at.append(round(asyncio.get_running_loop().time(), 3))
        return True

    def lead(self, tp: TopicPartition, *, here: bool) -> None:
        self.broker.replicas.get(tp).take(partition_image(leader=1 if here else 2))

    def write_by_hand(
        self, tp: TopicPartition, *, epoch: int = EPOCH, coordinator: int = COORDINATOR
    ) -> None:
        told: list[ErrorCode] = []
        self.appender.append(tp, EndMarker(PRODUCER, epoch, False, coordinator, 2), told.append)
        assert told == [ErrorCode.NONE]

    def count_in(self, tp: TopicPartition) -> int:
        return self.broker.log(tp.topic, tp.partition).end_offset

    @property
    def waits(self) -> list[float]:
        """Seconds between attempts."""
        return [round(b - a, 3) for a, b in zip(self.tried_at, self.tried_at[1:], strict=False)]


def told(story: Callable[[Desk], Awaitable[None]]) -> None:
    async def live(_world: World) -> None:
        desk = Desk(await one_topic(partitions=len(PARTITIONS)))
        await story(desk)
        desk.markers.close()

    run_sim(live)


def test_refused_markers_are_retried_with_increasing_delays() -> None:
    async def story(desk: Desk) -> None:
        desk.lead(FIRST, here=False)
        desk.lead(SECOND, here=False)

        desk.markers.write(ENDED)
        await asyncio.sleep(5)

        assert desk.waits == [0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.0, 1.0, 1.0]
        assert desk.written == [{THIRD}]

        desk.lead(FIRST, here=True)
        desk.lead(SECOND, here=True)
        await asyncio.sleep(10)

        assert desk.waits[9:] == [1.0]
        assert desk.written == [{THIRD}, {FIRST, SECOND}]
        # Those that have theirs are left alone.
        assert [desk.count_in(tp) for tp in PARTITIONS] == [1, 1, 1]

    told(story)


def test_nothing_is_retried_after_close() -> None:
    async def story(desk: Desk) -> None:
        desk.lead(FIRST, here=False)
        desk.markers.write(ENDED)

        desk.markers.close()
        desk.lead(FIRST, here=True)
        await asyncio.sleep(5)

        assert len(desk.tried_at) == 1
        assert desk.count_in(FIRST) == 0

    told(story)


def test_a_newer_producer_epoch_in_a_log_skips_its_marker_only(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story(desk: Desk) -> None:
        desk.write_by_hand(FIRST, epoch=EPOCH + 5)
        desk.lead(SECOND, here=False)

        desk.markers.write(ENDED)
        assert desk.written == [{FIRST, THIRD}]
        desk.lead(SECOND, here=True)
        await asyncio.sleep(1)

        assert desk.written == [{FIRST, THIRD}, {SECOND}]
        assert [desk.count_in(tp) for tp in PARTITIONS] == [1, 1, 1]

    told(story)

    assert [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING] == [
        "marker skipped transactional_id=t tp=orders-0 producer_epoch=1 log_epoch=6"
    ]


def test_a_newer_coordinator_epoch_in_a_log_abandons_all_markers() -> None:
    async def story(desk: Desk) -> None:
        desk.write_by_hand(THIRD, coordinator=COORDINATOR + 1)
        desk.lead(SECOND, here=False)

        desk.markers.write(ENDED)
        desk.lead(SECOND, here=True)
        await asyncio.sleep(5)

        assert desk.written == []
        assert len(desk.tried_at) == 1
        assert desk.count_in(SECOND) == 0

    told(story)


# The queue


def queue_noting(happened: list[str]) -> TransactionMarkerManager:
    """Notes the transactions whose markers it would write."""

    def note(ended: MarkersToWrite) -> bool:
        happened.append(ended.transactional_id)
        return False

    services = Hosted(image_of({})).services
    return TransactionMarkerManager(
        services.transactions.marker_appender,
        image=lambda: services.image,
        is_pending=note,
        on_written=lambda *_: None,
    )


def test_responses_of_an_iteration_are_sent_before_markers_are_written() -> None:
    async def story() -> None:
        happened: list[str] = []
        queue = queue_noting(happened)
        queue.give(ENDED._replace(transactional_id="first"))
        queue.give(ENDED._replace(transactional_id="second"))
        # As an answer is, which is put on its way after the decision.
        asyncio.get_running_loop().call_soon(happened.append, "answer")

        await asyncio.sleep(0)
        await asyncio.sleep(0)

        assert happened == ["answer", "first", "second"]

    asyncio.run(story())


def test_flush_writes_queued_markers_at_once_and_only_once() -> None:
    async def story() -> None:
        happened: list[str] = []
        queue = queue_noting(happened)
        queue.give(ENDED._replace(transactional_id="first"))

        queue.flush()

        assert happened == ["first"]
        await asyncio.sleep(0)
        queue.give(ENDED._replace(transactional_id="second"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert happened == ["first", "second"]

    asyncio.run(story())
