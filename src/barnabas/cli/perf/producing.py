"""Send records at full speed or at a fixed rate: the implementation of producer-perf-test.

With transactions, the figures include the time of commits but not of InitProducerId, and a failed delivery
ends the test because its transaction cannot be committed. Both are as in Kafka's tool.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from barnabas.base.values import value
from barnabas.cli.perf.acknowledgements import Acknowledgements, now_ms
from barnabas.cli.perf.latency import Latencies
from barnabas.cli.perf.payloads import Payload
from barnabas.cli.progress import Progress
from barnabas.cli.tool import ToolFailed, note, started

if TYPE_CHECKING:
    from barnabas.client.producer.producer import Producer

# Approximate size of a table with --arrow, and its maximum number of rows.
TABLE_BYTES: Final = 1 << 20
TABLE_ROWS_MAX: Final = 10_000
# Shorter waits are too short for a timer and are accumulated.
WAIT_MS_MIN: Final = 2.0


@value(kw_only=True)
class Test:
    topic: str
    records: int
    warmup_records: int
    # Records per second; negative: no limit.
    rate: float
    reporting_interval_ms: int
    arrow: bool
    payload: Payload
    payload_bytes: int
    # None: send without transactions.
    transaction_duration_ms: int | None


Report = Callable[[dict[str, Any], str], None]


async def measure(settings: dict[str, object], test: Test, report: Report) -> int:
    from barnabas.client.producer.producer import Producer

    progress = Progress("records", test.records)

    def report_below_progress(figures: dict[str, Any], line: str) -> None:
        progress.clear()
        report(figures, line)

    async with started(Producer(settings)) as producer:
        if test.transaction_duration_ms is not None:
            await producer.init_transactions()
        if test.warmup_records:
            warmup = test.warmup_records
            report_below_progress(
                {"warmup_records": warmup},
                f"Warmup first {warmup} records. "
                "Steady state results will print after the complete test summary.",
            )
        whole = Latencies(
            test.records,
            reporting_interval_ms=test.reporting_interval_ms,
            now_ms=now_ms(),
            on_window=report_below_progress,
        )
        sending = _Sending(producer, test, whole, report_below_progress, progress)
        await sending.run()
        for why, records in sending.acknowledgements.failed.items():
            note(f"{records} records were not delivered: {why}")
        report_below_progress(*whole.total(now_ms()))
        steady = sending.acknowledgements.steady
        if steady is not None:
            report_below_progress(*steady.total(now_ms()))
    return 0


class Throttle:
    """Limits a producer to a rate, as Kafka's ThroughputThrottler does. A negative rate is no limit.

    Records are due at fixed intervals. A sender that is early waits until the next record is due; a late one
    does not wait.
    """

    def __init__(self, rate: float, *, now_ms: float) -> None:
        self._started_ms = now_ms
        self._rate = rate

    def wait_ms(self, sent: int, now_ms: float) -> float:
        """Return the wait before the next record after `sent` records; 0 if it may be sent at once."""
        if self._rate < 0:
            return 0.0
        early_ms = self._started_ms + 1000.0 * sent / self._rate - now_ms
        return early_ms if early_ms >= WAIT_MS_MIN else 0.0


class Transactions:
    """Consecutive transactions of a given duration.

    By the rule of Kafka's tool, the sender begins a transaction when none is open, and ends it after the
    first record sent when the duration is over. Commits happen only after a record, so at a low rate
    transactions last longer.
    """

    def __init__(self, producer: "Producer", duration_ms: int) -> None:
        self._producer = producer
        self._duration_ms = duration_ms
        self._due_ms = 0.0
        self.is_open = False

    async def begin(self) -> None:
        await self._producer.begin_transaction()
        self._due_ms = now_ms() + self._duration_ms
        self.is_open = True

    def is_due(self, sent_ms: float) -> bool:
        """Whether a record sent at this time is the last of its transaction."""
        return sent_ms >= self._due_ms

    async def end(self) -> None:
        """Commit the open transaction, if any, after all of its records are delivered."""
        if self.is_open:
            self.is_open = False
            await self._producer.commit_transaction()


class _Sending:
    """Sends the records of one test."""

    def __init__(
        self, producer: "Producer", test: Test, whole: Latencies, report: Report, progress: Progress
    ) -> None:
        self._producer = producer
        self._test = test
        self._whole = whole
        self._report = report
        self.acknowledgements = Acknowledgements(whole, progress.update)
        duration_ms = test.transaction_duration_ms
        self._transactions = None if duration_ms is None else Transactions(producer, duration_ms)

    async def run(self) -> None:
        throttle = Throttle(self._test.rate, now_ms=now_ms())
        try:
            if self._test.arrow:
                await self._send_tables(throttle)
            else:
                await self._send_records(throttle)
            if self._transactions is not None:
                await self._transactions.end()
            await self._producer.flush()
            await self.acknowledgements.all()
        finally:
            self.acknowledgements.cancel()

    def _begin_steady_state(self) -> None:
        """End the warm-up: later records get separate figures, and the overall windows stop printing."""
        self._whole.silent = True
        self.acknowledgements.steady = Latencies(
            self._test.records - self._test.warmup_records,
            reporting_interval_ms=self._test.reporting_interval_ms,
            now_ms=now_ms(),
            steady_state=True,
            on_window=self._report,
        )

    async def _send_records(self, throttle: Throttle) -> None:
        test, send, add = self._test, self._producer.send, self.acknowledgements.add
        payload, topic, unlimited = test.payload, test.topic, test.rate < 0
        steady_from = test.warmup_records or test.records
        transactions = self._transactions
        for number in range(test.records):
            value = payload(number)
            if transactions is not None and not transactions.is_open:
                await transactions.begin()
            if number == steady_from:
                self._begin_steady_state()
            sent_ms = now_ms()
            delivery = await send(topic, value)
            add(delivery, 1, len(value), sent_ms)
            if transactions is not None and transactions.is_due(sent_ms):
                await transactions.end()
            if not unlimited and (wait_ms := throttle.wait_ms(number + 1, sent_ms)):
                await asyncio.sleep(wait_ms / 1000.0)

    async def _send_tables(self, throttle: Throttle) -> None:
        test, number, transactions = self._test, 0, self._transactions
        rows = max(1, min(TABLE_ROWS_MAX, TABLE_BYTES // test.payload_bytes))
        # A table never spans the end of the warm-up.
        for end in (test.warmup_records, test.records):
            while number < end:
                values = [test.payload(each) for each in range(number, min(number + rows, end))]
                table, size = _table(values), sum(map(len, values)) // len(values)
                if transactions is not None and not transactions.is_open:
                    await transactions.begin()
                sent_ms = now_ms()
                for delivery in await self._producer.send_table(test.topic, table):
                    self.acknowledgements.add(delivery, delivery.records, delivery.records * size, sent_ms)
                if transactions is not None and transactions.is_due(sent_ms):
                    await transactions.end()
                number += len(values)
                await asyncio.sleep(throttle.wait_ms(number, now_ms()) / 1000.0)
            if number < test.records and number:
                self._begin_steady_state()


def _table(values: list[bytes]) -> Any:
    try:
        import pyarrow as pa
    except ImportError:
        raise ToolFailed("--arrow needs pyarrow: pip install 'barnabas[arrow]'") from None
    return pa.table({"value": pa.array(values, pa.binary())})
