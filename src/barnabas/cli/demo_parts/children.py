"""The processes of the demo: a broker as a user starts it, and the Spark job.

Each has a session of its own, so that Ctrl-C comes to the demo alone, which ends them in its own order.
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
_LOG_LINES_TOLD: Final = 12


class DemoFailed(BarnabasError):
    """A part of the demo did not do what it was to show."""


@contextmanager
def running_broker(directory: Path, host: str) -> Iterator[str]:
    """Its address; it is stopped cleanly in the end."""
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
    """One run of the pipeline. Spark's log is added to a file."""

    def __init__(self, orders: Mapping[str, object], log: Path, scratch: Path, java_home: str | None) -> None:
        java = {} if java_home is None else {"JAVA_HOME": java_home}
        self._log = log
        scratch.mkdir(exist_ok=True)
        self._said: SimpleQueue[dict[str, Any]] = SimpleQueue()
        with log.open("ab") as written:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "barnabas.spark.demo.job", json.dumps(orders)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=written,
                start_new_session=True,
                # Spark leaves things in the directory where it runs.
                cwd=log.parent,
                env={**environment(), **java, "TMPDIR": str(scratch)},
            )
        # A thread, because a line may come in pieces and a pipe may be held open by whoever is left over.
        Thread(target=self._listen, name="demo-job", daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stdout is not None, "it was started with a pipe"
        for line in self._process.stdout:
            # What else may be said there is not for us.
            with suppress(ValueError):
                said = json.loads(line)
                if isinstance(said, dict) and "event" in said:
                    self._said.put(said)

    def said(self, timeout_s: float) -> dict[str, Any] | None:
        """The next thing that it tells; None if there is none within this time."""
        try:
            return self._said.get(timeout=timeout_s)
        except Empty:
            return None

    @property
    def exit_code(self) -> int | None:
        return self._process.poll()

    def check(self) -> None:
        """DemoFailed if it has ended, and not well."""
        if self.exit_code not in (None, 0):
            raise DemoFailed(f"the Spark job ended with {self.exit_code}: {last_lines(self._log)}")

    def kill(self) -> None:
        """`kill -9` to its Python, its JVM and their workers, until none is left."""
        end = time.monotonic() + _STOP_S_MAX
        # Again, because one that was not there yet may have been started meanwhile.
        while living := processes_of_session(self._process.pid):
            for pid in living:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if time.monotonic() > end:
                raise DemoFailed(f"processes of the Spark job do not end: {living}")
            time.sleep(_POLL_S)
        if self.exit_code is None:
            # A system without /proc: its own group, and the workers notice.
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(_STOP_S_MAX)


def environment() -> dict[str, str]:
    """That of the demo, with the same Barnabas for children, wherever they run."""
    here = str(Path(barnabas.__file__).parents[1])
    given = [os.path.abspath(one) for one in os.environ.get("PYTHONPATH", "").split(os.pathsep) if one]
    return {**os.environ, "PYTHONPATH": os.pathsep.join([here, *given])}


def processes_of_session(session: int) -> list[int]:
    """Those that live. Spark's Python workers leave the group of the job, but not its session."""
    if not os.path.isdir("/proc/self"):
        return []
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        # It may end while it is looked at, and then it is none of them.
        with suppress(ProcessLookupError, FileNotFoundError, PermissionError):
            if os.getsid(int(name)) == session and _lives(name):
                found.append(int(name))
    return found


def _lives(pid: str) -> bool:
    """One that has ended, and that nobody has asked about yet, is in state Z."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def last_lines(log: Path) -> str:
    """The end of a log, and where the rest is."""
    lines = log.read_text(errors="replace").splitlines()[-_LOG_LINES_TOLD:]
    return "\n  ".join([f"the end of {log}:", *lines])
