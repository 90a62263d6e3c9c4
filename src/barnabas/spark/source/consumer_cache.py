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
_CONSUMERS_MAX: Final = 16
_consumers: "OrderedDict[tuple[int, tuple[tuple[str, str], ...]], Consumer]" = OrderedDict()


@contextmanager
def cached_consumer(settings: Mapping[str, str], number: int = 0) -> Iterator[Consumer]:
    """Take a consumer with these settings and no assignment from the cache, or create one."""
    key = (number, tuple(sorted(settings.items())))
    consumer = _consumers.pop(key, None) or Consumer(settings)
    try:
        yield consumer
        consumer.unassign()
    except BaseException:
        consumer.close()
        raise
    _consumers[key] = consumer
    if len(_consumers) > _CONSUMERS_MAX:
        _consumers.popitem(last=False)[1].close()


def discard_consumers(settings: Mapping[str, str]) -> None:
    """Close the consumers with these settings, because their metadata is stale."""
    wanted = tuple(sorted(settings.items()))
    for key in [key for key in _consumers if key[1] == wanted]:
        _consumers.pop(key).close()


def close_all() -> None:
    while _consumers:
        _consumers.popitem()[1].close()


atexit.register(close_all)
