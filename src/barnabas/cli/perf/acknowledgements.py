"""When each record that was sent is acknowledged, and how long that took.

The records of a partition are acknowledged in their order, so one task a partition follows them, and wakes
once for a whole batch. That is the same figure as a callback for every record gives, and costs a fraction.
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


# One record or a batch of them on its way: its delivery, how many records and bytes it has, when it was sent,
# and whether that was after the warm-up. A plain tuple, because one is made for every record.
Sent: TypeAlias = tuple[Any, int, int, float, bool]

# Different reasons why records were not delivered that are told; of the others only the number.
REASONS_MAX: Final = 20
OTHER_REASONS: Final = "other errors"


def now_ms() -> float:
    return time.monotonic() * 1000.0


class _Lane:
    """What was sent to one partition, in order."""

    def __init__(self) -> None:
        self.sent: deque[Sent] = deque()
        # Whether its task waits for `filled`, and whether nothing more will be sent.
        self.is_waiting = False
        self.is_whole = False
        self.filled = asyncio.Event()


class Acknowledgements:
    """`add` what was sent; `all()` waits for the last of it. All of it goes to one topic."""

    def __init__(self, whole: Latencies, on_progress: Callable[[int], None]) -> None:
        self._whole = whole
        # The figures of what is sent from now on, once the warm-up is over.
        self.steady: Latencies | None = None
        self._on_progress = on_progress
        self._lanes: dict[int, _Lane] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self.failed: dict[str, int] = {}

    def add(self, delivery: "Delivery", records: int, size: int, sent_ms: float) -> None:
        lane = self._lanes.get(delivery.partition)
        if lane is None:
            lane = self._lanes[delivery.partition] = _Lane()
            self._tasks.append(asyncio.create_task(self._follow(lane)))
        lane.sent.append((delivery, records, size, sent_ms, self.steady is not None))
        if lane.is_waiting:
            lane.is_waiting = False
            lane.filled.set()

    async def all(self) -> None:
        """Wait until nothing is under way. Whatever went wrong in following is raised."""
        for lane in self._lanes.values():
            lane.is_whole = True
            lane.filled.set()
        await asyncio.gather(*self._tasks)

    def cancel(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def _follow(self, lane: _Lane) -> None:
        while True:
            if lane.sent:
                await _settled(lane.sent[0][0])
                self._take_done(lane.sent, now_ms())
            elif lane.is_whole:
                return
            else:
                lane.filled.clear()
                lane.is_waiting = True
                await lane.filled.wait()

    def _take_done(self, sent: deque[Sent], at_ms: float) -> None:
        """Count what is done, together where it took equally long."""
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
                self._tell(records, error)
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

    def _tell(self, records: int, error: BaseException) -> None:
        """Every reason once, and how often it came at the end: a broker that goes away fails all of them."""
        why = reason(error) if isinstance(error, BarnabasError) else repr(error)
        if why not in self.failed and len(self.failed) < REASONS_MAX:
            note(why)
        elif why not in self.failed:
            why = OTHER_REASONS
        self.failed[why] = self.failed.get(why, 0) + records


async def _settled(delivery: "Delivery") -> None:
    """Wait until it is known what became of it, whatever that is."""
    try:
        await delivery
    except BarnabasError:
        # Told by whoever takes it from the lane.
        return
