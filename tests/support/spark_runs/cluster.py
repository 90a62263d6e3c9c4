"""A standalone cluster of Spark's own with two workers, each on an address of its own.

Spark starts a speculative copy of a task only on another host; for it the loopback addresses are hosts.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from barnabas.testing.waiting import wait_until
from support.spark_runs.process import TESTS

HOSTS: Final = ("127.0.0.1", "127.0.0.2")
_START_S_MAX: Final = 90
_END_S_MAX: Final = 60


@contextmanager
def two_workers(directory: Path) -> Iterator[dict[str, str]]:
    """The settings with which a driver runs there."""
    places = filter(None, [str(TESTS), os.environ.get("PYTHONPATH")])
    python_path = os.pathsep.join(
        os.path.abspath(each) for place in places for each in place.split(os.pathsep)
    )
    env = {**os.environ, "PYTHONPATH": python_path, "PYSPARK_PYTHON": sys.executable}
    with ExitStack() as ending:
        log = directory / "master.txt"
        words = ["--host", HOSTS[0], "--port", "0", "--webui-port", "0"]
        ending.enter_context(_daemon("master.Master", words, log, {**env, "SPARK_LOCAL_IP": HOSTS[0]}))
        master = _wait_for(log, r"spark://127\.0\.0\.1:\d+")
        logs = []
        for host in HOSTS:
            logs.append(log := directory / f"worker-{host}.txt")
            work = directory / f"work-{host}"
            words = ["--host", host, "--port", "0", "--webui-port", "0", "--cores", "2", "--memory", "1g"]
            words += ["--work-dir", str(work), master]
            ending.enter_context(_daemon("worker.Worker", words, log, {**env, "SPARK_LOCAL_IP": host}))
        for log in logs:
            _wait_for(log, "Successfully registered with master")
        yield {
            "spark.master": master,
            "spark.executor.memory": "512m",
            "spark.executorEnv.PYTHONPATH": python_path,
        }


@contextmanager
def _daemon(name: str, words: list[str], log: Path, env: Mapping[str, str]) -> Iterator[None]:
    program = str(Path(sys.executable).parent / "spark-class")
    with log.open("wb") as output:
        process = subprocess.Popen(
            [program, f"org.apache.spark.deploy.{name}", *words], stdout=output, stderr=output, env=dict(env)
        )
    try:
        yield
    finally:
        process.terminate()
        process.wait(_END_S_MAX)


def _wait_for(log: Path, pattern: str) -> str:
    found = wait_until(
        lambda: re.search(pattern, log.read_text()),
        timeout_s=_START_S_MAX,
        what=f"{log.name} has {pattern!r}",
    )
    assert found is not None
    return found.group()
