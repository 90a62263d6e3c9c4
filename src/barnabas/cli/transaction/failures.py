"""What goes wrong, in the words of Kafka's tool: `Failed to do something: why`, on one line of stderr.

Why is what the exception of Kafka's client says, which makes most of these sentences itself. Kafka ends the
line with advice to turn on debug logging, which does not help here and is left out.
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
    """What goes wrong in here becomes ToolFailed. `said` are Kafka's sentences by the names of codes."""
    from barnabas.client.errors import ClientError

    try:
        yield
    except ClientError as error:
        raise ToolFailed(f"{what}: {why(error, said)}") from error


def why(error: BarnabasError, said: Mapping[str, str] = MappingProxyType({})) -> str:
    """Of several refusals, why the first. What nobody has a sentence for, in the broker's or our words."""
    from barnabas.client.errors import Refused, SomeRefused

    if isinstance(error, SomeRefused):
        error = next(iter(error.refused.values()))
    if isinstance(error, Refused):
        if error.code.name in said:
            return said[error.code.name]
        if error.code.name == "UNKNOWN_TOPIC_OR_PARTITION" and not error.message:
            return _UNKNOWN_TOPIC
    return reason(error)
