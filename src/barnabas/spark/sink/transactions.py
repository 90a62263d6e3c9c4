"""Transactions of the sink that fail: abort them, and explain errors after transaction.timeout.ms."""

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from barnabas.base.errors import BarnabasError
from barnabas.client.blocking.admin import Admin
from barnabas.client.errors import ClientError
from barnabas.client.producer.transaction import OpenTransaction
from barnabas.spark.options.client_settings import admin_settings
from barnabas.spark.options.sink import SinkOptions

logger = logging.getLogger(__name__)


class TookTooLong(BarnabasError):
    """The transactions were open for longer than transaction.timeout.ms."""


@contextmanager
def explain_timeout(options: SinkOptions, since_s: float) -> Iterator[None]:
    """Replace client errors by TookTooLong if transaction.timeout.ms has passed since `since_s`.

    The coordinator aborts such a transaction and then reports its producer as fenced, which does not tell a
    user what to do. `since_s` is a time.time(), possibly of another machine, so it only decides which
    error is raised.
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


def abort_transactions(options: SinkOptions, opened: Sequence[OpenTransaction]) -> None:
    """Abort open transactions after a failure, instead of waiting for their timeout. Errors are logged."""
    if not opened:
        return
    try:
        with Admin(admin_settings(options.producer)) as admin:
            admin.end_transactions(opened, commit=False)
    except ClientError as error:
        logger.warning("abort failed error=%s; the coordinator aborts after transaction.timeout.ms", error)
