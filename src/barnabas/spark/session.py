"""Spark sessions that find format("barnabas"), whichever `python3` is first on PATH.

Spark discovers Python data sources and runs their tasks with the interpreter in PYSPARK_PYTHON, or else with
`python3`. A program that an IDE or cron starts as `.venv/bin/python job.py` has the system's `python3` on its
PATH, which cannot import Barnabas, so the query fails with DATA_SOURCE_NOT_FOUND. Spark's Java process reads
the variable once, when it starts: start_session() sets it before that, and register() adds the source to an
existing session.
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
# Set by spark-submit, which starts Java before Python.
_GATEWAY: Final = "PYSPARK_GATEWAY_PORT"


class SourceNotFound(BarnabasError):
    """The interpreter that Spark uses cannot load the data source."""

    def __init__(self, python: str) -> None:
        super().__init__(
            f"{python} ({PYTHON}) cannot load the data source barnabas: install 'barnabas[spark]' there, "
            f"or unset {PYTHON}"
        )


def start_session(builder: "SparkSession.Builder | None" = None) -> "SparkSession":
    """Call builder.getOrCreate() with this program's interpreter, Java, and format("barnabas").

    PYSPARK_PYTHON keeps its value if it is set. use_java() locates Java. If getOrCreate() returns an existing
    session, the source is registered with it. Raises NoJava or SourceNotFound.
    """
    from pyspark.sql import SparkSession

    builder = SparkSession.builder if builder is None else builder
    use_this_python()
    if _starts_java(builder._options, os.environ):
        use_java()
    session = builder.getOrCreate()
    # A Spark Connect session has another class. Its server discovers the source, with PYSPARK_PYTHON if it is
    # a child of this process.
    if isinstance(session, SparkSession):
        register(session)
    return session


def register(spark: "SparkSession") -> None:
    """Add format("barnabas") to an existing session. Raises SourceNotFound if its Python cannot load it."""
    from barnabas.spark.data_source import BarnabasDataSource

    python = use_this_python()
    context = spark.sparkContext
    # The interpreter of UDFs and registered sources. The context read the variable when it was created.
    context.pythonExec = python
    assert context._jvm is not None
    if _program(_discovers_with(context._jvm.java.lang.System.getenv)) != _program(python):
        spark.dataSource.register(BarnabasDataSource)
        logger.info("data source registered python=%s", python)
    elif not _knows_source(spark):
        raise SourceNotFound(python)


def use_this_python(environment: MutableMapping[str, str] = os.environ) -> str:
    """Set PYSPARK_PYTHON to this program's interpreter unless it is set; return its value."""
    python = environment.get(PYTHON) or sys.executable
    environment[PYTHON] = python
    return python


def _discovers_with(environment: Callable[[str], str | None]) -> str:
    """Return the interpreter with which Java discovers data sources, as in Spark's PythonUtils."""
    values = (environment(name) for name in ("PYSPARK_DRIVER_PYTHON", PYTHON))
    return next((value for value in values if value is not None), "python3")


def _program(python: str) -> str:
    """Return the interpreter's path without resolving links: two environments may differ only by links."""
    return shutil.which(python) or python


def _knows_source(spark: "SparkSession") -> bool:
    """Whether Spark has discovered the source. It does so once, at the first unknown format name."""
    sources = spark._jsparkSession.sessionState().dataSourceManager()
    return bool(sources.dataSourceExists("barnabas"))


def _starts_java(options: Mapping[str, object], environment: Mapping[str, str]) -> bool:
    """Whether a session with these options would start a Java process."""
    from pyspark import SparkContext

    remote = str(options.get("spark.remote") or environment.get("SPARK_REMOTE") or "local")
    return not remote.startswith("sc:") and SparkContext._gateway is None and _GATEWAY not in environment
