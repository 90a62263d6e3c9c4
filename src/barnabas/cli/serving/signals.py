"""Signals of a serving process, handled even while the event loop is blocked.

SIGTERM and SIGINT stop the process cleanly within a timeout; a second one ends it at once. SIGHUP is logged
and ignored, unless the terminal of the process is gone: then it stops the process, too. Two threads wait for
signals and the deadline, because the event loop may be busy, or blocked by a disk or a full pipe. Neither
thread logs or takes a lock that others hold: a process must end even if its log cannot be written.
"""

import logging
import os
import select
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

logger = logging.getLogger("barnabas")

# Ctrl-C reaches a wrapper script and us, and the wrapper forwards it: two signals this close count as one.
ONE_PRESS_S: Final = 0.25
# Time limit for writing the last log line; after it the process ends without the line.
LAST_LINE_S: Final = 0.5
FORCED: Final = 1

_STOPPING: Final = (signal.SIGINT, signal.SIGTERM)


class StopSignals:
    """The first signal requests a clean stop; a later one ends the process at once."""

    def __init__(
        self, stop: Callable[[str], None], end: Callable[[str], None], now: Callable[[], float]
    ) -> None:
        self._stop = stop
        self._end = end
        self._now = now
        self._first_at: float | None = None

    def receive(self, number: int) -> None:
        name = signal.Signals(number).name
        if self._first_at is None:
            self._first_at = self._now()
            self._stop(name)
        elif self._now() - self._first_at >= ONE_PRESS_S:
            # Like a crash: acknowledged records are safe, and the next start recovers the logs.
            self._end(f"stopped at once signal={name}")


class Deadline:
    """Ends the process if it is still running `timeout_s` after begin()."""

    def __init__(self, timeout_s: float, end: Callable[[str], None]) -> None:
        self._timeout_s = timeout_s
        self._end = end
        self._begun = threading.Event()
        self._stopped = threading.Event()
        # Started now: a process that hangs may be unable to start threads.
        self._thread = threading.Thread(target=self._run, name="barnabas-deadline", daemon=True)
        self._thread.start()

    def begin(self) -> None:
        self._begun.set()

    def close(self) -> None:
        """Cancel the deadline."""
        self._stopped.set()
        self._begun.set()
        self._thread.join()

    def _run(self) -> None:
        self._begun.wait()
        if not self._stopped.wait(self._timeout_s):
            self._end(f"stop timed out, ended at once timeout_s={self._timeout_s:g}")


class Terminal:
    """The controlling terminal of the process, if it has one."""

    def __init__(self) -> None:
        self._files = [number for number in (0, 1, 2) if _is_terminal(number)]

    def is_gone(self) -> bool:
        asked = select.poll()
        for number in self._files:
            asked.register(number, 0)
        return any(events & select.POLLHUP for _, events in asked.poll(0))


class SignalThread:
    """Receives the signals of the whole process. Create it before any other thread.

    `run_in_loop` schedules a call in the event loop. This thread keeps the signals until the process has
    ended, so that none interrupts the shutdown.
    """

    def __init__(
        self,
        run_in_loop: Callable[[Callable[[], None]], object],
        stop: Callable[[], None],
        *,
        timeout_s: float,
        end: Callable[[str], None] | None = None,
    ) -> None:
        end = end_process if end is None else end
        numbers = set(_STOPPING)
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            # nohup ignores SIGHUP; leave it ignored.
            numbers.add(signal.SIGHUP)
        # Threads started from here on inherit the mask; otherwise the kernel could deliver signals to them.
        signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
        self.deadline: Final = Deadline(timeout_s, end)
        self._run_in_loop = run_in_loop
        self._stop = stop
        self._stop_signals = StopSignals(self._begin_stop, end, time.monotonic)
        self._terminal = Terminal()
        threading.Thread(target=self._wait, args=(numbers,), name="barnabas-signals", daemon=True).start()

    def _wait(self, numbers: set[signal.Signals]) -> None:
        while True:
            number = signal.sigwait(numbers)
            if number == signal.SIGHUP and not self._terminal.is_gone():
                self._later(lambda: logger.warning("signal ignored signal=SIGHUP"))
            else:
                self._stop_signals.receive(number)

    def _begin_stop(self, name: str) -> None:
        self.deadline.begin()

        def stop() -> None:
            logger.info("stopping signal=%s", name)
            self._stop()

        self._later(stop)

    def _later(self, work: Callable[[], None]) -> None:
        # RuntimeError: the loop is closed, and the process is about to end.
        with suppress(RuntimeError):
            self._run_in_loop(work)


def end_process(why: str) -> None:
    """Exit now with code 1, and log the reason if the log still accepts lines."""

    def say() -> None:
        logger.warning(why)

    # Log in a thread: the process may hang because the log blocks.
    with suppress(RuntimeError):
        last_line = threading.Thread(target=say, daemon=True)
        last_line.start()
        last_line.join(LAST_LINE_S)
    os._exit(FORCED)


def _is_terminal(number: int) -> bool:
    try:
        return os.isatty(number)
    except OSError:
        return False
