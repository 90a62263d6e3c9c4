"""Logs the cause of a failed write on the worker, and puts the message first in Spark's error."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from barnabas.base.errors import BarnabasError
from barnabas.spark.failing import message_first

logger = logging.getLogger(__name__)


@contextmanager
def told_on_failure() -> Iterator[None]:
    try:
        with message_first():
            yield
    except BarnabasError as error:
        logger.error("write failed error=%s", error)
        raise
