"""A source or a worker in a process of its own, and its journal as far as it is written."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from time import sleep

from support.eos_runs.journal import Life, parse
from support.eos_runs.orders import FATAL, Orders

TESTS = Path(__file__).parents[2]
END_TIMEOUT_S = 90
COMPLAINTS_SHOWN = 3000
LINE_BYTES_MAX = 200
EVENTS_SHOWN = 40
STACKS_WITHIN_S = 1.0


class Process:
    """It begins when begin() says so: by then whatever it has to load is loaded."""

    def __init__(self, program: str, orders: Orders) -> None:
        self.name = orders.life
        self._journal = orders.journal_path
        self._complaints = self._journal.with_suffix(".err")
        self._is_paused = False
        self.was_killed = False
        places = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))
        self._journal.touch()
        with self._complaints.open("wb") as complaints:
            self._process = subprocess.Popen(
                [sys.executable, "-m", f"support.eos_runs.{program}", orders.text()],
                stdin=subprocess.PIPE,
                stdout=complaints,
                stderr=complaints,
                env={**os.environ, "PYTHONPATH": places},
            )

    def begin(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(b"begin\n")
        self._process.stdin.flush()

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    @property
    def has_given_up(self) -> bool:
        return self._process.poll() == FATAL

    def kill(self) -> None:
        """As a crash does it. Whatever it wrote before that is in its journal."""
        self.was_killed = True
        self._process.kill()
        self._process.wait(END_TIMEOUT_S)
        self._close()

    def pause(self) -> None:
        """It does nothing, and does not know that: when it goes on, it believes what it believed before."""
        self._process.send_signal(signal.SIGSTOP)
        self._is_paused = True

    def go_on(self) -> None:
        if self._is_paused and self.is_alive:
            self._process.send_signal(signal.SIGCONT)
        self._is_paused = False

    def ask_to_leave(self) -> None:
        self.go_on()
        self._close()

    def await_end(self) -> None:
        try:
            self._process.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired as silent:
            raise AssertionError(self._where_it_is()) from silent
        self.check_end()

    def _where_it_is(self) -> str:
        """What it did last, by its journal, and what it waits for."""
        self._process.send_signal(signal.SIGUSR1)
        sleep(STACKS_WITHIN_S)
        last = self._journal.read_text().splitlines()[-EVENTS_SHOWN:]
        return "\n".join([f"{self.name} has not ended in {END_TIMEOUT_S} s", *last, self.complaints()])

    def check_end(self) -> None:
        """Of one that ended by itself: it was told to, or met what nothing helps against."""
        self._close()
        code = self._process.returncode
        assert code in (0, FATAL), f"{self.name} ended with {code}:\n{self.complaints()}"

    def life(self) -> Life:
        """What it has written until now; a line that is not whole does not count."""
        whole, _, _ = self._journal.read_text().rpartition("\n")
        return Life(self.name, tuple(parse(line) for line in whole.splitlines()))

    def is_committing(self) -> bool:
        """Whether the last that it wrote down is that it asks for a commit."""
        with self._journal.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - LINE_BYTES_MAX))
            last = file.read().rstrip(b"\n").rpartition(b"\n")[2]
        return b" committing " in last

    def complaints(self) -> str:
        return self._complaints.read_text(errors="replace")[-COMPLAINTS_SHOWN:]

    def _close(self) -> None:
        if self._process.stdin is not None and not self._process.stdin.closed:
            self._process.stdin.close()
