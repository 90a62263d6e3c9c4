"""CRC-32C of something large, computed while something else is done with it.

A megabyte takes 40 microseconds to check and 200 to write, and neither needs the interpreter: so a thread
checks while the caller writes. Where there are to be no threads, InlineChecksums do it on the spot.
"""

import threading
from typing import Protocol

from barnabas.base.crc32c import crc32c


class Checksums(Protocol):
    """One checksum at a time: every begin() is followed by an end()."""

    def begin(self, data: memoryview) -> None: ...

    def end(self) -> int:
        """Wait for the checksum of what begin() was given."""


class InlineChecksums:
    """No thread: the simulator wants one order of events."""

    def __init__(self) -> None:
        self._crc = 0

    def begin(self, data: memoryview) -> None:
        self._crc = crc32c(data)

    def end(self) -> int:
        return self._crc

    def close(self) -> None:
        """There is no thread to stop."""


class ThreadChecksums:
    """A thread of its own. It waits for locks: anything more comfortable costs more than it saves."""

    def __init__(self) -> None:
        self._begun = threading.Lock()
        self._ended = threading.Lock()
        self._begun.acquire()
        self._ended.acquire()
        self._data: memoryview | None = None
        self._crc = 0
        self._thread = threading.Thread(target=self._run, name="barnabas-checksum", daemon=True)
        self._thread.start()

    def begin(self, data: memoryview) -> None:
        self._data = data
        self._begun.release()

    def end(self) -> int:
        self._ended.acquire()
        # Not kept until the next one: it is a megabyte of somebody's request.
        self._data = None
        return self._crc

    def close(self) -> None:
        """Stop the thread. Nothing may be under way."""
        self._begun.release()
        self._thread.join()

    def _run(self) -> None:
        while True:
            self._begun.acquire()
            if self._data is None:
                return
            self._crc = crc32c(self._data)
            self._ended.release()
