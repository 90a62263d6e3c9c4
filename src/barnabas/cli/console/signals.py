"""Ctrl-C and SIGTERM end a tool in good order: it stops what it is at, and goes on to close.

Kafka's tools do the same in a shutdown hook of the JVM, whose exit code is then 128 and the signal's number.
"""

import asyncio
import signal
from collections.abc import Callable
from types import TracebackType
from typing import Final

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
_EXIT_BASE: Final = 128


class EndedBySignal:
    """`with EndedBySignal() as ended: ...` leaves the block when a signal comes; `exit_code` then says so.

    With `stop` the block is not cancelled: that is called, and has to bring the block to its end.
    """

    def __init__(self, stop: Callable[[], None] | None = None) -> None:
        self._stop = stop
        self._came: signal.Signals | None = None

    @property
    def exit_code(self) -> int:
        """0 if none came."""
        return 0 if self._came is None else _EXIT_BASE + self._came

    def __enter__(self) -> "EndedBySignal":
        task = asyncio.current_task()
        assert task is not None, "not in a task"
        self._task = task
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self._end, number)
        return self

    def _end(self, number: signal.Signals) -> None:
        # The second one does not come here: it has its usual effect, for whoever cannot wait for the end.
        self._remove()
        self._came = number
        if self._stop is not None:
            self._stop()
        else:
            # This runs in the loop, so the task stands at some `await` of the block, where it now goes on.
            self._task.cancel()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        if self._came is None:
            self._remove()
            return False
        if self._stop is not None:
            return False
        self._task.uncancel()
        return kind is asyncio.CancelledError

    def _remove(self) -> None:
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
