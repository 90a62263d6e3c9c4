"""Convert messages to the JSON of Kafka's tools, as its generated JsonConverter classes do.

to_json() returns plain values (dict, list, str, int, ...), json_text() prints them byte for byte as Kafka's
library does. Names are Kafka's own, in the order of the declaration. Fields that the version lacks are
omitted, and so are tagged fields at their defaults, as on the wire. Bytes are base64, a uuid is base64 with
the URL alphabet and no padding, integers of every width are numbers.
"""

from base64 import b64encode
from functools import cache
from json.encoder import encode_basestring
from math import isfinite
from typing import Any, Final

from barnabas.base.ids import format_uuid
from barnabas.protocol.schema.codec import NotEncodable, UnsupportedVersion
from barnabas.protocol.schema.fields import Field, Kind
from barnabas.protocol.schema.layout import Layout, message_layout, nested_layout
from barnabas.protocol.schema.struct import schema_of

# Java writes a double without an exponent from _PLAIN_FROM up to the next constant.
_PLAIN_FROM: Final = 1e-3
_PLAIN_BELOW: Final = 1e7

# Control characters without a short escape: Kafka's library writes \u00XX with capital letters.
_ESCAPES: Final = {code: f"\\u{code:04X}" for code in range(0x20) if chr(code) not in "\b\t\n\f\r"}


def to_json(message: object, version: int, *, records_as_size: bool = False) -> dict[str, Any]:
    """Convert the message at this version. NotEncodable if a field is set that the version lacks.

    Records are base64 like bytes; with `records_as_size`, for log lines, only `recordsSizeInBytes`.
    """
    cls = type(message)
    if version not in schema_of(cls).versions:
        raise UnsupportedVersion(cls, version)
    return _struct(message_layout(cls, version), message, records_as_size)


def json_text(value: object) -> str:
    """Print the result of to_json(), without spaces."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return _double(value)
        case str():
            return _string(value)
        case list():
            return f"[{','.join(map(json_text, value))}]"
        case dict():
            return "{" + ",".join(f"{_string(name)}:{json_text(item)}" for name, item in value.items()) + "}"
    raise AssertionError(f"{type(value).__name__} is not a JSON value")


# Values


def _struct(layout: Layout, value: object, records_as_size: bool) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for field in schema_of(layout.cls).fields:
        member = getattr(value, field.name)
        if layout.version not in field.versions:
            if not field.ignorable and not _is_default(field, member):
                raise NotEncodable(
                    f"is set, but version {layout.version} does not have it",
                    where=f"{layout.cls.__name__} v{layout.version}, {field.name}",
                )
        elif field.tag is None or not _is_default(field, member):
            if field.kind is Kind.RECORDS and records_as_size:
                members[f"{_camel(field.name)}SizeInBytes"] = 0 if member is None else len(member)
            else:
                members[_camel(field.name)] = _value(layout, field, member, records_as_size)
    return members


def _is_default(field: Field, value: object) -> bool:
    if field.kind is Kind.STRUCT and field.struct is not None:
        default = field.default() if isinstance(field.default, type) else None
        # For a non-nullable tagged struct, None and "all fields at their defaults" are the same on the wire.
        never_null = field.null.first > field.null.last
        return value == default or (never_null and value == field.struct())
    return bool(value == (field.default() if isinstance(field.default, type) else field.default))


def _value(layout: Layout, field: Field, value: Any, records_as_size: bool) -> Any:
    if value is None:
        return None
    if field.kind is Kind.STRUCT:
        return _struct(nested_layout(layout, field), value, records_as_size)
    if field.kind is Kind.ARRAY:
        assert field.item is not None, field
        return [_value(layout, field.item, item, records_as_size) for item in value]
    if field.kind is Kind.UUID:
        return format_uuid(value)
    if field.kind in (Kind.BYTES, Kind.RECORDS):
        return b64encode(value).decode()
    return value


@cache
def _camel(name: str) -> str:
    """Kafka's name of a field. Declarations append `_` to names that are Python keywords."""
    first, *rest = name.rstrip("_").split("_")
    return first + "".join(word.capitalize() for word in rest)


# Text


def _string(value: str) -> str:
    if value.isprintable():
        return encode_basestring(value)
    # Character by character, so that a backslash in the text is never taken for an escape.
    return '"' + "".join(_ESCAPES.get(ord(char)) or encode_basestring(char)[1:-1] for char in value) + '"'


def _double(value: float) -> str:
    """Format a double as Java does: 1.0, 1.0E10, 1.5E-5; NaN and infinities in quotes."""
    if not isfinite(value):
        return '"NaN"' if value != value else ('"Infinity"' if value > 0 else '"-Infinity"')
    if value == 0 or _PLAIN_FROM <= abs(value) < _PLAIN_BELOW:
        return repr(value)
    digits = repr(abs(value)).partition("e")[0].replace(".", "").strip("0")
    # Java prints at least two digits, and takes the second from the exact number: 4.9E-324, not 5.0E-324.
    mantissa, _, exponent = f"{value:.{max(len(digits), 2) - 1}e}".partition("e")
    return f"{mantissa}E{int(exponent)}"
