"""Send each line as a record: the implementation of console-producer.

Records are sent in the order of the input. Without --sync a failed delivery is reported when it is known, and
the program continues, as in Kafka's tool. Results are reported in the order of the records.
"""

import asyncio
import sys
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from barnabas.cli.console.line_reader import LineReader, LineRecord
from barnabas.cli.console.lines import LineSplitter
from barnabas.cli.console.signals import EndedBySignal
from barnabas.cli.console.standard_input import StandardInput
from barnabas.cli.tool import note, print_json, reason, started
from barnabas.client.errors import ClientError

if TYPE_CHECKING:
    from barnabas.client.producer.delivery import Delivered, Delivery
    from barnabas.client.producer.producer import Producer

PROMPT: Final = ">"


async def produce(
    settings: dict[str, object], topic: str, reader: LineReader, *, wait_for_each: bool, as_json: bool
) -> int:
    from barnabas.client.producer.producer import Producer

    async with started(Producer(settings)) as producer:
        lines = LineProducer(producer, topic, as_json=as_json)
        follower = asyncio.create_task(lines.follow())
        try:
            given = StandardInput()
            # A signal ends the input; lines read before it are still sent.
            with EndedBySignal(given.stop) as ended:
                await _each_line(given, reader, lines.send_and_wait if wait_for_each else lines.send)
        finally:
            # Deliver and report all lines read so far, even if a later line is invalid.
            await producer.flush()
            lines.end()
            await follower
    return ended.exit_code


async def _each_line(
    given: StandardInput, reader: LineReader, send: Callable[[LineRecord], Awaitable[None]]
) -> None:
    prompt = _prompt()
    splitter = LineSplitter()
    record: Callable[[bytes], LineRecord] = LineRecord if reader.takes_whole_lines else reader.record
    prompt()
    async for data in given.chunks():
        for line in splitter.feed(data):
            await send(record(line))
            prompt()
    # Ignore an incomplete line at a signal.
    for line in [] if given.stopped else splitter.end():
        await send(record(line))


def _prompt() -> Callable[[], None]:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return lambda: None

    def show() -> None:
        sys.stdout.write(PROMPT)
        sys.stdout.flush()

    return show


class LineProducer:
    """Sends the records of lines and reports their deliveries."""

    def __init__(self, producer: "Producer", topic: str, *, as_json: bool) -> None:
        self._producer = producer
        self._topic = topic
        self._as_json = as_json
        # Records in flight, in the order of the input; bounded by buffer.memory of the producer.
        self._sent: deque[tuple[LineRecord, Delivery]] = deque()
        self._news = asyncio.Event()
        self._ended = False
        self._crash: BaseException | None = None

    async def send_and_wait(self, record: LineRecord) -> None:
        """Send a record, wait for its delivery, and raise its error."""
        delivery = await self._producer.send(self._topic, record.value, record.key, headers=record.headers)
        placed = await delivery
        if self._as_json:
            self._tell(placed)

    async def send(self, record: LineRecord) -> None:
        """Send a record; its error is reported now or later."""
        if self._crash is not None:
            raise self._crash
        value, key, headers = record
        try:
            delivery = await self._producer.send(self._topic, value, key, headers=headers)
        except ClientError as error:
            self._tell_failure(record, error)
            return
        self._sent.append((record, delivery))
        if len(self._sent) == 1:
            self._news.set()

    def end(self) -> None:
        """Mark the end of the records."""
        self._ended = True
        self._news.set()

    async def follow(self) -> None:
        """Report deliveries, until end() was called and the last record is delivered."""
        try:
            await self._follow()
        except BaseException as error:
            # Stdout is closed, or a bug of ours: send() raises the error, too, so that the program ends.
            self._crash = error
            raise

    async def _follow(self) -> None:
        while self._sent or not self._ended:
            if not self._sent:
                self._news.clear()
                await self._news.wait()
                continue
            record, delivery = self._sent[0]
            try:
                placed = await delivery
            except ClientError as error:
                self._tell_failure(record, error)
            else:
                if self._as_json:
                    self._tell(placed)
            self._sent.popleft()

    def _tell(self, placed: "Delivered") -> None:
        print_json(
            {
                "topic": placed.topic,
                "partition": placed.partition,
                "offset": placed.offset,
                "timestamp": placed.timestamp_ms,
            }
        )

    def _tell_failure(self, record: LineRecord, error: ClientError) -> None:
        if self._as_json:
            print_json({"topic": self._topic, "error": reason(error)})
            return
        note(
            f"Error when sending message to topic {self._topic} with key: {_size(record.key)}, "
            f"value: {_size(record.value)} with error: {reason(error)}"
        )


def _size(data: bytes | None) -> str:
    return "null" if data is None else f"{len(data)} bytes"
