"""The child process of a remote client: a line of JSON in, a line of JSON out, and every wait has a bound.

What the lines say is in remote.py. The pipes are not blocking, so a program that hangs, or that dies in the
middle of a line, is told to the test with what it wrote to its standard error.
"""

import json
import os
import select
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Any

from support.clients.client import WAIT_SECONDS_MAX

# The program gives up by itself after WAIT_SECONDS_MAX; this is for one that does not.
ANSWER_SECONDS_MAX = WAIT_SECONDS_MAX + 20
CLOSE_SECONDS_MAX = 20.0
# A whole story of records is a few megabytes.
ANSWER_BYTES_MAX = 64 * 1024 * 1024
_READ_BYTES = 1 << 16
_COMPLAINTS_BYTES_SHOWN = 5000


class RemoteProcess:
    def __init__(
        self, name: str, command: Sequence[str], *, answer_seconds_max: float = ANSWER_SECONDS_MAX
    ) -> None:
        self._name = name
        self._answer_seconds_max = answer_seconds_max
        # Open for as long as the process is.
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._complaints, bufsize=0
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        os.set_blocking(self._stdin.fileno(), False)
        self._unread = bytearray()

    def ask(self, request: Mapping[str, object]) -> dict[str, Any]:
        """The answer to one request, as the program gave it."""
        deadline = monotonic() + self._answer_seconds_max
        self._write(json.dumps(request).encode() + b"\n", deadline)
        answer = json.loads(self._read_line(deadline))
        assert isinstance(answer, dict), f"{self._name} answered {answer!r}"
        assert answer.keys() in ({"ok"}, {"error"}), f"{self._name} answered {answer!r}"
        return answer

    def _write(self, data: bytes, deadline: float) -> None:
        left = memoryview(data)
        while left:
            _, ready, _ = select.select([], [self._stdin], [], max(0.0, deadline - monotonic()))
            assert ready, self._told("does not read its input")
            try:
                left = left[os.write(self._stdin.fileno(), left) :]
            except BrokenPipeError:
                raise AssertionError(self._told("is gone")) from None

    def _read_line(self, deadline: float) -> bytes:
        looked_at = 0
        while (end := self._unread.find(b"\n", looked_at)) < 0:
            looked_at = len(self._unread)
            assert looked_at < ANSWER_BYTES_MAX, self._told(f"answered with {looked_at} bytes and no end")
            ready, _, _ = select.select([self._stdout], [], [], max(0.0, deadline - monotonic()))
            assert ready, self._told(f"gave no answer within {self._answer_seconds_max} seconds")
            data = os.read(self._stdout.fileno(), _READ_BYTES)
            assert data, self._told("is gone")
            self._unread += data
        line = bytes(self._unread[:end])
        del self._unread[: end + 1]
        return line

    def close(self) -> None:
        """End its input and wait for it; one that does not end well is a failure."""
        if self._stdin.closed:
            return
        self._stdin.close()
        wrong: str | None = None
        try:
            code = self._process.wait(CLOSE_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            wrong = self._told(f"did not end within {CLOSE_SECONDS_MAX} seconds")
        else:
            if code != 0:
                wrong = self._told("did not end well")
        self.kill()
        assert wrong is None, wrong

    def kill(self) -> None:
        """Without ado; for close() and for what could not be opened."""
        self._process.kill()
        self._process.wait(CLOSE_SECONDS_MAX)
        self._stdin.close()
        self._stdout.close()
        self._complaints.close()

    def _told(self, what: str) -> str:
        """What is wrong, how the process ended if it did, and what it complained about last."""
        # Read in place: the process writes where the common position of the file is, so it must not be moved.
        file = self._complaints.fileno()
        shown_from = max(0, os.fstat(file).st_size - _COMPLAINTS_BYTES_SHOWN)
        complaints = os.pread(file, _COMPLAINTS_BYTES_SHOWN, shown_from).decode(errors="replace")
        code = self._process.poll()
        state = "still runs" if code is None else f"ended with {code}"
        return f"{self._name} {what}; its process {state}; it said:\n{complaints}"
