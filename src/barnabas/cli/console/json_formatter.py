"""The formatter of console-consumer --json: one line of JSON per record.

Keys, values and headers are text if they are UTF-8 or a deserializer is set; other bytes are an object
{"base64": ...}, so that no information is lost.
"""

import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from barnabas.cli.console.deserializers import deserializer
from barnabas.cli.console.formatters import CREATE_TIME, LOG_APPEND_TIME, Formatter, Record

_Shown: TypeAlias = str | dict[str, str] | None

_NAMES: Final = ("key.deserializer", "value.deserializer", "headers.deserializer")


def json_formatter(properties: Mapping[str, str]) -> Formatter:
    key_text, value_text, header_text = (_field(properties.get(name)) for name in _NAMES)

    def line(record: Record) -> bytes:
        shown = {
            "topic": record.topic,
            "partition": record.partition,
            "offset": record.offset,
            "timestamp": record.timestamp,
            "timestamp_type": LOG_APPEND_TIME if record.timestamp_type else CREATE_TIME,
            "key": key_text(record.key),
            "value": value_text(record.value),
            "headers": [[name, header_text(value)] for name, value in record.headers],
        }
        return json.dumps(shown, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"

    return line


def _field(name: str | None) -> Callable[[bytes | None], _Shown]:
    text = None if name is None else deserializer(name)

    def shown(data: bytes | None) -> _Shown:
        if data is None:
            return None
        try:
            return (data if text is None else text(data)).decode()
        except UnicodeDecodeError:
            return {"base64": b64encode(data).decode()}

    return shown
