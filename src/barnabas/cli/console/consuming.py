"""From a broker to standard output: the working half of console-consumer."""

import asyncio
import os
import sys
import time
from typing import TYPE_CHECKING, Any, Final

from barnabas.base.errors import BarnabasError
from barnabas.base.ids import TopicPartition
from barnabas.base.values import value
from barnabas.cli.console.assignment import Assignment
from barnabas.cli.console.formatters import Formatter
from barnabas.cli.console.signals import EndedBySignal
from barnabas.cli.tool import note, reason, started

if TYPE_CHECKING:
    from barnabas.client.consumer.consumer import Consumer

# So many records are printed at once, if they are there.
RECORDS_A_TURN: Final = 1000
NO_LIMIT: Final = -1


@value(kw_only=True)
class Wanted:
    """What is to be read, and when that is enough."""

    topic: str | None
    include: str | None
    partition: int | None
    # Of `partition`: an offset, or a word for one.
    begin: int | str
    records_max: int
    # None: there is no such limit.
    idle_ms_max: int | None
    skip_errors: bool


class OutputClosed(BarnabasError):
    """Nobody reads what we print any more."""


async def consume(settings: dict[str, object], wanted: Wanted, formatter: Formatter) -> int:
    from barnabas.client.consumer.consumer import Consumer

    printer = Printer(formatter, skip_errors=wanted.skip_errors)
    try:
        async with started(Consumer(settings)) as consumer:
            with EndedBySignal() as ended:
                await _read(consumer, settings, wanted, printer)
        return ended.exit_code
    except OutputClosed:
        note("Unable to write to standard out, closing consumer.")
        # Python would try once again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    finally:
        note(f"Processed a total of {printer.count} messages")


async def _read(
    consumer: "Consumer", settings: dict[str, object], wanted: Wanted, printer: "Printer"
) -> None:
    assignment = Assignment(
        consumer, settings, topic=wanted.topic, include=wanted.include, partition=wanted.partition
    )
    try:
        async with asyncio.timeout(None if wanted.idle_ms_max is None else wanted.idle_ms_max / 1000):
            await assignment.begin()
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
        wait_ms = assignment.due_ms
        if wanted.idle_ms_max is not None:
            wait_ms = min(wait_ms, wanted.idle_ms_max - idle_ms + 1)
        messages = await consumer.batch(enough, timeout_ms=wait_ms)
        if messages:
            printer.print(messages)
            idle_since = time.monotonic()
        await assignment.look_again()


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


class Printer:
    """Writes records to standard output and counts them."""

    def __init__(self, formatter: Formatter, *, skip_errors: bool) -> None:
        self._formatter = formatter
        self._skip_errors = skip_errors
        self.count = 0

    def print(self, messages: list[Any]) -> None:
        pieces: list[bytes] = []
        try:
            for message in messages:
                self.count += 1
                try:
                    pieces.append(self._formatter(message))
                except BarnabasError as error:
                    if not self._skip_errors:
                        raise
                    note(f"Error processing message, skipping this message: {reason(error)}")
        finally:
            # What was made of the records before one that cannot be printed is printed.
            self._write(b"".join(pieces))

    def _write(self, data: bytes) -> None:
        if not data:
            return
        try:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            raise OutputClosed("standard output is closed") from None
