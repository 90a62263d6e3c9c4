"""A kcat that runs beside a story. What it prints is read by threads, so that no pipe is ever full."""

import subprocess
import threading
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from time import monotonic
from typing import IO

from support.clients.client import WAIT_SECONDS_MAX

_LINES_KEPT = 100_000
# A line may have come just before it was waited for.
_LOOK_AGAIN_AFTER_S = 0.05


class KcatProcess:
    """Its output and its complaints, line by line."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self.process = subprocess.Popen(
            ["kcat", *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.output: deque[str] = deque(maxlen=_LINES_KEPT)
        self.complaints: deque[str] = deque(maxlen=_LINES_KEPT)
        self._changed = threading.Condition()
        self._readers = [
            threading.Thread(target=self._collect, args=(stream, lines), daemon=True)
            for stream, lines in ((self.process.stdout, self.output), (self.process.stderr, self.complaints))
        ]
        for reader in self._readers:
            reader.start()

    def _collect(self, stream: IO[bytes], lines: deque[str]) -> None:
        for line in stream:
            with self._changed:
                lines.append(line.decode().rstrip("\n"))
                self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()

    def wait_for_more(self, deadline: float) -> bool:
        """Until a line came or the process ended; False if the time is over."""
        left = deadline - monotonic()
        if left <= 0:
            return False
        with self._changed:
            self._changed.wait(min(left, _LOOK_AGAIN_AFTER_S))
        return True

    @property
    def ended(self) -> bool:
        return self.process.poll() is not None and not any(reader.is_alive() for reader in self._readers)

    def finish(self) -> int:
        """Close its input and wait for its end."""
        assert self.process.stdin is not None
        # If the pipe is broken it ended before, and its exit code says how.
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        code = self.process.wait(WAIT_SECONDS_MAX)
        self._join()
        return code

    def end(self) -> None:
        """As a user does: it has the time to finish what it has begun."""
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait(WAIT_SECONDS_MAX)
        self._join()

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(WAIT_SECONDS_MAX)
        self._join()

    def _join(self) -> None:
        for reader in self._readers:
            reader.join(WAIT_SECONDS_MAX)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None and not stream.closed:
                with suppress(BrokenPipeError):
                    stream.close()
