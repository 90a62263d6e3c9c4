"""Write records to standard output and count them.

A reader of the output, such as a pager, may pause, and then a write blocks. A group member must not block the
event loop: it would miss heartbeats and lose its partitions. Its writes therefore run in a thread.
"""

import asyncio
import sys
from collections.abc import Sequence
from typing import Any

from barnabas.base.errors import BarnabasError
from barnabas.cli.console.formatters import Formatter
from barnabas.cli.tool import note, reason


class OutputClosed(BarnabasError):
    """The reader of our output has closed it."""


class Printer:
    """Writes records to standard output and counts them."""

    def __init__(self, formatter: Formatter, *, skip_errors: bool, in_thread: bool) -> None:
        self._formatter = formatter
        self._skip_errors = skip_errors
        self._in_thread = in_thread
        # `count` records were passed to print(); `done` of them are written or skipped.
        self.count = 0
        self.done = 0

    async def print(self, messages: Sequence[Any]) -> None:
        """Format and write the records. A cancelled write still completes."""
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
            # Records before one that cannot be printed are written.
            await self._write(b"".join(pieces))

    async def _write(self, data: bytes) -> None:
        try:
            if self._in_thread and data:
                from barnabas.client.shared import to_its_end

                await to_its_end(asyncio.to_thread(self._write_out, data))
            else:
                self._write_out(data)
        except BrokenPipeError:
            # It is unknown how much the reader has read.
            raise OutputClosed("standard output is closed") from None

    def _write_out(self, data: bytes) -> None:
        if data:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        self.done = self.count
