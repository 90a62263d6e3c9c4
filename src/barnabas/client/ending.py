"""Closing of clients, even if the caller is cancelled."""

import asyncio
from collections.abc import Coroutine
from typing import Any, Final

# Longest delivery when a producer's block is left by Ctrl-C or cancellation. A responsive broker needs far
# less; without a broker it would take delivery.timeout.ms, two minutes.
INTERRUPTED_CLOSE_MS: Final = 5_000.0


def close_timeout_ms(left_by: type[BaseException] | None) -> float | None:
    """Return how long a producer may deliver at the end of its `with` block, None for as long as it takes."""
    is_interrupted = left_by is not None and not issubclass(left_by, Exception)
    return INTERRUPTED_CLOSE_MS if is_interrupted else None


async def to_its_end(work: Coroutine[Any, Any, None]) -> None:
    """Finish `work` even if the caller is cancelled, then raise the cancellation. Only for quick work."""
    task = asyncio.get_running_loop().create_task(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    task.result()
    if cancelled is not None:
        raise cancelled
