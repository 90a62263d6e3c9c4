"""Programs of users as processes: what they print, how they end, and Ctrl-C pressed in the middle of them."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from support.kit import SOURCE

TIMEOUT_S = 60.0
# A program says this when Ctrl-C may be pressed.
HERE = "here\n"
# Whoever runs the tests may have been told to ignore Ctrl-C, and a child inherits that.
PROLOGUE = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
def here():
    print("here", flush=True)
"""


class Ended(NamedTuple):
    code: int
    out: str
    err: str
    # From the last signal on.
    took_s: float


class Program:
    """One process. What it is told to keep in temporary directories is in `scratch`."""

    def __init__(self, words: list[str], scratch: Path, environment: Mapping[str, str] | None = None) -> None:
        scratch.mkdir(exist_ok=True)
        self._process = subprocess.Popen(
            [sys.executable, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=scratch.parent,
            env={**os.environ, "PYTHONPATH": str(SOURCE), "TMPDIR": str(scratch), **(environment or {})},
        )
        self._began = time.monotonic()

    def press_ctrl_c(self) -> None:
        """As soon as the program has said that it is there."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line == HERE, f"{line!r}\n{self.ended()}"
        self._began = time.monotonic()
        self._process.send_signal(signal.SIGINT)

    def ended(self) -> Ended:
        try:
            out, err = self._process.communicate(timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            # Its threads' stacks would be of help, and only SIGABRT gets them out: -X faulthandler.
            self._process.send_signal(signal.SIGABRT)
            out, err = self._process.communicate()
        return Ended(self._process.returncode, out, err, time.monotonic() - self._began)


def run(program: str, scratch: Path, *options: str) -> Ended:
    """A program that ends by itself."""
    return Program([*options, "-c", program], scratch).ended()


def interrupted(program: str, scratch: Path) -> Ended:
    """A program that is interrupted where it calls here()."""
    started = Program(["-X", "faulthandler", "-c", PROLOGUE + program], scratch)
    started.press_ctrl_c()
    return started.ended()
