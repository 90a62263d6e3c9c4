"""The framing of stored messages in log records: where their type and version are.

Metadata records begin with frame version, type and version as varints. Coordinator records have the type
before the key and a version before the value. Control records have their type in the key. The consumer
protocol and principals begin with a version.
"""

from collections.abc import Iterable
from functools import cache
from importlib import import_module
from struct import Struct
from typing import Any, NamedTuple, TypeVar

from barnabas.base.errors import Malformed
from barnabas.protocol.schema.codec import decode, encode
from barnabas.protocol.schema.struct import schema_of
from barnabas.protocol.wire import BadWire, read_uvarint, write_uvarint
from barnabas.records.control import ControlType

T = TypeVar("T")

_INT16 = Struct(">h")
_METADATA_FRAME = 1


class UnknownRecord(Malformed):
    """A type or version of a later release. The record is otherwise valid, and a loader may skip it."""


class UnknownType(UnknownRecord):
    """The type of the record is unknown."""


class Versioned(NamedTuple):
    """A stored message and the version it was written in."""

    message: Any
    version: int


# The metadata log


def encode_metadata_record(record: object, version: int) -> bytes:
    key = schema_of(type(record)).key
    assert key is not None, f"{type(record).__name__} is not a metadata record"
    return (
        write_uvarint(_METADATA_FRAME) + write_uvarint(key) + write_uvarint(version) + encode(record, version)
    )


def decode_metadata_record(data: bytes) -> Versioned:
    try:
        frame, at = read_uvarint(data, 0)
        key, at = read_uvarint(data, at)
        version, at = read_uvarint(data, at)
    except (IndexError, BadWire):
        raise Malformed("record ends before its type and version", where="metadata record") from None
    if frame != _METADATA_FRAME:
        raise UnknownRecord(f"frame version is {frame}, expected {_METADATA_FRAME}", where="metadata record")
    cls = _types("metadata", ("cluster_topics", "cluster_nodes", "cluster_access")).get(key)
    return _decode_body(cls, version, data, at, where=f"metadata record type {key}")


# Coordinators' topics


class CoordinatorTopic(NamedTuple):
    """The record types of one internal topic."""

    name: str
    modules: tuple[str, ...]

    def decode_key(self, data: bytes) -> Any:
        kind, at = _leading_int16(data, f"key in {self.name}")
        cls = _types("key", self.modules).get(kind)
        return _decode_body(cls, 0, data, at, where=f"key type {kind} in {self.name}").message

    def decode_value(self, key: object, data: bytes) -> Versioned:
        """Decode the value of a decoded key. Do not call this for a null value, which is a tombstone."""
        kind = schema_of(type(key)).key
        version, at = _leading_int16(data, f"value in {self.name}")
        cls = _types("value", self.modules).get(kind if kind is not None else -1)
        return _decode_body(cls, version, data, at, where=f"value type {kind} in {self.name}")


CONSUMER_OFFSETS = CoordinatorTopic(
    "__consumer_offsets", ("offsets", "consumer_groups", "share_groups", "streams_groups")
)
TRANSACTION_STATE = CoordinatorTopic("__transaction_state", ("transactions",))
SHARE_GROUP_STATE = CoordinatorTopic("__share_group_state", ("share_state",))


# The types that precede keys, by class.
_key_types: dict[type, bytes] = {}


def encode_key(key: object) -> bytes:
    kind = _key_types.get(type(key))
    if kind is None:
        number = schema_of(type(key)).key
        assert number is not None, f"{type(key).__name__} is not a coordinator key"
        kind = _key_types[type(key)] = _INT16.pack(number)
    return kind + encode(key, 0)


def encode_value(value: object, version: int) -> bytes:
    return _INT16.pack(version) + encode(value, version)


# Control records


def encode_control(message: object, version: int = 0) -> bytes:
    """Encode a control record's value. Raft's messages have their version in a field, markers before it."""
    if isinstance(message, _control().EndTxnMarker):
        return encode_value(message, version)
    return encode(message, version)


def decode_control(kind: ControlType, data: bytes) -> Versioned:
    control = _control()
    where = f"control record {kind.name}"
    version, at = _leading_int16(data, where)
    if kind in (ControlType.COMMIT, ControlType.ABORT):
        # A later coordinator may append fields.
        version = min(version, schema_of(control.EndTxnMarker).versions.last)
        return _decode_body(control.EndTxnMarker, version, data, at, where=where)
    cls = {
        ControlType.LEADER_CHANGE: control.LeaderChangeMessage,
        ControlType.SNAPSHOT_HEADER: control.SnapshotHeaderRecord,
        ControlType.SNAPSHOT_FOOTER: control.SnapshotFooterRecord,
        ControlType.KRAFT_VERSION: control.KRaftVersionRecord,
        ControlType.KRAFT_VOTERS: control.VotersRecord,
    }[kind]
    return _decode_body(cls, version, data, 0, where=where)


# Blobs that begin with a version


def decode_versioned(cls: type[T], data: bytes, *, newer_as_last: bool = False) -> tuple[T, int]:
    """Decode the output of encode_value(). The consumer protocol reads newer versions as the last known."""
    version, at = _leading_int16(data, cls.__name__)
    if newer_as_last:
        version = min(version, schema_of(cls).versions.last)
    found = _decode_body(cls, version, data, at, where=cls.__name__)
    return found.message, found.version


def _leading_int16(data: bytes, where: str) -> tuple[int, int]:
    if len(data) < _INT16.size:
        raise Malformed(f"{len(data)} bytes are too few for a version", where=where)
    (value,) = _INT16.unpack_from(data)
    return value, _INT16.size


def _decode_body(cls: type[Any] | None, version: int, data: bytes, at: int, *, where: str) -> Versioned:
    if cls is None:
        raise UnknownType("unknown type", where=where)
    if version not in schema_of(cls).versions:
        raise UnknownRecord(f"version {version} is unknown, expected {schema_of(cls).versions}", where=where)
    message, _ = decode(cls, version, data, at)
    return Versioned(message, version)


@cache
def _types(kind: str, modules: Iterable[str]) -> dict[int, type]:
    found = {}
    for name in modules:
        for value in vars(import_module(f"barnabas.protocol.stored.{name}")).values():
            schema = getattr(value, "__schema__", None)
            if schema is not None and schema.kind == kind:
                found[schema.key] = value
    return found


def _control() -> Any:
    return import_module("barnabas.protocol.stored.control")
