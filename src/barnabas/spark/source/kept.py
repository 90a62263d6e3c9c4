"""A cache of a worker process's consumers, which saves the time to connect in every task.

A worker runs one task at a time. A task may use several consumers with the same settings, distinguished by
number. A consumer is closed after an error.
"""

import atexit
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from barnabas.client.blocking.consumer import Consumer

# Queries on several clusters, or with several settings, may share a worker.
_KEPT_MAX: Final = 16
_kept: "OrderedDict[tuple[int, tuple[tuple[str, str], ...]], Consumer]" = OrderedDict()


@contextmanager
def consumer_with(settings: Mapping[str, str], number: int = 0) -> Iterator[Consumer]:
    """Take a consumer with these settings and no assignment from the cache, or create one."""
    key = (number, tuple(sorted(settings.items())))
    consumer = _kept.pop(key, None) or Consumer(settings)
    try:
        yield consumer
        consumer.unassign()
    except BaseException:
        consumer.close()
        raise
    _kept[key] = consumer
    if len(_kept) > _KEPT_MAX:
        _kept.popitem(last=False)[1].close()


def forget(settings: Mapping[str, str]) -> None:
    """Close the consumers with these settings, because their metadata is stale."""
    wanted = tuple(sorted(settings.items()))
    for key in [key for key in _kept if key[1] == wanted]:
        _kept.pop(key).close()


def close_all() -> None:
    while _kept:
        _kept.popitem()[1].close()


atexit.register(close_all)
