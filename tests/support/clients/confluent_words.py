"""What the parts of the adapter of confluent-kafka have in common."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

import confluent_kafka as ck
import confluent_kafka.admin

from barnabas.records.header import TimestampType
from support.clients.client import RECONNECT_MS_MAX, WAIT_SECONDS_MAX, Refused, Seen, code_of

# Its type hints do not export what its documentation names.
ck_admin: Any = confluent_kafka.admin


def common(address: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": address,
        "reconnect.backoff.max.ms": RECONNECT_MS_MAX,
        # Clients print what they think of restarts and refusals; the stories check it.
        "log_level": 0,
    }


def refused(error: Any) -> Refused:
    """From a KafkaError."""
    if error.code() == ck.KafkaError._AUTO_OFFSET_RESET and "Offset out of range" in error.str():
        # An error of the client's own is all that it makes of the broker's.
        return Refused(code_of(1), error.str())
    return Refused(code_of(error.code()), error.str())


def seen(message: Any) -> Seen:
    kind, timestamp = message.timestamp()
    return Seen(
        partition=message.partition(),
        offset=message.offset(),
        timestamp_ms=timestamp,
        # librdkafka counts from "not available".
        timestamp_type=TimestampType(kind - 1),
        key=message.key(),
        value=message.value(),
        headers=tuple(message.headers() or ()),
    )


def one(futures: Mapping[Any, Future[Any]]) -> Any:
    [future] = futures.values()
    return try_call(lambda: future.result(WAIT_SECONDS_MAX))


def try_call(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except ck.KafkaException as error:
        raise refused(error.args[0]) from None
