"""What the parts of the adapter of kafka-python have in common."""

from collections.abc import Callable
from typing import Any, TypeVar

from kafka.errors import KafkaError

from barnabas.records.header import TimestampType
from support.clients.client import Refused, Seen, code_of

T = TypeVar("T")


def refused(error: BaseException) -> Refused:
    return Refused(code_of(getattr(error, "errno", None)), str(error))


def seen(message: Any) -> Seen:
    """aiokafka's records have the same fields."""
    return Seen(
        partition=message.partition,
        offset=message.offset,
        timestamp_ms=message.timestamp,
        timestamp_type=TimestampType(message.timestamp_type),
        key=message.key,
        value=message.value,
        headers=tuple(message.headers),
    )


def try_call(call: Callable[[], T]) -> T:
    try:
        return call()
    except KafkaError as error:
        raise refused(error) from None
