"""Read records and print them: the implementation of console-consumer."""

import asyncio
import os
import sys
import time
from typing import TYPE_CHECKING, Final

from barnabas.base.ids import TopicPartition
from barnabas.base.values import value
from barnabas.cli.console.assignment import Assignment
from barnabas.cli.console.formatters import Formatter
from barnabas.cli.console.printing import OutputClosed, Printer
from barnabas.cli.console.signals import EndedBySignal
from barnabas.cli.tool import note, started

if TYPE_CHECKING:
    from barnabas.cli.console.subscription import Subscription
    from barnabas.client.consumer.consumer import Consumer
    from barnabas.client.consumer.message import Message

# Maximum number of records printed at once.
RECORDS_A_TURN: Final = 1000
NO_LIMIT: Final = -1


@value(kw_only=True)
class Wanted:
    """Topics and partitions to read, and when to stop."""

    topic: str | None
    include: str | None
    # Whether a group assigns the partitions.
    in_group: bool
    partition: int | None
    # Start in `partition`: an offset, `earliest` or `latest`.
    begin: int | str
    records_max: int
    # None: no limit.
    idle_ms_max: int | None
    skip_errors: bool


async def consume(settings: dict[str, object], wanted: Wanted, formatter: Formatter) -> int:
    from barnabas.client.consumer.consumer import Consumer

    # Outside of the `try`: after invalid settings no total is printed.
    client = Consumer(settings)
    printer = Printer(formatter, skip_errors=wanted.skip_errors, in_thread=wanted.in_group)
    try:
        async with started(client) as consumer:
            with EndedBySignal() as ended:
                await _read(consumer, _source(consumer, settings, wanted), wanted, printer)
        return ended.exit_code
    except OutputClosed:
        note("Unable to write to standard out, closing consumer.")
        # Otherwise Python would fail again when it flushes stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    finally:
        note(f"Processed a total of {printer.count} messages")


def _source(consumer: "Consumer", settings: dict[str, object], wanted: Wanted) -> "Assignment | Subscription":
    if wanted.in_group:
        from barnabas.cli.console.subscription import Subscription

        return Subscription(consumer, topic=wanted.topic, include=wanted.include)
    return Assignment(
        consumer, settings, topic=wanted.topic, include=wanted.include, partition=wanted.partition
    )


async def _read(
    consumer: "Consumer", source: "Assignment | Subscription", wanted: Wanted, printer: Printer
) -> None:
    try:
        async with asyncio.timeout(None if wanted.idle_ms_max is None else wanted.idle_ms_max / 1000):
            await source.begin()
    except TimeoutError:
        # No topic appeared in time. Kafka's tool does not treat this as an error either.
        return
    if wanted.topic is not None and wanted.partition is not None:
        _seek(consumer, TopicPartition(wanted.topic, wanted.partition), wanted.begin)
    idle_since = time.monotonic()
    while (enough := _enough(wanted, printer.count)) > 0:
        idle_ms = (time.monotonic() - idle_since) * 1000
        if wanted.idle_ms_max is not None and idle_ms > wanted.idle_ms_max:
            return
        wait_ms = source.due_ms
        if wanted.idle_ms_max is not None:
            wait_ms = min(wait_ms, wanted.idle_ms_max - idle_ms + 1)
        messages = await consumer.batch(enough, timeout_ms=wait_ms)
        if messages:
            await _print(consumer, messages, printer)
            idle_since = time.monotonic()
        await source.look_again()


async def _print(consumer: "Consumer", messages: list["Message"], printer: Printer) -> None:
    before = printer.done
    try:
        await printer.print(messages)
    finally:
        _seek_back(consumer, messages[printer.done - before :])


def _seek_back(consumer: "Consumer", messages: list["Message"]) -> None:
    """Seek back to the first unprinted records: closing the consumer commits its positions."""
    first: dict[TopicPartition, int] = {}
    for message in messages:
        first.setdefault(message.tp, message.offset)
    for tp in first.keys() & consumer.assignment:
        consumer.seek(tp, first[tp])


def _seek(consumer: "Consumer", tp: TopicPartition, begin: int | str) -> None:
    match begin:
        case "earliest":
            consumer.seek_to_beginning(tp)
        case "latest":
            consumer.seek_to_end(tp)
        case int():
            consumer.seek(tp, begin)


def _enough(wanted: Wanted, count: int) -> int:
    """Return how many records to request next; 0 when the limit is reached."""
    if wanted.records_max == NO_LIMIT:
        return RECORDS_A_TURN
    return max(0, min(RECORDS_A_TURN, wanted.records_max - count))
