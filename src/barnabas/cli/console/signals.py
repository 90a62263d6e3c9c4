"""End a tool cleanly on Ctrl-C and SIGTERM: it stops its work and closes its client.

Kafka's tools do the same in a shutdown hook of the JVM, whose exit code is then 128 plus the signal number.
"""

import asyncio
import signal
from collections.abc import Callable
from types import TracebackType
from typing import Final

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
_EXIT_BASE: Final = 128


class EndedBySignal:
    """A signal ends the `with` block; `exit_code` then reports it.

    With `stop`, a signal calls stop() instead of cancelling the block, and stop() must make the block end.
    """

    def __init__(self, stop: Callable[[], None] | None = None) -> None:
        self._stop = stop
        self._received: signal.Signals | None = None

    @property
    def exit_code(self) -> int:
        """128 plus the signal number; 0 without a signal."""
        return 0 if self._received is None else _EXIT_BASE + self._received

    def __enter__(self) -> "EndedBySignal":
        task = asyncio.current_task()
        assert task is not None, "not in a task"
        self._task = task
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self._end, number)
        return self

    def _end(self, number: signal.Signals) -> None:
        # A second signal has its default effect, so that a user can end a slow shutdown.
        self._remove()
        self._received = number
        if self._stop is not None:
            self._stop()
        else:
            # This runs in the event loop, so the task is suspended at an `await` of the block.
            self._task.cancel()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        if self._received is None:
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
