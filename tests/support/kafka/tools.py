"""Kafka 4.3's own command-line tools, from the jars that Apache publishes.

kafka_tools() skips the test that asks if there is no Java, no Maven, or no way to the jars. The jars stay in
Maven's own store; where they are is kept below the user's cache directory, so Maven is asked only once.
"""

import os
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

VERSION = "4.3.0"
TIMEOUT_S = 120
MAVEN_TIMEOUT_S = 600

# Whatever the locale is, the tools print UTF-8; and they start in half the time without the second compiler.
_JAVA_OPTIONS = ("-Dfile.encoding=UTF-8", "-Dstdout.encoding=UTF-8", "-Dstderr.encoding=UTF-8")
_QUICK_START = ("-XX:TieredStopAtLevel=1", "-Xshare:auto")

_DEPENDENCY = """
    <dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version></dependency>"""
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>barnabas</groupId><artifactId>kafka-tools</artifactId><version>1</version>
  <dependencies>{dependencies}
  </dependencies>
</project>
"""
_JARS = (
    ("org.apache.kafka", "kafka-tools", VERSION),
    ("org.apache.kafka", "kafka_2.13", VERSION),
    # Kafka's classes log; say nothing instead of a warning about a missing logger.
    ("org.slf4j", "slf4j-nop", "1.7.36"),
)


class KafkaTools:
    """Each method runs one tool to its end."""

    def __init__(self, classpath: str) -> None:
        self.classpath = classpath

    def dump_log(self, *args: str) -> subprocess.CompletedProcess[str]:
        return self.run("org.apache.kafka.tools.DumpLogSegments", args)

    def run(self, main_class: str, args: Sequence[str]) -> subprocess.CompletedProcess[str]:
        command = ["java", *_JAVA_OPTIONS, *_QUICK_START, "-cp", self.classpath, main_class, *args]
        return subprocess.run(
            command, capture_output=True, check=False, encoding="utf-8", errors="replace", timeout=TIMEOUT_S
        )


def kafka_tools() -> KafkaTools:
    """The tools, or the test is skipped with the reason."""
    found = _find()
    if isinstance(found, str):
        pytest.skip(found)
    return found


@cache
def _find() -> KafkaTools | str:
    for program in ("java", "mvn"):
        if shutil.which(program) is None:
            return f"{program} is not installed, so Kafka's tools cannot be run"
    cached = _cache_directory() / f"kafka-tools-{VERSION}.classpath"
    if not _is_whole(cached):
        wrong = _resolve(cached)
        if wrong is not None:
            return wrong
    return KafkaTools(cached.read_text())


def _cache_directory() -> Path:
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "barnabas"


def _is_whole(cached: Path) -> bool:
    """Whether it is known where the jars are, and they still are there."""
    return cached.exists() and all(Path(jar).exists() for jar in cached.read_text().split(os.pathsep))


def _resolve(cached: Path) -> str | None:
    """Ask Maven for the jars; what is wrong if it cannot get them."""
    cached.parent.mkdir(parents=True, exist_ok=True)
    pom = cached.with_suffix(".pom.xml")
    rows = [_DEPENDENCY.format(group=group, name=name, version=version) for group, name, version in _JARS]
    pom.write_text(_POM.format(dependencies="".join(rows)))
    # Beside the final name first, because two test processes may be at it.
    fresh = cached.with_suffix(f".{os.getpid()}")
    goal = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:build-classpath"
    command = ["mvn", "-q", "-B", "-f", str(pom), goal, f"-Dmdep.outputFile={fresh}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=MAVEN_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return f"Maven did not get Kafka {VERSION}'s jars within {MAVEN_TIMEOUT_S} seconds"
    if done.returncode != 0 or not fresh.exists():
        last = (done.stdout.strip().splitlines() or ["no reason given"])[0]
        return f"Maven cannot get Kafka {VERSION}'s jars: {last}"
    fresh.replace(cached)
    return None
