"""Spark programs in processes of their own: Python and the JVM of the driver, Python where the tasks run."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, Final

from barnabas.testing.waiting import wait_until

TESTS: Final = Path(__file__).parents[2]
PROGRESS_TIMEOUT_S: Final = 90
START_TIMEOUT_S: Final = 150
# Of the daemon's children: what Spark starts them for.
COMMITTER: Final = "pyspark.sql.worker.python_streaming_sink_runner"
TASK_WORKER: Final = "pyspark.worker"


class SparkProcess:
    """One of the modules here; what it says goes to `output`, behind what is there already."""

    def __init__(self, module: str, orders: dict[str, Any], output: Path) -> None:
        self._output = output
        places = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))
        with output.open("ab") as written:
            self.process = subprocess.Popen(
                [sys.executable, "-m", f"support.spark_runs.{module}", json.dumps(orders)],
                stdin=subprocess.PIPE,
                stdout=written,
                stderr=written,
                start_new_session=True,
                env={
                    **os.environ,
                    "PYTHONPATH": places,
                    "PYSPARK_PYTHON": sys.executable,
                    "PYSPARK_DRIVER_PYTHON": sys.executable,
                },
            )

    def said(self) -> str:
        return self._output.read_text()[-5000:]

    def kill_driver(self) -> None:
        """The JVM; what it started finds out by itself, and may go on for a moment."""
        for pid in self._named("java"):
            _kill(pid)

    def kill_python(self) -> None:
        """The driver's program; the JVM finds out by itself."""
        _kill(self.process.pid)

    def kill_worker(self, rng: Random) -> bool:
        """One of those that run tasks; False if there is none at the moment."""
        daemons = self._named("pyspark.daemon")
        workers = [pid for pid in daemons if _parent(pid) in daemons]
        if workers:
            _kill(rng.choice(workers))
        return bool(workers)

    def kill_workers(self, module: str) -> int:
        """All that Spark's daemon has started for this; how many."""
        return kill_workers(self._named(""), module)

    def pause(self) -> None:
        """All of its processes, until resume()."""
        for pid in self._named(""):
            _signal(pid, signal.SIGSTOP)

    def resume(self) -> None:
        for pid in self._named(""):
            _signal(pid, signal.SIGCONT)

    def end(self) -> None:
        """Everything that it started."""
        # Not by their group: Spark's daemon has one of its own.
        for pid in self._named(""):
            _kill(pid)
        self.process.wait(30)
        if self.process.stdin is not None:
            with suppress(BrokenPipeError):
                self.process.stdin.close()

    def _named(self, word: str) -> list[int]:
        """Processes of its session with this in their command line."""
        found = []
        for pid in _all():
            try:
                if os.getsid(pid) == self.process.pid and _is_called(pid, word):
                    found.append(pid)
            except (ProcessLookupError, FileNotFoundError):
                # It ended meanwhile.
                continue
        return found


class JobProcess(SparkProcess):
    """job.py, or another module that prints a line for each batch."""

    def __init__(self, orders: dict[str, Any], output: Path, *, module: str = "job") -> None:
        super().__init__(module, orders, output)

    @property
    def batches(self) -> int:
        """How many were told of, by this job and those before it."""
        return self._output.read_bytes().count(b"batch ") if self._output.exists() else 0

    @property
    def fenced(self) -> int:
        """How many queries of this job and those before it were fenced by another driver."""
        lines = self._output.read_bytes().splitlines()
        return sum(line.startswith(b"failed ") and b"Fenced" in line for line in lines)

    def wait_for_progress(self) -> None:
        """Until it has done something that those before it have not."""
        before, end = self.batches, time.monotonic() + PROGRESS_TIMEOUT_S
        while self.batches == before:
            assert self.process.poll() is None, f"the job has ended:\n{self.said()}"
            assert time.monotonic() < end, f"the job makes no progress:\n{self.said()}"
            time.sleep(0.02)


class DriverEnded(Exception):
    """Before it said what was waited for; with its last words."""


class DriverProcess(SparkProcess):
    """driver.py."""

    def __init__(self, output: Path, **settings: str) -> None:
        super().__init__("driver", {"settings": settings}, output)

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None and bool(self._named("java"))

    def wait_for_orphans(self) -> None:
        """Until those that write and commit for a JVM that is dead have found out, and have ended."""
        wait_until(
            lambda: not self._named("pyspark.daemon"), timeout_s=START_TIMEOUT_S, what="workers have ended"
        )

    def start(self, orders: dict[str, Any]) -> None:
        self.wait_for("ready")
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(orders).encode() + b"\n")
        self.process.stdin.flush()

    def wait_for(self, line: str) -> str:
        """Until it has said a line that begins so; the whole line."""

        def found() -> str | None:
            lines = [each for each in self._output.read_text().splitlines() if each.startswith(line)]
            if not lines and self.process.poll() is not None:
                raise DriverEnded(self.said())
            return lines[0] if lines else None

        said = wait_until(found, timeout_s=START_TIMEOUT_S, what=f"the driver says {line!r}")
        assert said is not None
        return said


def kill_workers_below(module: str) -> int:
    """Of the Spark that this process has started: see kill_workers()."""
    parents = {pid: _parent(pid) for pid in _all()}
    below = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in below} - below:
        below |= more
    return kill_workers(below, module)


def kill_workers(among: Collection[int], module: str) -> int:
    """Those that Spark's daemon has started for this module; how many."""
    daemons = {pid for pid in among if _command(pid)[2:4] == ["pyspark.daemon", module]}
    workers = [pid for pid in daemons if _parent(pid) in daemons]
    for pid in workers:
        _kill(pid)
    return len(workers)


def _all() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _is_called(pid: int, word: str) -> bool:
    command = "\0".join(_command(pid))
    return word in command.split("\0")[0] or f"\0{word}" in command


def _command(pid: int) -> list[str]:
    """Empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except (ProcessLookupError, FileNotFoundError):
        return []


def _parent(pid: int) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except (ProcessLookupError, FileNotFoundError):
        return None


def _kill(pid: int) -> None:
    _signal(pid, signal.SIGKILL)


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)
