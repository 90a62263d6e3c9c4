"""Test kit: a real broker inside a test process, with helpers that wait for records and conditions.

    with barnabas.testing.Broker(topics=["orders"]) as broker:
        ...                     # any Kafka client, at broker.bootstrap

Names are imported on first access: pytest imports this package in every session (plugin.py), and most
sessions never start a broker.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from barnabas.testing.broker import Broker
    from barnabas.testing.errors import BrokerDied, BrokerStopped, StartedElsewhere, WaitTimedOut
    from barnabas.testing.reading import (
        records,
        records_async,
        wait_for_offset,
        wait_for_offset_async,
        wait_for_records,
        wait_for_records_async,
    )
    from barnabas.testing.waiting import wait_until, wait_until_async

__all__ = [
    "Broker",
    "BrokerDied",
    "BrokerStopped",
    "StartedElsewhere",
    "WaitTimedOut",
    "records",
    "records_async",
    "wait_for_offset",
    "wait_for_offset_async",
    "wait_for_records",
    "wait_for_records_async",
    "wait_until",
    "wait_until_async",
]

_HOMES: Final = {
    "Broker": "broker",
    "BrokerDied": "errors",
    "BrokerStopped": "errors",
    "StartedElsewhere": "errors",
    "WaitTimedOut": "errors",
    "records": "reading",
    "records_async": "reading",
    "wait_for_offset": "reading",
    "wait_for_offset_async": "reading",
    "wait_for_records": "reading",
    "wait_for_records_async": "reading",
    "wait_until": "waiting",
    "wait_until_async": "waiting",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    # Later accesses find the name without __getattr__.
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
