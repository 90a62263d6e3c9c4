"""Decode keys and values to text: plain ones, and those of internal topics to Kafka's JSON.

The decoders of internal topics print an error in place of a record that they cannot decode, and continue. The
errors are Kafka's, except for malformed bytes, where the reason is our decoder's.
"""

from collections.abc import Callable
from struct import Struct
from typing import Any, Final, NamedTuple, TypeAlias

from barnabas.base.errors import BarnabasError, Malformed
from barnabas.cli.dump.java import string
from barnabas.cli.dump.records import Shown
from barnabas.protocol.schema.codec import decode
from barnabas.protocol.schema.json import json_text, to_json
from barnabas.protocol.schema.struct import schema_of
from barnabas.protocol.stored.framing import (
    CONSUMER_OFFSETS,
    SHARE_GROUP_STATE,
    TRANSACTION_STATE,
    CoordinatorTopic,
    UnknownRecord,
    UnknownType,
    decode_metadata_record,
    decode_versioned,
)
from barnabas.protocol.wire import BadWire, read_uvarint


class Text(NamedTuple):
    """The printed key and value; None is omitted."""

    key: str | None
    value: str | None


Decoder: TypeAlias = Callable[[Shown], Text]
ToText: TypeAlias = Callable[[bytes], str]

STRING_DECODER: Final = "org.apache.kafka.tools.api.StringDecoder"
DELETED: Final = "<DELETE>"
# The embedded protocol whose subscriptions and assignments are decoded.
CONSUMER_PROTOCOL: Final = "consumer"

_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")
_INT64: Final = Struct(">q")
INT16_MAX: Final = 0x7FFF


class CannotDecode(BarnabasError):
    """A decoder does not exist, or cannot decode this record."""


# Plain keys and values


def _integer(data: bytes) -> str:
    return _first(_INT32, data)


def _long(data: bytes) -> str:
    return _first(_INT64, data)


def _first(number: Struct, data: bytes) -> str:
    if len(data) < number.size:
        raise CannotDecode(f"cannot read a {number.size}-byte number from {len(data)} bytes")
    return str(number.unpack_from(data)[0])


# Decoders by the names of Kafka's classes. Kafka's DefaultDecoder prints the memory address of the bytes;
# ours prints the bytes.
CLASSES: Final[dict[str, ToText]] = {
    STRING_DECODER: string,
    "org.apache.kafka.tools.api.IntegerDecoder": _integer,
    "org.apache.kafka.tools.api.LongDecoder": _long,
    "org.apache.kafka.tools.api.DefaultDecoder": bytes.hex,
}


def class_decoder(*, key_class: str, value_class: str) -> Decoder:
    """Return the decoder of --key-decoder-class and --value-decoder-class."""
    for name in (value_class, key_class):
        if name not in CLASSES:
            known = ", ".join(CLASSES)
            raise CannotDecode(
                f"unknown decoder {name!r}; supported: {known} (Java classes cannot be loaded)"
            )
    key_text, value_text = CLASSES[key_class], CLASSES[value_class]

    def decode_record(record: Shown) -> Text:
        return Text(
            None if record.key is None else key_text(record.key),
            None if record.value is None else value_text(record.value),
        )

    return decode_record


# Coordinators' topics


def offsets_decoder(record: Shown) -> Text:
    return _coordinator_record(CONSUMER_OFFSETS, record)


def transactions_decoder(record: Shown) -> Text:
    return _coordinator_record(TRANSACTION_STATE, record)


def share_state_decoder(record: Shown) -> Text:
    return _coordinator_record(SHARE_GROUP_STATE, record)


class _Skipped(Exception):
    """A record is skipped. Never leaves this module."""


def _coordinator_record(topic: CoordinatorTopic, record: Shown) -> Text:
    if record.key is None:
        raise CannotDecode(
            f"record at offset {record.offset} has no key, but records of {topic.name} have one"
        )
    try:
        kind = _version(record.key, "key")
        try:
            key = topic.decode_key(record.key)
        except UnknownRecord:
            return Text(f"Unknown record type {kind} at offset {record.offset}, skipping.", None)
        except Malformed as wrong:
            raise _unreadable(kind, "key", wrong) from None
        key_text = json_text({"type": str(kind), "data": to_json(key, 0)})
        if record.value is None:
            return Text(key_text, DELETED)
        return Text(key_text, _coordinator_value(topic, kind, key, record.value))
    except _Skipped as why:
        return Text(f"Error at offset {record.offset}, skipping. {why}", None)


