"""Errors in the format of Kafka's tool: `Failed to do something: reason`, on one line of stderr.

The reason is the message of the exception in Kafka's client. Kafka's tool ends the line with advice to enable
debug logging, which would not help here and is omitted.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Final

from barnabas.base.errors import BarnabasError
from barnabas.cli.tool import ToolFailed, reason

_UNKNOWN_TOPIC: Final = "This server does not host this topic-partition."


@contextmanager
def failing(what: str, said: Mapping[str, str] = MappingProxyType({})) -> Iterator[None]:
    """Turn a ClientError into ToolFailed. `said` maps error codes to Kafka's messages."""
    from barnabas.client.errors import ClientError

    try:
        yield
    except ClientError as error:
        raise ToolFailed(f"{what}: {why(error, said)}") from error


def why(error: BarnabasError, said: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return the message of the (first) error: Kafka's if known, else the broker's or our own."""
    from barnabas.client.errors import Refused, SomeRefused

    if isinstance(error, SomeRefused):
        error = next(iter(error.refused.values()))
    if isinstance(error, Refused):
        if error.code.name in said:
            return said[error.code.name]
        if error.code.name == "UNKNOWN_TOPIC_OR_PARTITION" and not error.message:
            return _UNKNOWN_TOPIC
    return reason(error)
