"""Sessions of Spark that find format("barnabas"), whichever `python3` is first on PATH.

Spark looks for Python data sources, and runs their tasks, with the interpreter that PYSPARK_PYTHON names, and
otherwise with `python3`. A program that an IDE or cron starts as `.venv/bin/python job.py` has the system's
`python3` on its PATH, which does not have Barnabas: DATA_SOURCE_NOT_FOUND. Spark's Java process reads the
variable once, when it starts, so start_session() sets it before, and register() helps a session that exists.
"""

import logging
import os
import shutil
import sys
from collections.abc import Callable, Mapping, MutableMapping
from typing import TYPE_CHECKING, Final

from barnabas.base.errors import BarnabasError
from barnabas.base.java import use_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

PYTHON: Final = "PYSPARK_PYTHON"
# spark-submit starts Java first, and tells Python where it is.
_GATEWAY: Final = "PYSPARK_GATEWAY_PORT"


class SourceNotFound(BarnabasError):
    """The interpreter that Spark uses cannot load the data source."""

    def __init__(self, python: str) -> None:
        super().__init__(
            f"{python} ({PYTHON}) cannot load the data source barnabas: install 'barnabas[spark]' there, "
            f"or unset {PYTHON}"
        )


def start_session(builder: "SparkSession.Builder | None" = None) -> "SparkSession":
    """builder.getOrCreate(), with the Python that runs this program, Java, and format("barnabas").

    PYSPARK_PYTHON keeps its value if it is set. Java is found as use_java() does. If getOrCreate() returns a
    session that exists, that session gets the source, too. NoJava or SourceNotFound if one is missing.
    """
    from pyspark.sql import SparkSession

    builder = SparkSession.builder if builder is None else builder
    use_this_python()
    if _starts_java(builder._options, os.environ):
        use_java()
    session = builder.getOrCreate()
    # Another class with Spark Connect. Its server finds the source: here, if it is a child of this process.
    if isinstance(session, SparkSession):
        register(session)
    return session


def register(spark: "SparkSession") -> None:
    """Let a session that exists find format("barnabas"). SourceNotFound if its Python does not have it."""
    from barnabas.spark.data_source import BarnabasDataSource

    python = use_this_python()
    context = spark.sparkContext
    # What Python functions, and so registered sources, run with. It was read when the context was made.
    context.pythonExec = python
    assert context._jvm is not None
    if _program(_discovers_with(context._jvm.java.lang.System.getenv)) != _program(python):
        spark.dataSource.register(BarnabasDataSource)
        logger.info("data source registered python=%s", python)
    elif not _knows_source(spark):
        raise SourceNotFound(python)


def use_this_python(environment: MutableMapping[str, str] = os.environ) -> str:
    """Have Spark use the interpreter that runs this program, unless another is set; tells which it is."""
    python = environment.get(PYTHON) or sys.executable
    environment[PYTHON] = python
    return python


def _discovers_with(environment: Callable[[str], str | None]) -> str:
    """What Java looks for data sources with, by its environment, as Spark's PythonUtils has it."""
    values = (environment(name) for name in ("PYSPARK_DRIVER_PYTHON", PYTHON))
    return next((value for value in values if value is not None), "python3")


def _program(python: str) -> str:
    """Where it is. Links are not followed: they are all that tells two environments apart."""
    return shutil.which(python) or python


def _knows_source(spark: "SparkSession") -> bool:
    """Whether Spark has found it by itself. It looks once, with the first name that it does not know."""
    sources = spark._jsparkSession.sessionState().dataSourceManager()
    return bool(sources.dataSourceExists("barnabas"))


def _starts_java(options: Mapping[str, object], environment: Mapping[str, str]) -> bool:
    """Whether a session with these options would start a Java process."""
    from pyspark import SparkContext

    remote = str(options.get("spark.remote") or environment.get("SPARK_REMOTE") or "local")
    return not remote.startswith("sc:") and SparkContext._gateway is None and _GATEWAY not in environment
