"""The signals of a serving process, handled whatever else it is doing.

SIGTERM and SIGINT stop it cleanly within a time; a second one ends it at once. SIGHUP is logged and ignored,
unless the terminal of the process is gone: then it stops it as well. Two threads wait for all this, because
the event loop may be busy, or blocked by a disk or a full pipe. Neither of them logs or takes a lock that
others hold: a process whose log cannot be written must end all the same.
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

# A terminal's Ctrl-C reaches a wrapper and us, and the wrapper passes it on: two signals this close are one.
ONE_PRESS_S: Final = 0.25
# The last line of the log may take so long; then the process ends without it.
LAST_LINE_S: Final = 0.5
FORCED: Final = 1

_STOPPING: Final = (signal.SIGINT, signal.SIGTERM)


class StopSignals:
    """The first one asks for a clean stop. A later one, if that takes too long, ends the process as it is."""

    def __init__(
        self, stop: Callable[[str], None], end: Callable[[str], None], now: Callable[[], float]
    ) -> None:
        self._stop = stop
        self._end = end
        self._now = now
        self._first_at: float | None = None

    def told(self, number: int) -> None:
        name = signal.Signals(number).name
        if self._first_at is None:
            self._first_at = self._now()
            self._stop(name)
        elif self._now() - self._first_at >= ONE_PRESS_S:
            # Like a crash: what was acknowledged is not lost, and the next start recovers the logs.
            self._end(f"stopped at once signal={name}")


class Deadline:
    """Ends the process if that has not ended by itself within the time from begin()."""

    def __init__(self, timeout_s: float, end: Callable[[str], None]) -> None:
        self._timeout_s = timeout_s
        self._end = end
        self._begun = threading.Event()
        self._stopped = threading.Event()
        # Made now: a process that has to be ended may be one that can make no thread any more.
        self._thread = threading.Thread(target=self._run, name="barnabas-deadline", daemon=True)
        self._thread.start()

    def begin(self) -> None:
        self._begun.set()

    def close(self) -> None:
        """There is nothing to end any more."""
        self._stopped.set()
        self._begun.set()
        self._thread.join()

    def _run(self) -> None:
        self._begun.wait()
        if not self._stopped.wait(self._timeout_s):
            self._end(f"stop timed out, ended at once timeout_s={self._timeout_s:g}")


class Terminal:
    """The terminal that a process was started in, if there is one."""

    def __init__(self) -> None:
        self._files = [number for number in (0, 1, 2) if _is_terminal(number)]

    def is_gone(self) -> bool:
        asked = select.poll()
        for number in self._files:
            asked.register(number, 0)
        return any(events & select.POLLHUP for _, events in asked.poll(0))


class SignalThread:
    """Signals of the whole process come here. Make it before any other thread.

    `run_in_loop` has the event loop call something. The signals stay with this thread until the process has
    ended, so that none interrupts the end.
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
            # nohup has it ignored.
            numbers.add(signal.SIGHUP)
        # Inherited by every thread that is started from here on: else the kernel could choose one of them.
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
                self._stop_signals.told(number)

    def _begin_stop(self, name: str) -> None:
        self.deadline.begin()

        def stop() -> None:
            logger.info("stopping signal=%s", name)
            self._stop()

        self._later(stop)

    def _later(self, work: Callable[[], None]) -> None:
        # A loop that is closed already: the process is about to end.
        with suppress(RuntimeError):
            self._run_in_loop(work)


def end_process(why: str) -> None:
    """End now, with exit code 1, and say why if the log takes the line."""

    def say() -> None:
        logger.warning(why)

    # The log may be what the process is stuck in.
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
