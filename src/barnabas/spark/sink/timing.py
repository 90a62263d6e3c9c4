"""Explains errors of a transaction that exceeded transaction.timeout.ms.

The coordinator aborts such a transaction and then reports its producer as fenced, which does not tell a user
what to do.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from barnabas.base.errors import BarnabasError
from barnabas.client.errors import ClientError
from barnabas.spark.options.sink import SinkOptions


class TookTooLong(BarnabasError):
    """The transactions were open for longer than transaction.timeout.ms."""


@contextmanager
def told_if_too_long(options: SinkOptions, since_s: float) -> Iterator[None]:
    """Replace client errors by TookTooLong if the timeout has passed since `since_s`.

    `since_s` is a time.time(), possibly of another machine, so it only decides which error is raised.
    """
    try:
        yield
    except ClientError as error:
        open_s = time.time() - since_s
        if open_s * 1000 < options.timeout_ms:
            raise
        raise TookTooLong(
            f"the batch took {open_s:.1f} s, longer than kafka.transaction.timeout.ms "
            f"({options.timeout_ms}): increase it or write less per batch ({error})"
        ) from error
