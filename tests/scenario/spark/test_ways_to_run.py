"""The ways to run a Spark job in the guide, with exactly its program and commands.

The first `python3` on PATH does not have Barnabas, so only the guide's commands select the right Python.
"""

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from barnabas.client.blocking import Admin, Consumer, Producer
from support.docs.pages import DOCS, commands, sections
from support.process.other_python import environment, path_without_barnabas
from support.process.ports import free_port
from support.spark.here import why_no_spark

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(why_no_spark() is not None, reason=why_no_spark() or ""),
]

GUIDE = DOCS / "guides" / "spark.md"
WAYS = [
    "By an interpreter",
    # Each of these starts one or two more JVMs.
    pytest.param("By spark-submit", marks=pytest.mark.soak),
    pytest.param("On a standalone cluster", marks=pytest.mark.soak),
    pytest.param("Through Spark Connect", marks=pytest.mark.soak),
]
# Servers that a reader runs in another terminal, and what they log when they are ready.
SERVERS = {
    "deploy.master.Master": "I have been elected leader",
    "deploy.worker.Worker": "Successfully registered with master",
    "SparkConnectServer": "Spark Connect server started at",
}
PORTS = re.compile(r"\b(7077|15002)\b")
CLICKS = [b"home", b"basket", b"checkout"]
RUN_S_MAX = 200
START_S_MAX = 60
READ_MS_MAX = 10_000


@pytest.mark.parametrize("way", WAYS)
def test_the_job_of_the_guide_runs(way: str, address: str, tmp_path: Path) -> None:
    found = sections(GUIDE)
    [job] = [block for block in found["Where it runs"] if block.file == "job.py"]
    topics = [f"{name}-{tmp_path.name}" for name in ("clicks", "shouted")]
    here = {"localhost:9092": address, '"/data/': f'"{tmp_path}/'}
    text = job.text
    for written, meant in {**here, '"clicks"': f'"{topics[0]}"', '"shouted"': f'"{topics[1]}"'}.items():
        assert written in text
        text = text.replace(written, meant)
    (tmp_path / "job.py").write_text(text)
    (tmp_path / ".venv").symlink_to(sys.prefix)
    fill(address, *topics)

    with Shell(tmp_path) as shell:
        for block in found[way]:
            assert block.language == "sh"
            for command in commands(block.text):
                shell.run(command)

    assert read(address, topics[1]) == [one.upper() for one in CLICKS]


def fill(address: str, source: str, target: str) -> None:
    with Admin(bootstrap_servers=address) as admin:
        for topic in (source, target):
            admin.create_topic(topic, partitions=1)
    with Producer(bootstrap_servers=address) as producer:
        for click in CLICKS:
            producer.send(source, click)


def read(address: str, topic: str) -> list[bytes | None]:
    settings = {"isolation_level": "read_committed", "auto_offset_reset": "earliest"}
    with Consumer(bootstrap_servers=address, **settings) as consumer:
        consumer.assign_topic(topic)
        return [record.value for record in consumer.batch(len(CLICKS), timeout_ms=READ_MS_MAX)]


class Shell:
    """Runs commands one after the other; servers run until the end."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._ports: dict[str, str] = {}
        self._servers = ExitStack()
        self._env = {
            **environment(path_without_barnabas(directory / "programs")),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_WORKER_DIR": str(directory / "work"),
        }

    def __enter__(self) -> "Shell":
        return self

    def __exit__(self, *_: object) -> None:
        self._servers.close()

    def run(self, command: str) -> None:
        command = PORTS.sub(lambda port: self._ports.setdefault(port[1], str(free_port())), command)
        if exported := re.fullmatch(r"export (\w+)=\$PWD/(\S+)", command):
            self._env[exported[1]] = str(self._directory / exported[2])
            return
        # With a Spark Connect server the program needs no Java.
        no_java = {"JAVA_HOME": "/nowhere"} if "SPARK_REMOTE" in command else {}
        ready = [line for name, line in SERVERS.items() if name in command]
        if ready:
            self._servers.enter_context(self._running(command, ready[0]))
            return
        ended = subprocess.run(
            ["bash", "-c", command],
            cwd=self._directory,
            env={**self._env, **no_java},
            capture_output=True,
            text=True,
            timeout=RUN_S_MAX,
            check=False,
        )
        assert ended.returncode == 0, f"{command}\n{ended.stdout[-2000:]}{ended.stderr[-5000:]}"
        # Spark warns if a registered source replaces a discovered one.
        assert "replaced a statically registered data source" not in ended.stderr

    @contextmanager
    def _running(self, command: str, ready: str) -> Iterator[None]:
        log = self._directory / "server.txt"
        with log.open("wb") as output:
            process = subprocess.Popen(
                ["bash", "-c", f"exec {command}"],
                cwd=self._directory,
                env=self._env,
                stdout=output,
                stderr=output,
            )
        try:
            end = time.monotonic() + START_S_MAX
            while ready not in log.read_text():
                assert process.poll() is None, log.read_text()[-5000:]
                assert time.monotonic() < end, log.read_text()[-5000:]
                time.sleep(0.1)
            yield
        finally:
            process.terminate()
            process.wait(START_S_MAX)


LATE = """
import os
import sys

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

from barnabas.spark.session import SourceNotFound, register

spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
clicks = spark.read.format("barnabas").option("kafka.bootstrap.servers", sys.argv[1])
clicks = clicks.option("subscribe", sys.argv[2])
try:
    clicks.load()
except Py4JJavaError as error:
    print(error.java_exception.getMessage())
os.environ["PYSPARK_PYTHON"] = "python3"
try:
    register(spark)
except SourceNotFound as error:
    print(error)
del os.environ["PYSPARK_PYTHON"]
register(spark)
# UDFs run there, too: with the other Python this module is unknown.
shout = udf(lambda value: __import__("barnabas") and value.decode().upper())
print([row[0] for row in clicks.load().select(shout("value")).collect()])
"""


def test_register_adds_the_source_to_an_existing_session(address: str, tmp_path: Path) -> None:
    """Without register() the query fails with the message in the guide."""
    topic = f"late-{tmp_path.name}"
    fill(address, topic, f"{topic}-unused")
    env = environment(path_without_barnabas(tmp_path / "programs"))

    ended = subprocess.run(
        [sys.executable, "-c", LATE, address, topic],
        cwd=tmp_path,
        env={**env, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=RUN_S_MAX,
        check=False,
    )

    assert ended.returncode == 0, ended.stderr[-5000:]
    error, wrong, values = ended.stdout.splitlines()
    told = re.search(r"`(\[DATA_SOURCE_NOT_FOUND\][^`]*)`", GUIDE.read_text().replace("\n  ", " "))
    assert told is not None
    assert error.startswith(told[1])
    assert wrong.startswith("python3 (PYSPARK_PYTHON) cannot load the data source barnabas")
    assert values == str([one.decode().upper() for one in CLICKS])