def _coordinator_value(topic: CoordinatorTopic, kind: int, key: object, data: bytes) -> str:
    version = _version(data, "value")
    try:
        message = topic.decode_value(key, data).message
    except UnknownRecord:
        raise _Skipped(f"Found an unknown record version {version} for {kind} type") from None
    except Malformed as wrong:
        raise _unreadable(version, "value", wrong) from None
    value = to_json(message, version)
    if value.get("protocolType") == CONSUMER_PROTOCOL:
        for member, shown in zip(message.members, value["members"], strict=True):
            _unfold(shown, "subscription", member.subscription)
            _unfold(shown, "assignment", member.assignment)
    return json_text({"version": str(version), "data": value})


def _unfold(shown: dict[str, Any], name: str, data: bytes) -> None:
    """Decode the bytes of a member in place; keep them if they cannot be decoded."""
    from barnabas.protocol.stored.consumer_protocol import (
        ConsumerProtocolAssignment,
        ConsumerProtocolSubscription,
    )

    cls: type[Any] = ConsumerProtocolSubscription if name == "subscription" else ConsumerProtocolAssignment
    try:
        message, version = decode_versioned(cls, data, newer_as_last=True)
    except Malformed:
        return
    shown[name] = to_json(message, version)


def _version(data: bytes, where: str) -> int:
    if len(data) < _INT16.size:
        raise _Skipped(f"Could not read version from {where}'s buffer.")
    version: int = _INT16.unpack_from(data)[0]
    return version


def _unreadable(version: int, where: str, wrong: Malformed) -> _Skipped:
    return _Skipped(f"Could not read record with version {version} from {where}'s buffer due to: {wrong}.")


# Tiered storage


def remote_decoder(record: Shown) -> Text:
    raise CannotDecode("records of tiered storage are not supported")


# The metadata log


def metadata_decoder(record: Shown) -> Text:
    try:
        return Text(None, _metadata_record(record.value or b""))
    except _Skipped as why:
        return Text(None, f"Error at {record.offset}, skipping. {why}")


def _metadata_record(data: bytes) -> str:
    frame, at = _short(data, 0, "frame version")
    if frame == 0:
        raise _Skipped(
            "Could not deserialize metadata record with frame version 0. Note that upgrades from the preview"
            " release of KRaft in 2.8 to newer versions are not supported."
        )
    if frame != 1:
        raise _Skipped(
            f"Could not deserialize metadata record due to unknown frame version {frame}"
            "(only frame version 1 is supported)"
        )
    kind, at = _short(data, at, "type")
    version, at = _short(data, at, "version")
    try:
        cls = type(decode_metadata_record(data).message)
        # Decode again, because framing does not return where the record ended.
        message, end = decode(cls, version, data, at)
    except UnknownType:
        raise _Skipped(
            f"org.apache.kafka.common.errors.UnsupportedVersionException: Unknown metadata id {kind}"
        ) from None
    except Malformed:
        raise _Skipped(f"Failed to deserialize record with type {kind}") from None
    if end < len(data):
        raise _Skipped(f"Found {len(data) - end} byte(s) of garbage after {kind}")
    return json_text({"type": _record_type(cls), "version": version, "data": to_json(message, version)})


def _short(data: bytes, at: int, what: str) -> tuple[int, int]:
    try:
        value, at = read_uvarint(data, at)
    except (IndexError, BadWire):
        raise _Skipped(f"Error while reading {what}") from None
    if value > INT16_MAX:
        raise _Skipped(f"Value for {what} was too large.")
    return value, at


def _record_type(cls: type) -> str:
    """Convert NoOpRecord to NO_OP_RECORD."""
    name = schema_of(cls).name
    return "".join(f"_{char}" if char.isupper() else char.upper() for char in name).lstrip("_")
