"""A transaction that was open for longer than the coordinator allows is aborted, and refused as if fenced.

What the cluster says then does not tell a user what to do about it.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from barnabas.base.errors import BarnabasError
from barnabas.client.errors import ClientError
from barnabas.spark.options.sink import SinkOptions


class TookTooLong(BarnabasError):
    """The transactions were open for longer than the coordinator allows."""


@contextmanager
def told_if_too_long(options: SinkOptions, since_s: float) -> Iterator[None]:
    """`since_s` is by time.time(), of another machine perhaps: it is needed for the reason alone."""
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
