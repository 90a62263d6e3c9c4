"""Who waits to be connected is let in at once, also when turns of the loop are long.

libuv accepts one connection a turn. With a thousand busy clients a turn takes a twentieth of a second, and
fifty clients that connect then wait for seconds. So when one has come we take all others from the backlog.
"""

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from barnabas.base.tasks import Tasks

logger = logging.getLogger(__name__)

# In one turn. Whoever still waits then is seen by the loop itself, and the next turn begins with that one.
ACCEPTED_AT_ONCE_MAX: Final = 128


class HasDescriptor(Protocol):
    def fileno(self) -> int: ...


class Accepting:
    """The listening sockets of one server, beside the loop that watches them."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        listening: Sequence[HasDescriptor],
        make: Callable[[], asyncio.BaseProtocol],
        on_crash: Callable[[BaseException], None],
    ) -> None:
        self._loop = loop
        self._make = make
        self._tasks = Tasks(on_crash)
        self._next_turn: asyncio.Handle | None = None
        # Asyncio's own loops (the simulated one is one of them) take the whole backlog by themselves.
        takes_all = isinstance(loop, asyncio.BaseEventLoop)
        self._listening = [] if takes_all else [_second(one) for one in listening]

    def one_came(self) -> None:
        """The loop has accepted a connection: there may be more."""
        if self._listening and self._next_turn is None:
            self._next_turn = self._loop.call_soon(self._take_waiting)

    def _take_waiting(self) -> None:
        self._next_turn = None
        for listening in self._listening:
            for _ in range(ACCEPTED_AT_ONCE_MAX):
                try:
                    accepted, _ = listening.accept()
                except (BlockingIOError, ConnectionAbortedError):
                    break
                except OSError as error:
                    # No descriptors, most likely. The loop meets the same, and knows how to go on.
                    logger.warning("connection not accepted error=%s", error)
                    break
                accepted.setblocking(False)
                self._tasks.start(self._connect(accepted))

    async def _connect(self, accepted: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._make, accepted)
        except OSError as error:
            accepted.close()
            logger.debug("connection gone before it began error=%s", error)

    def stop(self) -> None:
        """Take no more."""
        if self._next_turn is not None:
            self._next_turn.cancel()
            self._next_turn = None
        for listening in self._listening:
            listening.close()
        self._listening = []

    async def close(self) -> None:
        """Take no more, and see those in who have been taken: half connected, they would never be told."""
        self.stop()
        await self._tasks.finish()


def socket_of_both_families(port: int) -> socket.socket:
    """Bind the IPv6 wildcard so that IPv4 clients are served too, as Java does for a Kafka broker.

    An event loop given the host "::" would bind IPv6 alone.
    """
    sock = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        sock.setblocking(False)
        sock.bind(("::", port))
    except OSError:
        sock.close()
        raise
    return sock


def _second(listening: HasDescriptor) -> socket.socket:
    """A descriptor of our own for it: the loop does not share its sockets."""
    return socket.socket(fileno=os.dup(listening.fileno()))
