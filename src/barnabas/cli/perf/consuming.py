"""Read records at full speed: the implementation of consumer-perf-test."""

import asyncio
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from barnabas.base.values import value
from barnabas.cli.console.subscription import subscribe
from barnabas.cli.perf.java_format import DateFormat, without_nan
from barnabas.cli.perf.reading import Reading, header
from barnabas.cli.progress import Progress
from barnabas.cli.tool import ToolFailed, print_json, started

if TYPE_CHECKING:
    from barnabas.client.consumer.consumer import Consumer
    from barnabas.client.consumer.message import Message

# Poll timeout, after which the idle time is checked, as in Kafka's tool.
POLL_MS: Final = 100


@value(kw_only=True)
class Test:
    topic: str | None
    include: str | None
    records: int
    # The test ends if no record arrives for this time.
    idle_ms_max: int
    reporting_interval_ms: int
    detailed: bool
    header: bool
    dates: DateFormat
    arrow: bool
    as_json: bool


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


async def measure(settings: dict[str, object], test: Test) -> int:
    from barnabas.client.consumer.consumer import Consumer

    reporter = _Reporter(test)
    reporter.header()
    async with started(Consumer(settings)) as consumer:
        reading = Reading(test.dates, started_ms=_now_ms(), reporting_interval_ms=test.reporting_interval_ms)
        await _subscribe(consumer, test, reading)
        await _read(consumer, test, _Read(test, reading, reporter))
        if reading.records < test.records:
            reporter.warn(
                "WARNING: Exiting before consuming the expected number of records: timeout "
                f"({test.idle_ms_max} ms) exceeded. You can use the --timeout option to increase the timeout."
            )
        if not test.detailed:
            reporter.report(*reading.total(_now_ms()))
    return 0


async def _subscribe(consumer: "Consumer", test: Test, reading: Reading) -> None:
    rebalancing = reading.rebalancing
    await subscribe(
        consumer,
        topic=test.topic,
        include=test.include,
        on_assigned=lambda tps: rebalancing.assigned(tps, _now_ms()),
        on_revoked=lambda tps: rebalancing.revoked(tps, _now_ms()),
    )


async def _read(consumer: "Consumer", test: Test, read: "_Read") -> None:
    idle_s = test.idle_ms_max / 1000
    if test.arrow:
        await _read_tables(consumer, idle_s, read)
        return
    idle_since = time.monotonic()
    while not read.enough and time.monotonic() - idle_since <= idle_s:
        messages = await consumer.batch(timeout_ms=POLL_MS)
        if messages:
            idle_since = time.monotonic()
            read.add(len(messages), sum(map(_size, messages)))


def _size(message: "Message") -> int:
    """Return the bytes of key and value, the size that Kafka's tool counts."""
    return (0 if message.key is None else len(message.key)) + (
        0 if message.value is None else len(message.value)
    )


async def _read_tables(consumer: "Consumer", idle_s: float, read: "_Read") -> None:
    try:
        import pyarrow.compute as pc
    except ModuleNotFoundError:
        raise ToolFailed("--arrow needs pyarrow: pip install 'barnabas[arrow]'") from None
    tables = consumer.arrow()
    with suppress(TimeoutError):
        while not read.enough:
            async with asyncio.timeout(idle_s):
                table: Any = await anext(tables)
            columns = [pc.sum(pc.binary_length(table.column(name))).as_py() for name in ("key", "value")]
            read.add(table.num_rows, sum(size or 0 for size in columns))


class _Read:
    """Counts the records read so far and compares them with the goal."""

    def __init__(self, test: Test, reading: Reading, reporter: "_Reporter") -> None:
        self._test = test
        self._reading = reading
        self._reporter = reporter

    @property
    def enough(self) -> bool:
        return self._reading.records >= self._test.records

    def add(self, records: int, size: int) -> None:
        for figures, line in self._reading.add(records, size, _now_ms()):
            if self._test.detailed:
                self._reporter.report(figures, line)
        self._reporter.progress.update(self._reading.records)


class _Reporter:
    """Prints results to stdout: Kafka's lines, or one JSON object per line."""

    def __init__(self, test: Test) -> None:
        self._test = test
        self.progress = Progress("records", test.records)

    def header(self) -> None:
        if self._test.header and not self._test.as_json:
            print(header(detailed=self._test.detailed), flush=True)

    def warn(self, line: str) -> None:
        self.progress.clear()
        print(line, file=sys.stderr if self._test.as_json else sys.stdout)

    def report(self, figures: dict[str, Any], line: str) -> None:
        self.progress.clear()
        if self._test.as_json:
            print_json(without_nan(figures))
        else:
            print(line)
        sys.stdout.flush()
