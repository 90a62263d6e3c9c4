"""Starting, mirroring and closing an async client that runs in the loop of a thread of its own.

mirrored() declares a blocking method that calls an async one and waits: same arguments, result and errors.
"""

import functools
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from barnabas.client.blocking.loop_thread import LoopThread
from barnabas.client.errors import Closed


class AsyncClient(Protocol):
    async def start(self) -> None: ...

    async def close(self) -> None: ...

    async def _disconnect(self) -> None: ...


C = TypeVar("C", bound=AsyncClient)
C_co = TypeVar("C_co", bound=AsyncClient, covariant=True)
P = ParamSpec("P")
T = TypeVar("T")


class BlockingClient(Protocol[C_co]):
    """A blocking client: its thread, and the async client in it."""

    @property
    def _thread(self) -> LoopThread: ...

    @property
    def _client(self) -> C_co: ...


def start_client(name: str, make: Callable[[], C]) -> tuple[LoopThread, C]:
    """Start an async client in a new thread. If that fails, raise the error and leave no thread behind."""
    thread = LoopThread(f"barnabas {name}")
    try:
        client = thread.run(_started(make))
    except BaseException:
        thread.close()
        raise
    thread.disconnects.append(client._disconnect)
    return thread, client


async def _started(make: Callable[[], C]) -> C:
    client = make()
    try:
        await client.start()
    except BaseException:
        await client.close()
        raise
    return client


def close_client(client: BlockingClient[AsyncClient]) -> None:
    """Close the async client and end its thread. May be called repeatedly, and by several threads."""
    if not client._thread.closed:
        try:
            client._thread.run(client._client.close())
        except Closed:
            # Another thread has closed it.
            return
        finally:
            client._thread.close()


def mirrored(
    method: Callable[Concatenate[C, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[BlockingClient[C], P], T]:
    """Return a blocking method that waits for the async one."""

    def wait(self: BlockingClient[C], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._thread.run(method(self._client, *args, **kwargs))

    functools.update_wrapper(wait, method)
    return wait
