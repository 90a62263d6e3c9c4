"""Many connections of one process: opened until the broker closes them, or all of them are open."""

import select
import socket
from types import TracebackType

# So many are opened between two looks at who was closed.
_BATCH = 50


class Crowd:
    """`with` closes all of them. `host` is the address that they come from."""

    def __init__(self, address: str, *, host: str | None = None, timeout_s: float = 30) -> None:
        server, _, port = address.rpartition(":")
        self._server = (server, int(port))
        self._host = host
        self._timeout_s = timeout_s
        self._poll = select.poll()
        self.open: dict[int, socket.socket] = {}
        self.refused = 0

    def __enter__(self) -> "Crowd":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def grow(self, count: int, *, until_refused: bool = False) -> None:
        """Open so many more; with `until_refused`, only until one of them is closed by the broker."""
        for number in range(1, count + 1):
            source = None if self._host is None else (self._host, 0)
            one = socket.create_connection(self._server, timeout=self._timeout_s, source_address=source)
            self.open[one.fileno()] = one
            self._poll.register(one, select.POLLIN)
            if number % _BATCH == 0 or number == count:
                self.look(wait_ms=100)
                if until_refused and self.refused:
                    return

    def look(self, *, wait_ms: int = 0) -> int:
        """Count and forget those that the broker has closed; how many are open."""
        while found := self._poll.poll(wait_ms):
            wait_ms = 0
            for number, _ in found:
                one = self.open.pop(number)
                self._poll.unregister(one)
                one.close()
                self.refused += 1
        return len(self.open)

    def __len__(self) -> int:
        return len(self.open)

    def close(self) -> None:
        for one in self.open.values():
            one.close()
        self.open.clear()
