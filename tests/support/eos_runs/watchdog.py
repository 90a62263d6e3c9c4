"""Ends this process if a single call does not come back, as a supervisor would end one that is silent.

librdkafka's send_offsets_to_transaction() does not keep its time-out when the group's coordinator is away
(its issue 5456), and may then wait for ever. The journal has the reason, and the process is started again.
"""

import os
import threading
import time

from support.eos_runs.journal import Journal
from support.eos_runs.orders import FATAL

LOOKS_EVERY_S = 0.5


class Watchdog(threading.Thread):
    """Used as a block around each call; not for calls within calls."""

    def __init__(self, journal: Journal, patience_s: float) -> None:
        super().__init__(name="watchdog", daemon=True)
        self._journal = journal
        self._patience_s = patience_s
        self._begun_at: float | None = None
        self.start()

    def __enter__(self) -> None:
        self._begun_at = time.monotonic()

    def __exit__(self, *_: object) -> None:
        self._begun_at = None

    def run(self) -> None:
        while True:
            time.sleep(LOOKS_EVERY_S)
            begun_at = self._begun_at
            if begun_at is not None and time.monotonic() - begun_at > self._patience_s:
                self._journal.write("fatal", f"a call has not come back for {self._patience_s} s")
                os._exit(FATAL)
