"""What can go wrong with a broker inside a test, apart from what goes wrong in the broker itself.

A broker that cannot start raises its own error (an InvalidSetting, an OSError, ...), with the tail of its log
as a note.
"""

from collections.abc import Sequence

from barnabas.base.errors import BarnabasError


class BrokerStopped(BarnabasError):
    """There is no broker now: it was not started yet, is down for a while, or was stopped."""


class BrokerDied(BarnabasError):
    """It served, and then something broke that it cannot live without. `__cause__` is that."""

    def __init__(self, cause: BaseException, log: Sequence[str]) -> None:
        super().__init__(f"the broker died: {type(cause).__name__}: {cause}")
        self.__cause__ = cause
        self.cause = cause
        self.log = tuple(log)
        note_log(self, log)


class BrokerStuck(BarnabasError):
    """It does not answer: what it was told has not happened within the time."""

    def __init__(self, what: str, timeout_s: float, log: Sequence[str]) -> None:
        super().__init__(f"the broker has not {what} within {timeout_s:g} s")
        note_log(self, log)


class StartedElsewhere(BarnabasError):
    """This process is a fork of the one with the broker, and its thread is only there."""

    def __init__(self, *, started_in: int, here: int) -> None:
        super().__init__(
            f"the broker was started in process {started_in}, and this is process {here}, a fork of it: "
            "threads do not come along. Clients here can use its address as long as it runs there; "
            "to have a broker here, make one after the fork"
        )
        self.started_in = started_in
        self.here = here


class NoMemoryFiles(BarnabasError):
    """Files in memory were asked for, and there is no place for them."""

    def __init__(self, place: str, why: str) -> None:
        super().__init__(
            f"{place}: {why}; storage='disk' needs no such place, storage='auto' takes what there is"
        )


class WaitTimedOut(BarnabasError, AssertionError):
    """What a test waited for did not come. For pytest that is a failed assertion."""

    def __init__(self, what: str, *, timeout_s: float, seen: str) -> None:
        super().__init__(f"waited {timeout_s:g} s for {what}; {seen}")
        self.what = what
        self.timeout_s = timeout_s
        self.seen = seen


def note_log(error: BaseException, log: Sequence[str]) -> None:
    """Have a traceback of the error end with what the broker said before it."""
    if log:
        error.add_note("what the broker logged last:\n" + "\n".join(log))
