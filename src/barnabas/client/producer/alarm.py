"""How a task sleeps until it is called or until a time: an event with a time-out, for one sleeper."""

import asyncio


class Alarm:
    """For one sleeper. A call while it is awake lets it not fall asleep the next time."""

    def __init__(self) -> None:
        self._called = False
        self._sleeper: asyncio.Future[None] | None = None

    def call(self) -> None:
        self._called = True
        if self._sleeper is not None and not self._sleeper.done():
            self._sleeper.set_result(None)

    async def sleep(self, timeout_ms: float | None = None) -> None:
        """Until it is called, at most so long."""
        if not self._called and (timeout_ms is None or timeout_ms > 0):
            loop = asyncio.get_running_loop()
            assert self._sleeper is None, "there is one sleeper"
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
