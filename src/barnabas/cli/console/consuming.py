"""From a broker to standard output: the working half of console-consumer."""

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

# So many records are printed at once, if they are there.
RECORDS_A_TURN: Final = 1000
NO_LIMIT: Final = -1


@value(kw_only=True)
class Wanted:
    """What is to be read, and when that is enough."""

    topic: str | None
    include: str | None
    # Whether a group says which partitions are read.
    in_group: bool
    partition: int | None
    # Of `partition`: an offset, or a word for one.
    begin: int | str
    records_max: int
    # None: there is no such limit.
    idle_ms_max: int | None
    skip_errors: bool


async def consume(settings: dict[str, object], wanted: Wanted, formatter: Formatter) -> int:
    from barnabas.client.consumer.consumer import Consumer

    # First: about settings that cannot be there is nothing more to say.
    made = Consumer(settings)
    printer = Printer(formatter, skip_errors=wanted.skip_errors, in_thread=wanted.in_group)
    try:
        async with started(made) as consumer:
            with EndedBySignal() as ended:
                await _read(consumer, _source(consumer, settings, wanted), wanted, printer)
        return ended.exit_code
    except OutputClosed:
        note("Unable to write to standard out, closing consumer.")
        # Python would try once again when it flushes at exit.
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
        # Nothing to read from appeared in time. That is no error to Kafka's tool either.
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
        _hand_back(consumer, messages[printer.done - before :])


def _hand_back(consumer: "Consumer", messages: list["Message"]) -> None:
    """What was not shown is not to be committed: the end commits up to where the consumer stands."""
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
    """How many records are printed at once, if they are there; 0 when there were enough."""
    if wanted.records_max == NO_LIMIT:
        return RECORDS_A_TURN
    return max(0, min(RECORDS_A_TURN, wanted.records_max - count))
