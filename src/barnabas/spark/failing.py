"""How an error of ours comes to the user: with its message first.

Spark passes on what a Python worker fails with as text, which begins with the traceback: twenty lines of
Spark's and ours before the one that says what is wrong. Workers can leave it out, as Spark's setting
spark.sql.execution.pyspark.udf.hideTraceback.enabled has it, of which an environment variable tells them.
It is set where an error of ours passes, and for nothing else: the worker ends with that error. What is a bug,
and no BarnabasError, keeps its traceback.
"""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from barnabas.base.errors import BarnabasError

logger = logging.getLogger(__name__)

_HIDE: Final = "SPARK_HIDE_TRACEBACK"
# Spark tells its workers where to connect to.
_OF_WORKERS: Final = "PYTHON_WORKER_FACTORY_"


@contextmanager
def message_first() -> Iterator[None]:
    """For what Spark calls in a worker; also a decorator, but not of generators."""
    try:
        yield
    except BarnabasError:
        logger.debug("call from Spark failed", exc_info=True)
        if any(name.startswith(_OF_WORKERS) for name in os.environ):
            os.environ[_HIDE] = "1"
        raise
