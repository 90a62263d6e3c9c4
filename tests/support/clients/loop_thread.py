"""An event loop in a thread of its own, for a client of asyncio in a story that is told line by line."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from aiokafka.errors import KafkaError

from support.clients.client import WAIT_SECONDS_MAX, Refused, code_of

T = TypeVar("T")


def refused(error: BaseException) -> Refused:
    return Refused(code_of(getattr(error, "errno", None)), str(error))


class LoopThread:
    """run() waits for a coroutine there."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            bounded = asyncio.wait_for(work, WAIT_SECONDS_MAX)
            return asyncio.run_coroutine_threadsafe(bounded, self._loop).result()
        except KafkaError as error:
            raise refused(error) from None
        except TimeoutError:
            raise AssertionError(f"nothing came of it within {WAIT_SECONDS_MAX} seconds") from None

    def close(self) -> None:
        # A consumer leaves tasks behind that have yet to see that they are cancelled.
        asyncio.run_coroutine_threadsafe(_cancel_all(), self._loop).result(WAIT_SECONDS_MAX)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(WAIT_SECONDS_MAX)
        self._loop.close()


async def _cancel_all() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
