"""The child processes of the demo: a broker, started as a user would, and the Spark job.

Each runs in its own session, so that only the demo receives Ctrl-C and ends the children in order.
"""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Final

import barnabas
from barnabas.base.errors import BarnabasError

_READY: Final = "ready: "
_START_S_MAX: Final = 60
_STOP_S_MAX: Final = 30
_POLL_S: Final = 0.02
_LOG_LINES_PRINTED: Final = 12


class DemoFailed(BarnabasError):
    """A part of the demo failed."""


@contextmanager
def running_broker(directory: Path, host: str) -> Iterator[str]:
    """Run a broker, yield its address, and stop it cleanly at the end."""
    command = [sys.executable, "-m", "barnabas.cli.main", "up", "--dir", str(directory / "broker")]
    command += ["--host", host, "--port", "0", "--log-level", "warning"]
    log = directory / "broker.log"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
            env=environment(),
        )
    try:
        yield _address(process, log)
    finally:
        process.terminate()
        try:
            process.wait(_STOP_S_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(_STOP_S_MAX)
        if process.stdout is not None:
            process.stdout.close()


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    assert process.stdout is not None, "it was started with a pipe"
    line = ""
    if select.select([process.stdout], [], [], _START_S_MAX)[0]:
        line = process.stdout.readline().decode()
    if not line.startswith(_READY):
        raise DemoFailed(f"the broker did not start: {last_lines(log)}")
    return line.removeprefix(_READY).strip()


class SparkJob:
    """One run of the pipeline. Appends Spark's log to a file."""

    def __init__(self, orders: Mapping[str, object], log: Path, scratch: Path, java_home: str | None) -> None:
        java = {} if java_home is None else {"JAVA_HOME": java_home}
        self._log = log
        scratch.mkdir(exist_ok=True)
        self._events: SimpleQueue[dict[str, Any]] = SimpleQueue()
        with log.open("ab") as written:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "barnabas.spark.demo.job", json.dumps(orders)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=written,
                start_new_session=True,
                # Spark creates files in its working directory.
                cwd=log.parent,
                env={**environment(), **java, "TMPDIR": str(scratch)},
            )
        # A thread, because a line may arrive in pieces and a surviving child may hold the pipe open.
        Thread(target=self._listen, name="demo-job", daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stdout is not None, "it was started with a pipe"
        for line in self._process.stdout:
            # Other output on stdout is ignored.
            with suppress(ValueError):
                event = json.loads(line)
                if isinstance(event, dict) and "event" in event:
                    self._events.put(event)

    def next_event(self, timeout_s: float) -> dict[str, Any] | None:
        """Return the next event of the job; None after the timeout."""
        try:
            return self._events.get(timeout=timeout_s)
        except Empty:
            return None

    @property
    def exit_code(self) -> int | None:
        return self._process.poll()

    def check(self) -> None:
        """Raise DemoFailed if the job has failed."""
        if self.exit_code not in (None, 0):
            raise DemoFailed(f"the Spark job failed with exit code {self.exit_code}: {last_lines(self._log)}")

    def kill(self) -> None:
        """Send SIGKILL to the Python process, its JVM and their workers until none is left."""
        end = time.monotonic() + _STOP_S_MAX
        # Repeat, because a process may have started a child meanwhile.
        while living := processes_of_session(self._process.pid):
            for pid in living:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if time.monotonic() > end:
                raise DemoFailed(f"processes of the Spark job did not end after SIGKILL: {living}")
            time.sleep(_POLL_S)
        if self.exit_code is None:
            # Without /proc: kill the process group; its workers then end by themselves.
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(_STOP_S_MAX)


def environment() -> dict[str, str]:
    """That of the demo, with the same Barnabas for children, wherever they run."""
    here = str(Path(barnabas.__file__).parents[1])
    given = [os.path.abspath(one) for one in os.environ.get("PYTHONPATH", "").split(os.pathsep) if one]
    return {**os.environ, "PYTHONPATH": os.pathsep.join([here, *given])}


def processes_of_session(session: int) -> list[int]:
    """Return the live processes of a session. Spark's Python workers leave only the process group."""
    if not os.path.isdir("/proc/self"):
        return []
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        # The process may end meanwhile.
        with suppress(ProcessLookupError, FileNotFoundError, PermissionError):
            if os.getsid(int(name)) == session and _is_alive(name):
                found.append(int(name))
    return found


def _is_alive(pid: str) -> bool:
    """A zombie (state Z) has ended."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def last_lines(log: Path) -> str:
    """Return the last lines of a log, and its path."""
    lines = log.read_text(errors="replace").splitlines()[-_LOG_LINES_PRINTED:]
    return "\n  ".join([f"the end of {log}:", *lines])
