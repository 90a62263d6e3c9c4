"""An event with a timeout for one waiting task, cheaper than asyncio.Event with asyncio.timeout."""

import asyncio


class Alarm:
    """Wakes one task. A call while the task is awake makes its next sleep() return at once."""

    def __init__(self) -> None:
        self._called = False
        self._sleeper: asyncio.Future[None] | None = None

    def call(self) -> None:
        self._called = True
        if self._sleeper is not None and not self._sleeper.done():
            self._sleeper.set_result(None)

    async def sleep(self, timeout_ms: float | None = None) -> None:
        """Sleep until call() or the timeout."""
        if not self._called and (timeout_ms is None or timeout_ms > 0):
            loop = asyncio.get_running_loop()
            assert self._sleeper is None, "a second task sleeps"
            self._sleeper = sleeper = loop.create_future()
            timer = None if timeout_ms is None else loop.call_later(timeout_ms / 1000, _wake, sleeper)
            try:
                await sleeper
            finally:
                self._sleeper = None
                if timer is not None:
                    timer.cancel()
        self._called = False


def _wake(sleeper: "asyncio.Future[None]") -> None:
    if not sleeper.done():
        sleeper.set_result(None)
