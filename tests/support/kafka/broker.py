"""A real Kafka 4.3 broker: one combined node on a directory, to be started more than once.

It needs Java, and Maven once; kafka_tools() says what is missing and skips the test that asks.
"""

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from support.kafka.tools import KafkaTools
from support.process.ports import free_port, wait_for_port

START_TIMEOUT_S = 60
STOP_TIMEOUT_S = 60
CLUSTER_ID = "8UFBlDBzRM2WGJual5ztlg"


class KafkaBroker:
    """Formatted by format(), served within running() or between start() and stop()."""

    def __init__(
        self,
        tools: KafkaTools,
        root: Path,
        *,
        logs: Path | None = None,
        settings: Mapping[str, object] | None = None,
        java_options: tuple[str, ...] = (),
    ) -> None:
        self.tools = tools
        self.logs = logs or root / "logs"
        self.output = root / "output.txt"
        self.properties = root / "server.properties"
        self.port, self.controller_port = free_port(), free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None
        self._java_options = java_options
        chosen = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{self.controller_port}",
            "listeners": f"PLAINTEXT://{self.address},CONTROLLER://127.0.0.1:{self.controller_port}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": self.logs,
            "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": 1,
            **(settings or {}),
        }
        self.properties.write_text("".join(f"{key}={value}\n" for key, value in chosen.items()))

    def format(self, *args: str) -> None:
        done = self.tools.run(
            "kafka.tools.StorageTool",
            ["format", "--cluster-id", CLUSTER_ID, "--config", str(self.properties), *args],
        )
        assert done.returncode == 0, done.stdout + done.stderr

    @contextmanager
    def running(self) -> Iterator[str]:
        """Started, until the end of the block; then stopped cleanly. Gives the address."""
        self.start()
        try:
            yield self.address
        finally:
            self.stop()

    def start(self) -> None:
        with self.output.open("ab") as output:
            # The tools run to their end; this one has to be stopped.
            command = [
                "java",
                *self._java_options,
                "-cp",
                self.tools.classpath,
                "kafka.Kafka",
                str(self.properties),
            ]
            environment = {**os.environ, "KAFKA_OPTS": ""}
            self.process = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
        if not wait_for_port(self.port, self.process, START_TIMEOUT_S):
            self.kill()
            raise AssertionError(f"Kafka did not start:\n{self.output.read_text()[-3000:]}")

    def stop(self) -> None:
        """Stop it cleanly."""
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(STOP_TIMEOUT_S)
            self.process = None

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait(STOP_TIMEOUT_S)
            self.process = None

    @property
    def pid(self) -> int:
        assert self.process is not None, "it is not running"
        return self.process.pid
