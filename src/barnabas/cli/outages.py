"""Report on stderr why a tool waits: a broker is unreachable or does not respond.

The client retries for a minute, as Kafka's does, and logs each failed attempt. This handler prints the first
failure of each kind at once, and a hint if no broker has responded after PATIENCE_S. Errors that a broker
returned are not printed here: they are often temporary, for example just after a topic was created, and the
tool reports the final one.
"""

import asyncio
import logging
import sys
from types import TracebackType
from typing import Final

# The loggers to which the client logs retries, with the error in the record's attribute `error`.
_LOGGERS: Final = ("barnabas.client.deadline", "barnabas.client.cluster")
PATIENCE_S: Final = 2.0


class Outages(logging.Handler):
    """Use in a `with` statement around the life of a client; call started() once the client has started."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self._printed: set[str] = set()
        self._hint: asyncio.TimerHandle | None = None
        self._levels: dict[str, int] = {}

    def __enter__(self) -> "Outages":
        self._hint = asyncio.get_running_loop().call_later(PATIENCE_S, self._print_hint)
        for name in _LOGGERS:
            logger = logging.getLogger(name)
            self._levels[name] = logger.level
            logger.setLevel(logging.INFO)
            logger.addHandler(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.started()
        for name in _LOGGERS:
            logging.getLogger(name).removeHandler(self)
            logging.getLogger(name).setLevel(self._levels[name])

    def started(self) -> None:
        """A broker has responded."""
        if self._hint is not None:
            self._hint.cancel()
        # Print the same failure again if the broker becomes unreachable later.
        self._printed.clear()

    def emit(self, record: logging.LogRecord) -> None:
        from barnabas.client.errors import Refused

        error: object = getattr(record, "error", None)
        if error is None or isinstance(error, Refused) or str(error) in self._printed:
            return
        self._printed.add(str(error))
        print(f"{error}; retrying", file=sys.stderr, flush=True)

    def _print_hint(self) -> None:
        if not self._printed:
            print("waiting for a broker to respond ...", file=sys.stderr, flush=True)
