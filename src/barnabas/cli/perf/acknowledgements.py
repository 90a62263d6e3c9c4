"""Measure the latency from sending each record to its acknowledgement.

Records of a partition are acknowledged in order, so one task per partition awaits them and wakes once per
batch. The figures equal those of a callback per record, at a fraction of the cost.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from barnabas.base.errors import BarnabasError
from barnabas.cli.perf.latency import Latencies
from barnabas.cli.tool import note, reason

if TYPE_CHECKING:
    from barnabas.client.producer.delivery import Delivery


# A record or a batch in flight: delivery, number of records, bytes, send time, and whether it was sent after
# the warm-up. A plain tuple, because one is created for every record.
Sent: TypeAlias = tuple[Any, int, int, float, bool]

# At most this many different errors are printed; records with further errors are only counted.
REASONS_MAX: Final = 20
OTHER_REASONS: Final = "other errors"


def now_ms() -> float:
    return time.monotonic() * 1000.0


class _PartitionQueue:
    """The records in flight to one partition, in order."""

    def __init__(self) -> None:
        self.sent: deque[Sent] = deque()
        # Whether the task waits for `filled`, and whether all records have been sent.
        self.is_waiting = False
        self.is_complete = False
        self.filled = asyncio.Event()


class Acknowledgements:
    """add() what was sent; all() waits for the last acknowledgement. Handles a single topic."""

    def __init__(self, whole: Latencies, on_progress: Callable[[int], None]) -> None:
        self._whole = whole
        # Figures of the records sent after the warm-up; None during it.
        self.steady: Latencies | None = None
        self._on_progress = on_progress
        self._queues: dict[int, _PartitionQueue] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self.failed: dict[str, int] = {}

    def add(self, delivery: "Delivery", records: int, size: int, sent_ms: float) -> None:
        queue = self._queues.get(delivery.partition)
        if queue is None:
            queue = self._queues[delivery.partition] = _PartitionQueue()
            self._tasks.append(asyncio.create_task(self._follow(queue)))
        queue.sent.append((delivery, records, size, sent_ms, self.steady is not None))
        if queue.is_waiting:
            queue.is_waiting = False
            queue.filled.set()

    async def all(self) -> None:
        """Wait until nothing is in flight. Raises unexpected errors of the tasks."""
        for queue in self._queues.values():
            queue.is_complete = True
            queue.filled.set()
        await asyncio.gather(*self._tasks)

    def cancel(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def _follow(self, queue: _PartitionQueue) -> None:
        while True:
            if queue.sent:
                await _settled(queue.sent[0][0])
                self._take_done(queue.sent, now_ms())
            elif queue.is_complete:
                return
            else:
                queue.filled.clear()
                queue.is_waiting = True
                await queue.filled.wait()

    def _take_done(self, sent: deque[Sent], at_ms: float) -> None:
        """Remove finished records from the queue and count them, with one call for equal latencies."""
        run_ms, run_steady = -1, False
        run_records = run_size = 0
        while sent:
            delivery, records, size, sent_ms, steady = sent[0]
            try:
                error = delivery.exception()
            except asyncio.InvalidStateError:
                break
            sent.popleft()
            if error is not None:
                self._report_failure(records, error)
                continue
            latency_ms = int(at_ms - sent_ms)
            if latency_ms != run_ms or steady is not run_steady:
                self._count(run_records, run_ms, run_size, at_ms, run_steady)
                run_ms, run_steady = latency_ms, steady
                run_records = run_size = 0
            run_records += records
            run_size += size
        self._count(run_records, run_ms, run_size, at_ms, run_steady)
        self._on_progress(self._whole.count)

    def _count(self, records: int, latency_ms: int, size: int, at_ms: float, steady: bool) -> None:
        if not records:
            return
        self._whole.record_many(records, latency_ms, size, at_ms)
        if steady and self.steady is not None:
            self.steady.record_many(records, latency_ms, size, at_ms)

    def _report_failure(self, records: int, error: BaseException) -> None:
        """Print each error once and count its records: a broker that goes away fails all of them."""
        why = reason(error) if isinstance(error, BarnabasError) else repr(error)
        if why not in self.failed and len(self.failed) < REASONS_MAX:
            note(why)
        elif why not in self.failed:
            why = OTHER_REASONS
        self.failed[why] = self.failed.get(why, 0) + records


async def _settled(delivery: "Delivery") -> None:
    """Wait until the delivery has succeeded or failed."""
    try:
        await delivery
    except BarnabasError:
        # _take_done() reports it.
        return
