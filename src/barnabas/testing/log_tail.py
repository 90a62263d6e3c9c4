"""Keep the last log lines of each broker inside a test, for its errors.

The logging of the process is not reconfigured: the levels that the user has set apply (WARNING by default),
and every line still reaches the user's handlers. While a broker runs, one handler is attached to the logger
`barnabas`. Lines are attributed to a broker by its thread, which does all of its work.
"""

import logging
import threading
from collections import deque
from typing import Final

from barnabas.base.structured_log import TextFormatter

LINES_MAX: Final = 50
_LOGGER: Final = "barnabas"


class LogTails(logging.Handler):
    """Handler of all brokers of the process; keeps the lines of each thread in a deque."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(TextFormatter())
        self._tails: dict[int, deque[str]] = {}
        self._changes = threading.Lock()

    def follow(self, thread: int, tail: "deque[str]") -> None:
        """Keep the lines that this thread logs until leave()."""
        with self._changes:
            if not self._tails:
                logging.getLogger(_LOGGER).addHandler(self)
            self._tails[thread] = tail

    def leave(self, thread: int) -> None:
        with self._changes:
            self._tails.pop(thread, None)
            if not self._tails:
                logging.getLogger(_LOGGER).removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        tail = self._tails.get(record.thread or 0)
        if tail is not None:
            tail.append(self.format(record))
        last_resort = logging.lastResort
        if last_resort is not None and record.levelno >= last_resort.level and self._is_alone():
            # Without our handler, logging would print the line to stderr; it must not be lost.
            last_resort.handle(record)

    def _is_alone(self) -> bool:
        return not logging.getLogger().handlers and logging.getLogger(_LOGGER).handlers == [self]


TAILS: Final = LogTails()


def new_tail() -> "deque[str]":
    return deque(maxlen=LINES_MAX)
