"""How the end of a client is carried out, also when whoever waits for it gives up."""

import asyncio
from collections.abc import Coroutine
from typing import Any, Final

# How long a producer delivers when its block is left by Ctrl-C or a cancellation. With a broker that answers
# it takes far less; without one it would take delivery.timeout.ms, two minutes.
INTERRUPTED_CLOSE_MS: Final = 5_000.0


def close_timeout_ms(left_by: type[BaseException] | None) -> float | None:
    """Return how long a producer may deliver at the end of its `with` block, None for as long as it takes."""
    is_interrupted = left_by is not None and not issubclass(left_by, Exception)
    return INTERRUPTED_CLOSE_MS if is_interrupted else None


async def to_its_end(work: Coroutine[Any, Any, None]) -> None:
    """Do it all, also if whoever waits is cancelled; that is raised afterwards. For what takes no time."""
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
