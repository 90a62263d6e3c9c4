"""CRC-32C of large data, computed in a thread while the caller writes the data.

A megabyte takes 40 microseconds to check and 200 to write, and neither holds the interpreter's lock.
InlineChecksums is the form without a thread.
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
    """Without a thread, for the simulator, which needs a deterministic order of events."""

    def __init__(self) -> None:
        self._crc = 0

    def begin(self, data: memoryview) -> None:
        self._crc = crc32c(data)

    def end(self) -> int:
        return self._crc

    def close(self) -> None:
        """There is no thread to stop."""


class ThreadChecksums:
    """With one thread. It is synchronized by two locks: anything more convenient costs more than it saves."""

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
        # Release it now: it is a megabyte of a request.
        self._data = None
        return self._crc

    def close(self) -> None:
        """Stop the thread. No checksum may be in progress."""
        self._begun.release()
        self._thread.join()

    def _run(self) -> None:
        while True:
            self._begun.acquire()
            if self._data is None:
                return
            self._crc = crc32c(self._data)
            self._ended.release()
