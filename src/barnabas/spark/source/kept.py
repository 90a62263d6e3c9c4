"""Consumers of a worker process: kept from one task to the next, because to connect takes long.

A worker runs one task at a time, which may take several of the same settings: these have numbers. A consumer
that had an error is not kept.
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
    """One with these settings, which reads nothing yet."""
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
    """Close those with these settings: what they remember of the cluster is old."""
    wanted = tuple(sorted(settings.items()))
    for key in [key for key in _kept if key[1] == wanted]:
        _kept.pop(key).close()


def close_all() -> None:
    while _kept:
        _kept.popitem()[1].close()


atexit.register(close_all)
