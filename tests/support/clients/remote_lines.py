"""What is said to the process of a remote client, and what its answers are: see remote.py."""

from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any

from barnabas.records.header import TimestampType
from support.clients.client import (
    RECONNECT_MS_MAX,
    WAIT_SECONDS_MAX,
    Headers,
    Refused,
    Seen,
    code_of,
)
from support.clients.remote_process import RemoteProcess

_COMMON = {"reconnect_ms_max": RECONNECT_MS_MAX, "wait_ms_max": int(WAIT_SECONDS_MAX * 1000)}


def ask(process: RemoteProcess, operation: str, **fields: object) -> Any:
    """The value of the answer, or Refused."""
    answer = process.ask({"op": operation, **fields})
    if "error" in answer:
        raise refused(answer["error"])
    return answer["ok"]


def open_part(process: RemoteProcess, operation: str, **fields: object) -> None:
    """What cannot be opened is not left running."""
    try:
        ask(process, operation, **fields, **_COMMON)
    except BaseException:
        process.kill()
        raise


def refused(error: Mapping[str, Any]) -> Refused:
    return Refused(code_of(error["code"]), error["text"])


def from_bytes(data: bytes | None) -> str | None:
    return None if data is None else b64encode(data).decode()


def to_bytes(text: str | None) -> bytes | None:
    return None if text is None else b64decode(text, validate=True)


def seen(record: Mapping[str, Any]) -> Seen:
    headers: Headers = tuple((name, to_bytes(value)) for name, value in record["headers"])
    kind = record["timestamp_type"]
    return Seen(
        partition=record["partition"],
        offset=record["offset"],
        timestamp_ms=record["timestamp_ms"],
        timestamp_type=None if kind is None else TimestampType(kind),
        key=to_bytes(record["key"]),
        value=to_bytes(record["value"]),
        headers=headers,
    )
