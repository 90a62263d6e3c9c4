"""Tasks that have an owner: whoever starts them waits for them, and sees what goes wrong in them."""

import asyncio
from collections.abc import Coroutine
from typing import Any


async def together(*work: Coroutine[Any, Any, None]) -> None:
    """Run all of it at once and wait for the end. The first error stops the others and is raised as it is.

    A TaskGroup raises a group even for one error, and then `except OSError` does not see an OSError.
    """
    try:
        async with asyncio.TaskGroup() as group:
            for one in work:
                group.create_task(one)
    except BaseExceptionGroup as errors:
        first: BaseException = errors
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        raise first from None
