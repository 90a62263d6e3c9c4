"""The Java client that Apache publishes, behind the small program in tests/interop/clients/java.

The programs there are compiled with the jars that support.kafka.tools finds, once for every version of their
sources.
"""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from support.clients import remote_build
from support.clients.remote import CannotBuild, Remote
from support.kafka.tools import VERSION, kafka_tools

SOURCES = remote_build.SOURCES / "java"
COMPILE_TIMEOUT_S = 120
# A story starts several processes, none of which lives long: half a second less for each.
_QUICK_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")


def java_program(main_class: str, *, without: Sequence[str] = ()) -> list[str]:
    """The command of one of our programs; jars whose names begin as `without` says are not on its class path.

    CannotBuild if this machine has not what it takes.
    """
    classes = _compiled(kafka_jars())
    jars = [jar for jar in kafka_jars() if not Path(jar).name.startswith(tuple(without))]
    return ["java", *_QUICK_START, "-cp", os.pathsep.join([str(classes), *jars]), main_class]


def kafka_jars() -> list[str]:
    """All that Kafka's clients and tools are made of."""
    try:
        return kafka_tools().classpath.split(os.pathsep)
    except pytest.skip.Exception as skipped:
        raise CannotBuild(str(skipped.msg)) from None


def _compiled(jars: Sequence[str]) -> Path:
    """The directory of the classes, compiled if they are not there yet."""
    if shutil.which("javac") is None:
        raise CannotBuild("javac is not installed, so programs for the Java client cannot be compiled")
    sources = sorted(SOURCES.glob("*.java"))
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]
    classes = remote_build.BUILT / f"java-{VERSION}-{digest}"
    if classes.exists():
        return classes
    # Beside the final name first, because two test processes may be at it.
    fresh = classes.with_name(f"{classes.name}.{os.getpid()}")
    fresh.mkdir(parents=True)
    command = ["javac", "-cp", os.pathsep.join(jars), "-d", str(fresh), *map(str, sources)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=COMPILE_TIMEOUT_S, check=False)
    # That it does not compile is our own mistake, and not a machine that lacks something.
    assert done.returncode == 0, done.stderr
    try:
        fresh.rename(classes)
    except OSError:
        # The other process was first.
        shutil.rmtree(fresh)
    return classes


JAVA = Remote("java", lambda: java_program("Checklist"))
