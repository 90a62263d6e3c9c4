"""Our broker in a process of its own, as a user starts it: `barnabas up`.

The same handles as support.kafka.broker.KafkaBroker has, so that one test can run with either.
"""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from support.process.ports import free_port

START_TIMEOUT_S = 30
STOP_TIMEOUT_S = 30
READY = b"ready: "


class OurBroker:
    """Served within running() or between start() and stop(); the directory is made by the first start."""

    def __init__(
        self, root: Path, *, logs: Path | None = None, settings: Mapping[str, object] | None = None
    ) -> None:
        root.mkdir(parents=True, exist_ok=True)
        self.logs = logs or root / "logs"
        self.output = root / "output.txt"
        # The same one after a restart, as clients expect.
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None
        self._settings = dict(settings or {})

    @contextmanager
    def running(self) -> Iterator[str]:
        """Started, until the end of the block; then stopped cleanly. Gives the address."""
        self.start()
        try:
            yield self.address
        finally:
            self.stop()

    def start(self) -> None:
        command = [sys.executable, "-m", "barnabas.cli.main", "up", "--dir", str(self.logs)]
        command += ["--port", str(self.port)]
        for name, value in self._settings.items():
            command += ["--config", f"{name}={value}"]
        with self.output.open("ab") as output:
            self.process = subprocess.Popen(
                [*self._limited(), *command], stdout=subprocess.PIPE, stderr=output, env=dict(os.environ)
            )
        if not self._is_ready(self.process):
            self.kill()
            raise AssertionError(f"Barnabas did not start:\n{self.output.read_text()[-3000:]}")

    def _limited(self) -> list[str]:
        """What starts the command in its place, with limits on what it can use."""
        return []

    def _is_ready(self, process: subprocess.Popen[bytes]) -> bool:
        assert process.stdout is not None
        deadline = time.monotonic() + START_TIMEOUT_S
        while (left := deadline - time.monotonic()) > 0:
            if not select.select([process.stdout], [], [], left)[0]:
                return False
            line = process.stdout.readline()
            if line.startswith(READY):
                return True
            if not line:
                return False
        return False

    def stop(self, *, code: int = 0) -> None:
        """Stop it with SIGTERM: it has to end by itself, with this exit code."""
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            ended = self.process.wait(STOP_TIMEOUT_S)
            self._forget()
            assert ended == code, f"exit code {ended}:\n{self.output.read_text()[-3000:]}"

    def kill(self) -> None:
        """What `kill -9` does."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(STOP_TIMEOUT_S)
            self._forget()

    def _forget(self) -> None:
        assert self.process is not None
        if self.process.stdout is not None:
            self.process.stdout.close()
        self.process = None

    @property
    def pid(self) -> int:
        assert self.process is not None, "it is not running"
        return self.process.pid
