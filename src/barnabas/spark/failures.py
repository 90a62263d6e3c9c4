"""Report a BarnabasError to the user of Spark, and the cause of a failed write in the worker's log.

The worker's traceback is hidden, so that the message of the error comes first. Spark passes the error of a
Python worker on as text that begins with the traceback: about twenty lines before the message. A worker omits
the traceback if an environment variable is set, which is how Spark implements
spark.sql.execution.pyspark.udf.hideTraceback.enabled. The variable is set only when a BarnabasError leaves
the worker, which ends with that error. Any other exception is a bug and keeps its traceback.
"""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from barnabas.base.errors import BarnabasError

logger = logging.getLogger(__name__)

_HIDE: Final = "SPARK_HIDE_TRACEBACK"
# Prefix of variables that Spark sets in its workers only.
_OF_WORKERS: Final = "PYTHON_WORKER_FACTORY_"


@contextmanager
def message_first() -> Iterator[None]:
    """Wrap a call from Spark in a worker. Also works as a decorator, but not on generators."""
    try:
        yield
    except BarnabasError:
        logger.debug("call from Spark failed", exc_info=True)
        if any(name.startswith(_OF_WORKERS) for name in os.environ):
            os.environ[_HIDE] = "1"
        raise


@contextmanager
def log_failed_write() -> Iterator[None]:
    """Log the cause of a failed write on the worker, and put the message first in Spark's error."""
    try:
        with message_first():
            yield
    except BarnabasError as error:
        logger.error("write failed error=%s", error)
        raise
