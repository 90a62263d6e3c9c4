"""What the three blocking clients have in common: one async client, in the loop of a thread of its own.

A method that is the async one and a wait is declared in one line, with mirrored(); it has the same arguments,
returns what the other's `await` does, and raises the same errors.
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
# A blocking form of a client is also one of that client's base classes, where some methods are declared.
C_co = TypeVar("C_co", bound=AsyncClient, covariant=True)
P = ParamSpec("P")
T = TypeVar("T")


class Blocking(Generic[C_co]):
    """Made and started at once: an error of starting is raised by the constructor, which leaves nothing."""

    def __init__(self, make: Callable[[], C_co]) -> None:
        self._thread = LoopThread(f"barnabas {type(self).__name__.lower()}")
        try:
            self._client = self._thread.run(_started(make))
        except BaseException:
            self._thread.close()
            raise
        self._thread.disconnects.append(self._client._disconnect)

    def close(self) -> None:
        """End what is under way, all connections and the thread. Later calls raise Closed."""
        if not self._thread.closed:
            try:
                self._thread.run(self._client.close())
            except Closed:
                # Another thread closes it, too, and was faster.
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
    """The method that waits for an async one."""

    def wait(self: Blocking[C], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._thread.run(method(self._client, *args, **kwargs))

    functools.update_wrapper(wait, method)
    return wait
