"""Check the dependencies of the demo: pyspark and pyarrow from pip, and Java for Spark."""

from collections.abc import Mapping
from importlib.util import find_spec

from barnabas.base.java import NoJava
from barnabas.base.java import java_home as home_of_java
from barnabas.cli.misuse import Misuse


def check_packages() -> None:
    missing = [name for name in ("pyspark", "pyarrow") if find_spec(name) is None]
    if missing:
        raise Misuse(f"{' and '.join(missing)} not installed: pip install 'barnabas[spark]'")


def java_home(environment: Mapping[str, str]) -> str | None:
    """Return the home of Java if Spark would not find one by itself. Misuse if there is no Java."""
    try:
        return home_of_java(environment)
    except NoJava as error:
        raise Misuse(str(error)) from None
