"""Kafka's message formatters, by the names of their Java classes. Pure: a message in, bytes out.

One difference to Kafka's DefaultMessageFormatter: a null is printed as null.literal. Kafka passes the bytes
of null.literal to the deserializer, which may decode them as a value (four letters are a valid Integer).
Formatters of internal topics are in internal_formatters.py.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol, TypeAlias

from barnabas.cli.console.deserializers import Deserializer, deserializer
from barnabas.cli.dump.java import string

PACKAGE: Final = "org.apache.kafka.tools.consumer."
DEFAULT: Final = PACKAGE + "DefaultMessageFormatter"
LOGGING: Final = PACKAGE + "LoggingMessageFormatter"
NO_OP: Final = PACKAGE + "NoOpMessageFormatter"

# Kafka's names of timestamp types.
CREATE_TIME: Final = "CreateTime"
LOG_APPEND_TIME: Final = "LogAppendTime"
NO_TIMESTAMP: Final = -1


class Record(Protocol):
    """The fields of a message that formatters read."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def timestamp(self) -> int: ...
    @property
    def timestamp_type(self) -> int: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> "Sequence[tuple[str, bytes | None]]": ...


# Returns the output for a record.
Formatter: TypeAlias = Callable[[Record], bytes]
_Column: TypeAlias = Callable[[Record], bytes]


def timestamp_text(record: Record) -> str:
    if record.timestamp == NO_TIMESTAMP and not record.timestamp_type:
        return "NO_TIMESTAMP"
    return f"{LOG_APPEND_TIME if record.timestamp_type else CREATE_TIME}:{record.timestamp}"


def default_formatter(properties: Mapping[str, str]) -> Formatter:
    """Configure Kafka's DefaultMessageFormatter."""
    separator = properties.get("key.separator", "\t").encode()
    line_end = properties.get("line.separator", "\n").encode()
    columns = _columns(properties)
    if not columns:
        return no_op_formatter
    if list(columns) == ["print.value"] and "value.deserializer" not in properties:
        null = properties.get("null.literal", "null").encode()
        # Fast path of the most common case.
        return lambda record: (null if record.value is None else record.value) + line_end
    makers = tuple(columns.values())
    return lambda record: separator.join([make(record) for make in makers]) + line_end


def no_op_formatter(record: Record) -> bytes:
    return b""


def logging_formatter(properties: Mapping[str, str], log: Callable[[str], None]) -> Formatter:
    """Configure Kafka's LoggingMessageFormatter: the default one, plus a log line per record."""
    text = default_formatter(properties)

    def both(record: Record) -> bytes:
        shown = text(record)
        log(log_line(record))
        return shown

    return both


def log_line(record: Record) -> str:
    """Return the log line of Kafka's LoggingMessageFormatter."""
    time = timestamp_text(record)
    shown_time = "" if time == "NO_TIMESTAMP" else f"{time}, "
    key = "null " if record.key is None else f"{string(record.key)}, "
    value = "null" if record.value is None else string(record.value)
    return f"{shown_time}key:{key}value:{value}"


def _columns(properties: Mapping[str, str]) -> dict[str, _Column]:
    """Return the printed columns of a record, in Kafka's order."""
    null = properties.get("null.literal", "null").encode()
    key_text = _field(properties, "key.deserializer", null)
    value_text = _field(properties, "value.deserializer", null)
    header_text = _field(properties, "headers.deserializer", null)
    between_headers = properties.get("headers.separator", ",").encode()

    def headers(record: Record) -> bytes:
        if not record.headers:
            return b"NO_HEADERS"
        shown = [key.encode() + b":" + header_text(value) for key, value in record.headers]
        return between_headers.join(shown)

    every: dict[str, _Column] = {
        "print.timestamp": lambda record: timestamp_text(record).encode(),
        "print.partition": lambda record: b"Partition:%d" % record.partition,
        "print.offset": lambda record: b"Offset:%d" % record.offset,
        # Only share groups count deliveries, and Kafka's tool discards the epoch before it prints a record.
        "print.delivery": lambda record: b"Delivery:NOT_PRESENT",
        "print.epoch": lambda record: b"Epoch:NOT_PRESENT",
        "print.headers": headers,
        "print.key": lambda record: key_text(record.key),
        "print.value": lambda record: value_text(record.value),
    }
    defaults = {"print.value": "true"}
    return {
        name: column
        for name, column in every.items()
        if properties.get(name, defaults.get(name, "")).strip().lower() == "true"
    }


def _field(properties: Mapping[str, str], name: str, null: bytes) -> Callable[[bytes | None], bytes]:
    text: Deserializer | None = deserializer(properties[name]) if name in properties else None

    def shown(data: bytes | None) -> bytes:
        if data is None:
            return null
        return data if text is None else text(data)

    return shown
