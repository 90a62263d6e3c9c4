"""Kafka's formatters of internal topics, which print records of coordinators as JSON. Pure.

As in Kafka's tools, there is no separator between records, not even a line end, and records of other kinds
are skipped.
"""

from collections.abc import Callable
from typing import Final

from barnabas.base.errors import BarnabasError, Malformed
from barnabas.cli.console.formatters import PACKAGE, Formatter, Record
from barnabas.protocol.schema.json import json_text, to_json
from barnabas.protocol.schema.struct import schema_of
from barnabas.protocol.stored.framing import (
    CONSUMER_OFFSETS,
    SHARE_GROUP_STATE,
    TRANSACTION_STATE,
    CoordinatorTopic,
    UnknownRecord,
)

# Key versions in __consumer_offsets.
_OFFSET_COMMITS: Final = frozenset((0, 1))
_GROUP_METADATA: Final = frozenset((2,))
_SHARE_GROUPS: Final = frozenset(range(10, 16))


class CannotShow(BarnabasError):
    """The formatter cannot decode a record."""


def internal_formatter(name: str) -> Formatter | None:
    """Return the formatter with the name of Kafka's class; None if there is none."""
    make = _BY_NAME.get(name)
    return None if make is None else make()


def _shown(topic: CoordinatorTopic, kinds: frozenset[int] | None) -> Formatter:
    def text(record: Record) -> bytes:
        if record.key is None:
            return b""
        try:
            return _json(topic, kinds, record.key, record.value).encode()
        except UnknownRecord:
            return b""
        except Malformed as wrong:
            raise CannotShow(f"Could not read record at offset {record.offset} due to: {wrong}") from None

    return text


def _json(topic: CoordinatorTopic, kinds: frozenset[int] | None, key: bytes, value: bytes | None) -> str:
    found = topic.decode_key(key)
    kind = schema_of(type(found)).key
    if kinds is not None and kind not in kinds:
        return ""
    shown: dict[str, object] = {"key": {"type": kind, "data": to_json(found, 0)}}
    if value is None:
        shown["value"] = None
    else:
        message, version = topic.decode_value(found, value)
        shown["value"] = {"version": version, "data": to_json(message, version)}
    return json_text(shown)


_BY_NAME: Final[dict[str, Callable[[], Formatter]]] = {
    PACKAGE + "OffsetsMessageFormatter": lambda: _shown(CONSUMER_OFFSETS, _OFFSET_COMMITS),
    PACKAGE + "GroupMetadataMessageFormatter": lambda: _shown(CONSUMER_OFFSETS, _GROUP_METADATA),
    PACKAGE + "ShareGroupMessageFormatter": lambda: _shown(CONSUMER_OFFSETS, _SHARE_GROUPS),
    PACKAGE + "TransactionLogMessageFormatter": lambda: _shown(TRANSACTION_STATE, None),
    PACKAGE + "group.share.ShareGroupStateMessageFormatter": lambda: _shown(SHARE_GROUP_STATE, None),
}
