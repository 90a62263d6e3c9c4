"""The memory of responses that clients do not read, and its limit for all connections of a broker.

Each connection has a limit of its own (WAITING_BYTES_MAX plus one response), but there may be many, and a
response to a long request may have a hundred megabytes. So once a second all connections are summed up. Above
the limit those that hold the most are closed. Ranges of log files that wait to be sent take no memory.
"""

import asyncio
from collections.abc import Collection
from typing import Final, Protocol

# Responses may take the memory divided by this.
MEMORY_SHARE: Final = 8
# The minimum of the limit: room for some responses of the maximum size (RESPONSE_BYTES_MAX).
LIMIT_MIN: Final = 256 << 20
CHECK_S: Final = 1.0


def response_limit_of(memory_bytes: int) -> int:
    return max(memory_bytes // MEMORY_SHARE, LIMIT_MIN)


class ResponseHolder(Protocol):
    """A connection, as ResponseBytes sees it."""

    def response_bytes(self) -> int:
        """How much memory its responses take."""

    def evict(self, why: str) -> None:
        """Close the connection, because others need the memory that it holds."""


class ResponseBytes:
    """Shared by all listeners of a broker."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max: Final = bytes_max
        # As of the last check.
        self.used = 0
        self.evicted = 0
        self._pools: list[Collection[ResponseHolder]] = []

    def watch(self, connections: Collection[ResponseHolder]) -> None:
        """Include the connections of this collection."""
        self._pools.append(connections)

    def check(self) -> None:
        """Close the connections that hold the most, until the others fit."""
        held: list[tuple[int, ResponseHolder]] = []
        used = 0
        for pool in self._pools:
            for connection in pool:
                size = connection.response_bytes()
                if size:
                    used += size
                    held.append((size, connection))
        self.used = used
        if used <= self.bytes_max:
            return
        held.sort(key=_size_of, reverse=True)
        for size, connection in held:
            if self.used <= self.bytes_max:
                break
            self.used -= size
            self.evicted += 1
            connection.evict("client does not read its responses while others need the memory")

    async def run(self) -> None:
        """Check once a second, until cancelled."""
        while True:
            await asyncio.sleep(CHECK_S)
            self.check()


def _size_of(held: tuple[int, ResponseHolder]) -> int:
    return held[0]
