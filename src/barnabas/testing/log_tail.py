"""The last lines that a broker inside a test logged, for the error that follows them.

Nothing of the process' logging is configured: what is logged at all is up to the levels that the user has set
(warnings, unless told otherwise), and every line goes on to the user's handlers. One handler at `barnabas`
listens while there is a broker. A broker is known by its thread, in which all of its work is done.
"""

import logging
import threading
from collections import deque
from typing import Final

from barnabas.base.structured_log import TextFormatter

LINES_MAX: Final = 50
_LOGGER: Final = "barnabas"


class LogTails(logging.Handler):
    """One for all brokers of a process: which thread's lines are kept, and where."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(TextFormatter())
        self._tails: dict[int, deque[str]] = {}
        self._changes = threading.Lock()

    def follow(self, thread: int, tail: "deque[str]") -> None:
        """Keep what this thread logs from here on, until leave()."""
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
            # Without us logging would have shown it there, and it should not be silenced by our listening.
            last_resort.handle(record)

    def _is_alone(self) -> bool:
        return not logging.getLogger().handlers and logging.getLogger(_LOGGER).handlers == [self]


TAILS: Final = LogTails()


def new_tail() -> "deque[str]":
    return deque(maxlen=LINES_MAX)
