"""One member in a process of its own, and its journal as far as it is written."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from support.group_runs.journal import Event, now_us, parse
from support.group_runs.orders import Orders
from support.group_runs.tenures import Life

TESTS = Path(__file__).parents[2]
END_TIMEOUT_S = 30
COMPLAINTS_SHOWN = 3000


class MemberProcess:
    def __init__(self, name: str, command: Sequence[str], orders: Orders) -> None:
        self.name = name
        self.orders = orders
        self._read = 0
        self._events: list[Event] = []
        self._killed_us: int | None = None
        self._complaints = orders.journal_path.with_suffix(".err")
        places = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))
        orders.journal_path.touch()
        with self._complaints.open("wb") as complaints:
            self._process = subprocess.Popen(
                [*command, orders.text()],
                stdin=subprocess.PIPE,
                stdout=complaints,
                stderr=complaints,
                env={**os.environ, "PYTHONPATH": places},
            )

    def join(self) -> None:
        """To be said once, when it is ready."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"join\n")
        self._process.stdin.flush()

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def events(self) -> list[Event]:
        """What it has written until now; a line that is not whole is left for later."""
        with self.orders.journal_path.open("rb") as file:
            file.seek(self._read)
            whole, newline, _ = file.read().rpartition(b"\n")
        self._read += len(whole) + len(newline)
        self._events += [parse(line) for line in whole.decode().splitlines()]
        return self._events

    def owned(self) -> set[int]:
        """The partitions that it has, by its own account; none if it is gone."""
        held: set[int] = set()
        for event in self.events():
            if event.word == "assigned":
                held |= set(event.partitions)
            elif event.word in ("revoked", "lost"):
                held -= set(event.partitions)
            elif event.word == "left":
                held.clear()
        return held if self.is_alive else set()

    def last_us(self, *words: str) -> int:
        """When it last wrote one of these words; 0 if it never did."""
        return max((event.at_us for event in self.events() if event.word in words), default=0)

    def life(self) -> Life:
        return Life(self.name, tuple(self.events()), self.orders.instance, self._killed_us)

    def kill(self) -> None:
        """As a crash does it. Whatever it wrote before that is in its journal."""
        self._killed_us = now_us()
        self._process.kill()
        self._process.wait(END_TIMEOUT_S)
        self._close()

    def ask_to_leave(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()

    def leave(self) -> None:
        """Have it commit, leave its group and end; it has to end well."""
        self.ask_to_leave()
        self.await_end()

    def await_end(self) -> None:
        code = self._process.wait(END_TIMEOUT_S)
        self._close()
        assert code == 0, f"{self.name} ended with {code}:\n{self.complaints()}"

    def complaints(self) -> str:
        return self._complaints.read_text(errors="replace")[-COMPLAINTS_SHOWN:]

    def _close(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
