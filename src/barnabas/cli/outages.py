"""Says on stderr what keeps a tool waiting: a broker that is down, or somebody who does not answer.

The client tries again for a minute, as Kafka's does, and would be silent meanwhile. It logs every try that
failed; the first of each kind is told here at once, and a broker that says nothing at all after PATIENCE_S.
What a broker answered is not told: that is the tool's to say, and often passes, as with a topic just made.
"""

import asyncio
import logging
import sys
from types import TracebackType
from typing import Final

# Where the client logs that it tries again.
_LOGGERS: Final = ("barnabas.client.deadline", "barnabas.client.cluster")
PATIENCE_S: Final = 2.0


class Outages(logging.Handler):
    """Use it in a `with` around the life of a client, and call started() when that has begun."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self._told: set[str] = set()
        self._hint: asyncio.TimerHandle | None = None
        self._levels: dict[str, int] = {}

    def __enter__(self) -> "Outages":
        self._hint = asyncio.get_running_loop().call_later(PATIENCE_S, self._wait_is_long)
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
        """A broker has answered."""
        if self._hint is not None:
            self._hint.cancel()
        # When one is gone later, that is news.
        self._told.clear()

    def emit(self, record: logging.LogRecord) -> None:
        from barnabas.client.errors import Refused

        because: object = getattr(record, "because", None)
        if because is None or isinstance(because, Refused) or str(because) in self._told:
            return
        self._told.add(str(because))
        print(f"{because}; retrying", file=sys.stderr, flush=True)

    def _wait_is_long(self) -> None:
        if not self._told:
            print("waiting for a broker to respond ...", file=sys.stderr, flush=True)
