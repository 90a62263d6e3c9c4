"""What the parts of the adapter of kcat have in common."""

from collections.abc import Mapping
from typing import Any

import confluent_kafka as ck

from barnabas.protocol.error_codes import ErrorCode
from barnabas.records.header import TimestampType
from support.clients.client import RECONNECT_MS_MAX, Refused, Seen


def common(address: str) -> list[str]:
    # -E: a broker that restarts is no reason to exit.
    return ["-E", "-b", address, "-X", f"reconnect.backoff.max.ms={RECONNECT_MS_MAX}", "-X", "log_level=0"]


def refused(text: str) -> Refused:
    """From what librdkafka calls an error, by asking a librdkafka for the text of every code."""
    for code in ErrorCode:
        if code > 0 and ck.KafkaError(int(code)).str() in text:
            return Refused(code, text)
    return Refused(None, text)


def seen(shown: Mapping[str, Any]) -> Seen:
    flat = [_bytes(each) for each in shown.get("headers", ())]
    names = [(name or b"").decode() for name in flat[::2]]
    return Seen(
        partition=shown["partition"],
        offset=shown["offset"],
        timestamp_ms=shown["ts"],
        timestamp_type=(
            TimestampType.CREATE_TIME if shown["tstype"] == "create" else TimestampType.LOG_APPEND_TIME
        ),
        key=_bytes(shown["key"]),
        value=_bytes(shown["payload"]),
        headers=tuple(zip(names, flat[1::2], strict=True)),
    )


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()
