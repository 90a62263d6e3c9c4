"""`barnabas ...` in a process of its own, with both of its streams to read."""

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
    """How a process ended, and what it said after what was read already."""

    code: int
    out: str
    err: str


class Running:
    """One process. Its stderr goes to a file, so that it never has to wait for a reader."""

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
        """Wait for the line that says where it serves. The addresses."""
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
    """Started, and gone at the end of the block whatever happened in it."""
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
