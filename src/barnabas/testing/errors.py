"""Errors of the test kit.

A broker that cannot start raises its own error (InvalidSetting, OSError, ...), with its last log lines as a
note.
"""

from collections.abc import Sequence

from barnabas.base.errors import BarnabasError


class BrokerStopped(BarnabasError):
    """The broker is not running: not started yet, in down(), or stopped."""


class BrokerDied(BarnabasError):
    """A running broker failed fatally. `__cause__` is the error."""

    def __init__(self, cause: BaseException, log: Sequence[str]) -> None:
        super().__init__(f"the broker died: {type(cause).__name__}: {cause}")
        self.__cause__ = cause
        self.cause = cause
        self.log = tuple(log)
        note_log(self, log)


class BrokerStuck(BarnabasError):
    """The broker did not respond within the timeout."""

    def __init__(self, what: str, timeout_s: float, log: Sequence[str]) -> None:
        super().__init__(f"the broker has not {what} within {timeout_s:g} s")
        note_log(self, log)


class StartedElsewhere(BarnabasError):
    """This process is a fork of the one with the broker; the broker's thread is not in the fork."""

    def __init__(self, *, started_in: int, here: int) -> None:
        super().__init__(
            f"the broker was started in process {started_in}; its fork {here} has no thread of the broker. "
            "Clients in the fork can connect to it while it runs; to start a broker in the fork, create it "
            "after the fork"
        )
        self.started_in = started_in
        self.here = here


class NoMemoryFiles(BarnabasError):
    """storage='memory' was requested, but there is no usable memory file system."""

    def __init__(self, place: str, why: str) -> None:
        super().__init__(f"{place} {why}; use storage='disk', or storage='auto' to fall back to the disk")


class WaitTimedOut(BarnabasError, AssertionError):
    """A condition was not met within the timeout. An AssertionError, so pytest reports a failed test."""

    def __init__(self, what: str, *, timeout_s: float, seen: str) -> None:
        super().__init__(f"waited {timeout_s:g} s for {what}; {seen}")
        self.what = what
        self.timeout_s = timeout_s
        self.seen = seen


def note_log(error: BaseException, log: Sequence[str]) -> None:
    """Add the last log lines of the broker as a note to the error."""
    if log:
        error.add_note("last log lines of the broker:\n" + "\n".join(log))
