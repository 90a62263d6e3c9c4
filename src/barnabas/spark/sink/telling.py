"""Why a write failed, in the log of whoever ran it: what Spark says to the user is that it failed."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from barnabas.base.errors import BarnabasError

logger = logging.getLogger(__name__)


@contextmanager
def told_on_failure() -> Iterator[None]:
    try:
        yield
    except BarnabasError as error:
        logger.error("not written because=%s", error)
        raise
