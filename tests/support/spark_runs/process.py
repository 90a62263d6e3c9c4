"""The job in processes of its own: Python and the JVM of the driver, Python where the tasks run."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, Final

TESTS: Final = Path(__file__).parents[2]
PROGRESS_TIMEOUT_S: Final = 90


class JobProcess:
    def __init__(
        self, orders: dict[str, Any], output: Path, *, module: str = "support.spark_runs.job"
    ) -> None:
        self._output = output
        self._batches_before = self.batches
        places = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))
        with output.open("ab") as written:
            self.process = subprocess.Popen(
                [sys.executable, "-m", module, json.dumps(orders)],
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

    @property
    def batches(self) -> int:
        """How many were told of, by this job and those before it."""
        return self._output.read_bytes().count(b"batch ") if self._output.exists() else 0

    def wait_for_progress(self) -> None:
        """Until it has done something that those before it have not."""
        before, end = self.batches, time.monotonic() + PROGRESS_TIMEOUT_S
        while self.batches == before:
            assert self.process.poll() is None, f"the job has ended:\n{self.said()}"
            assert time.monotonic() < end, f"the job makes no progress:\n{self.said()}"
            time.sleep(0.02)

    def said(self) -> str:
        return self._output.read_text()[-5000:]

    def kill_driver(self) -> None:
        """The JVM; what it started finds out by itself, and may go on for a moment."""
        for pid in self._named("java"):
            _kill(pid)

    def kill_worker(self, rng: Random) -> bool:
        """One of those that run tasks; False if there is none at the moment."""
        daemons = self._named("pyspark.daemon")
        workers = [pid for pid in daemons if _parent(pid) in daemons]
        if workers:
            _kill(rng.choice(workers))
        return bool(workers)

    def end(self) -> None:
        """Everything that it started."""
        # Not by their group: Spark's daemon has one of its own.
        for pid in self._named(""):
            _kill(pid)
        self.process.wait(30)

    def _named(self, word: str) -> list[int]:
        """Processes of its session with this in their command line."""
        found = []
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and os.getsid(int(entry.name)) == self.process.pid:
                    command = (entry / "cmdline").read_bytes().decode(errors="replace")
                    if word in command.split("\0")[0] or f"\0{word}" in command:
                        found.append(int(entry.name))
            except (ProcessLookupError, FileNotFoundError):
                # It ended meanwhile.
                continue
        return found


def _parent(pid: int) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except (ProcessLookupError, FileNotFoundError):
        return None


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
