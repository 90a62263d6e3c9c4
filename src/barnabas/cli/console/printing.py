"""Records to standard output, and how many of them are there.

Whoever reads our output may stop reading for a while, a pager for example. Then a write waits. A member of a
group must not wait with it: it would fall silent, and the group would give its partitions to others. So its
writes are done in a thread.
"""

import asyncio
import sys
from collections.abc import Sequence
from typing import Any

from barnabas.base.errors import BarnabasError
from barnabas.cli.console.formatters import Formatter
from barnabas.cli.tool import note, reason


class OutputClosed(BarnabasError):
    """Nobody reads what we print any more."""


class Printer:
    """Writes records to standard output and counts them."""

    def __init__(self, formatter: Formatter, *, skip_errors: bool, in_thread: bool) -> None:
        self._formatter = formatter
        self._skip_errors = skip_errors
        self._in_thread = in_thread
        # What we were given to print, and what is done with: a record that cannot be printed is, too.
        self.count = 0
        self.done = 0

    async def print(self, messages: Sequence[Any]) -> None:
        """Whoever cancels this has it done all the same."""
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
            await self._write(b"".join(pieces))

    async def _write(self, data: bytes) -> None:
        try:
            if self._in_thread and data:
                from barnabas.client.ending import to_its_end

                await to_its_end(asyncio.to_thread(self._write_out, data))
            else:
                self._write_out(data)
        except BrokenPipeError:
            # How much of it somebody has seen is not known.
            raise OutputClosed("standard output is closed") from None

    def _write_out(self, data: bytes) -> None:
        if data:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        self.done = self.count
