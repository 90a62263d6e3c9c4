"""Spark's own Kafka connector, from the JARs that Apache publishes, to run beside ours.

There is none for the Spark that we use yet: the one before runs with it, and with the clients that it was
made for. What they would bring along comes with Spark, or has no part in what is asked here. The JARs stay in
Maven's own store; where they are is kept below the user's cache directory, so Maven is asked only once.
"""

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from support.spark.here import why_no_spark

VERSION = "4.2.0"
MAVEN_TIMEOUT_S = 600

_JARS = (
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", VERSION),
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
    ("org.apache.kafka", "kafka-clients", "3.9.1"),
    ("org.apache.commons", "commons-pool2", "2.12.1"),
)
_DEPENDENCY = """
    <dependency>
      <groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version>
      <exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>
    </dependency>"""
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>barnabas</groupId><artifactId>spark-kafka</artifactId><version>1</version>
  <dependencies>{dependencies}
  </dependencies>
</project>
"""


class NoJars(Exception):
    """Why the JARs are not available."""


def spark_kafka_jars() -> list[Path]:
    """Return the value of `spark.jars`, or skip the test with the reason."""
    try:
        return find_jars()
    except NoJars as why:
        pytest.skip(str(why))


def find_jars() -> list[Path]:
    """Return the value of `spark.jars`. Raises NoJars with the reason."""
    found = _find()
    if isinstance(found, str):
        raise NoJars(found)
    return found


@cache
def _find() -> list[Path] | str:
    if (reason := why_no_spark()) is not None:
        return reason
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    cached = Path(root) / "barnabas" / f"spark-kafka-{VERSION}.classpath"
    if not _is_whole(cached):
        if shutil.which("mvn") is None:
            return "mvn is not installed, so Spark's own Kafka connector cannot be had"
        wrong = _resolve(cached)
        if wrong is not None:
            return wrong
    return _listed(cached)


def _is_whole(cached: Path) -> bool:
    """Whether the paths of the JARs are recorded and the files exist."""
    return cached.exists() and all(jar.exists() for jar in _listed(cached))


def _listed(cached: Path) -> list[Path]:
    return [Path(jar) for jar in cached.read_text().split(os.pathsep)]


def _resolve(cached: Path) -> str | None:
    """Download the JARs with Maven; return the error if that fails."""
    cached.parent.mkdir(parents=True, exist_ok=True)
    pom = cached.with_suffix(".pom.xml")
    rows = [_DEPENDENCY.format(group=group, name=name, version=version) for group, name, version in _JARS]
    pom.write_text(_POM.format(dependencies="".join(rows)))
    # Write to a temporary name first, because two test processes may do this at once.
    fresh = cached.with_suffix(f".{os.getpid()}")
    goal = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:build-classpath"
    command = ["mvn", "-q", "-B", "-f", str(pom), goal, f"-Dmdep.outputFile={fresh}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=MAVEN_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return f"Maven did not get Spark's Kafka connector {VERSION} within {MAVEN_TIMEOUT_S} seconds"
    if done.returncode != 0 or not fresh.exists():
        last = (done.stdout.strip().splitlines() or ["no reason given"])[0]
        return f"Maven cannot get Spark's Kafka connector {VERSION}: {last}"
    fresh.replace(cached)
    return None
