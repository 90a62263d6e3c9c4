"""Run `barnabas ...` as a process and read its output."""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

TIMEOUT_S = 30
READY = "ready: "


class Ended(NamedTuple):
    """The exit code of a process, and its remaining output."""

    code: int
    out: str
    err: str


class Running:
    """A running process. Its stderr goes to a file, so that it never blocks."""

    def __init__(self, errors: Path, *words: str) -> None:
        self._errors = errors
        with errors.open("wb") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "barnabas.cli.main", *words],
                stdout=subprocess.PIPE,
                stderr=err,
                env={**os.environ, "PYTHONUNBUFFERED": ""},
            )

    def ready(self) -> list[str]:
        """Wait for the `ready:` line and return its addresses."""
        out = self.process.stdout
        assert out is not None
        deadline = time.monotonic() + TIMEOUT_S
        assert select.select([out], [], [], deadline - time.monotonic())[0], f"nothing said:\n{self.err}"
        line = out.readline().decode()
        assert line.startswith(READY), f"{line!r}\n{self.err}"
        return line.removeprefix(READY).strip().split(",")

    @property
    def err(self) -> str:
        return self._errors.read_text()

    def stop(self, number: signal.Signals = signal.SIGTERM) -> Ended:
        self.process.send_signal(number)
        return self.ended()

    def ended(self) -> Ended:
        out, _ = self.process.communicate(timeout=TIMEOUT_S)
        return Ended(self.process.returncode, out.decode(), self.err)


@contextmanager
def started(errors: Path, *words: str) -> Iterator[Running]:
    """Run a process; it is killed at the end of the block."""
    running = Running(errors, *words)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.process.kill()
        running.process.communicate()


def run_to_end(errors: Path, *words: str) -> Ended:
    with started(errors, *words) as running:
        return running.ended()
