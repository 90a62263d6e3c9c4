"""The base class of the blocking clients: an async client in the loop of its own thread.

mirrored() declares a blocking method that calls an async one and waits: same arguments, result and errors.
"""

import functools
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar

from barnabas.client.blocking.loop_thread import LoopThread
from barnabas.client.errors import Closed


class AsyncClient(Protocol):
    async def start(self) -> None: ...

    async def close(self) -> None: ...

    async def _disconnect(self) -> None: ...


C = TypeVar("C", bound=AsyncClient)
# Covariant, because some mirrored methods are declared in a base class of the async client.
C_co = TypeVar("C_co", bound=AsyncClient, covariant=True)
P = ParamSpec("P")
T = TypeVar("T")


class Blocking(Generic[C_co]):
    """Started by the constructor, which raises start errors and leaves no thread behind."""

    def __init__(self, make: Callable[[], C_co]) -> None:
        self._thread = LoopThread(f"barnabas {type(self).__name__.lower()}")
        try:
            self._client = self._thread.run(_started(make))
        except BaseException:
            self._thread.close()
            raise
        self._thread.disconnects.append(self._client._disconnect)

    def close(self) -> None:
        """End pending calls, all connections and the thread. Later calls raise Closed."""
        if not self._thread.closed:
            try:
                self._thread.run(self._client.close())
            except Closed:
                # Another thread has closed it.
                return
            finally:
                self._thread.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


async def _started(make: Callable[[], C]) -> C:
    client = make()
    try:
        await client.start()
    except BaseException:
        await client.close()
        raise
    return client


def mirrored(
    method: Callable[Concatenate[C, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Blocking[C], P], T]:
    """Return a blocking method that waits for the async one."""

    def wait(self: Blocking[C], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._thread.run(method(self._client, *args, **kwargs))

    functools.update_wrapper(wait, method)
    return wait
