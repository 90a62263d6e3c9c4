"""Retry disk work that fails because descriptors or memory are temporarily exhausted."""

import asyncio
import logging
from collections.abc import Callable
from errno import EMFILE, ENFILE, ENOMEM
from typing import Final, TypeVar

from barnabas.base.executor import Executor

T = TypeVar("T")

logger = logging.getLogger(__name__)

# Retries and the pause between them: work fails after a minute.
SHORTAGE_TRIES_MAX: Final = 300
SHORTAGE_PAUSE_S: Final = 0.2

_SHORTAGE: Final = frozenset((EMFILE, ENFILE, ENOMEM))


def is_shortage(error: OSError) -> bool:
    """Whether no descriptor or no memory is left, which is temporary and not a fault of the disk."""
    return error.errno in _SHORTAGE


class RetryingExecutor:
    """Runs idempotent work in the executor, and retries it on a shortage."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    async def run(self, work: Callable[[], T]) -> T:
        for number in range(SHORTAGE_TRIES_MAX):
            try:
                return await self._executor.run(work)
            except OSError as error:
                if not is_shortage(error):
                    raise
                if number == 0:
                    logger.warning("waiting for descriptors or memory error=%s", error)
            await asyncio.sleep(SHORTAGE_PAUSE_S)
        return await self._executor.run(work)
