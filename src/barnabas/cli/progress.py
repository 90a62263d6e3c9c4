"""A progress line at the bottom of a terminal: on stderr, and only if stderr is a terminal.

The line is redrawn at most a few times a second; clear() erases it before other output. If stderr is a file
or a pipe, nothing is written.
"""

import sys
import time
from typing import Final, TextIO

REDRAW_INTERVAL_S: Final = 0.1
# A narrow terminal would wrap a longer line, and a wrapped line cannot be overwritten.
WIDTH_MAX: Final = 79
_ERASE_LINE: Final = "\r\x1b[K"


class Progress:
    """Call update(done) as often as needed, and clear() before other output and at the end."""

    def __init__(self, what: str, total: int | None = None, *, to: TextIO | None = None) -> None:
        self._what = what
        self._total = total
        self._to = sys.stderr if to is None else to
        self.shown = self._to.isatty()
        self._started = time.monotonic()
        self._drawn_at = float("-inf")
        self._on_screen = False

    def update(self, done: int) -> None:
        if not self.shown:
            return
        now = time.monotonic()
        if now - self._drawn_at < REDRAW_INTERVAL_S:
            return
        self._drawn_at = now
        line = progress_line(self._what, done, self._total, now - self._started)
        self._to.write(_ERASE_LINE + line)
        self._to.flush()
        self._on_screen = True

    def clear(self) -> None:
        if self._on_screen:
            self._to.write(_ERASE_LINE)
            self._to.flush()
            self._on_screen = False
            # Other output follows; the line may be redrawn right after it.
            self._drawn_at = float("-inf")


def progress_line(what: str, done: int, total: int | None, elapsed_s: float) -> str:
    """`1,234,000 of 5,000,000 records (24 %), 512,345/s`."""
    line = f"{done:,}"
    if total is not None:
        percent = 100 * done // total if total else 100
        line += f" of {total:,} {what} ({percent} %)"
    else:
        line += f" {what}"
    if elapsed_s > 0:
        line += f", {done / elapsed_s:,.0f}/s"
    return line[:WIDTH_MAX]
