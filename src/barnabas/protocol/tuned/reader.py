"""Reading a frame field by field, for tuned decoders (compiled).

A read past the end of the frame raises BadWire or IndexError; the decoder on top turns that into Malformed.
"""

from typing import Any, Final

from librt.strings import read_i16_be, read_i32_be, read_i64_be
from mypy_extensions import i32, i64, mypyc_attr

from barnabas.base.ids import Uuid
from barnabas.protocol.wire import (
    ITEMS_MAX,
    STRING_BYTES_MAX,
    UNKNOWN_TAGS_MAX,
    BadWire,
    rest_of_uvarint,
)

# Not imported: a constant of a module that is not compiled is looked up at every use.
ZERO_UUID: Final = Uuid(bytes(16))
NO_TAGS: Final[tuple[tuple[int, bytes], ...]] = ()
# The argument for a nullable list that is not given. None is a null list.
NEW_LIST: Final[list[Any]] = []


@mypyc_attr(free_list_len=1, acyclic=True)
class Reader:
    """A frame and a position: what every step below shares."""

    def __init__(self, version: i64, flexible: bool, buf: bytes, at: i64) -> None:
        self.version = version
        self.flexible = flexible
        self.buf = buf
        self.at = at
        self.end: i64 = len(buf)
        self.items: i64 = 0


def read_tags(r: Reader) -> tuple[tuple[int, bytes], ...]:
    """The tagged fields of a struct that declares none."""
    count = read_length(r)
    if count <= 0:
        return NO_TAGS
    if count > UNKNOWN_TAGS_MAX:
        raise BadWire
    unknown: list[tuple[int, bytes]] = []
    for _ in range(count):
        tag, stop = read_tag(r)
        unknown.append((tag, r.buf[r.at : stop]))
        r.at = stop
    return tuple(unknown)


def read_tag(r: Reader) -> tuple[i64, i64]:
    """A tag and where its field must end."""
    tag = read_length(r)
    size = read_length(r)
    stop = r.at + size
    if size < 0 or stop > r.end:
        raise BadWire
    return tag, stop


def read_count(r: Reader, least: i64) -> i64:
    """The length of an array that cannot be null, of items of at least `least` bytes."""
    count: i64
    if r.flexible:
        count = read_length(r) - 1
    else:
        count = i64(read_int32(r))
    r.items += count
    if count < 0 or count * least > r.end - r.at or r.items > ITEMS_MAX:
        raise BadWire
    return count


def read_null_array(r: Reader) -> bool:
    """Whether an array is null; only then its length has been read."""
    start = r.at
    count: i64
    if r.flexible:
        count = read_length(r) - 1
    else:
        count = i64(read_int32(r))
    if count < 0:
        return True
    r.at = start
    return False


def read_string(r: Reader) -> str:
    text = read_nullable_string(r)
    if text is None:
        raise BadWire
    return text


def read_nullable_string(r: Reader) -> str | None:
    size: i64
    if r.flexible:
        size = read_length(r) - 1
    else:
        size = i64(read_int16(r))
    if size <= 0:
        # Members that are none, and metadata that is empty: in most commits.
        return None if size < 0 else ""
    start = r.at
    if size > STRING_BYTES_MAX or size > r.end - start:
        raise BadWire
    r.at = start + size
    return r.buf[start : start + size].decode("utf-8")


def read_bytes(r: Reader) -> bytes:
    data = read_nullable_bytes(r)
    if data is None:
        raise BadWire
    return data


def read_nullable_bytes(r: Reader) -> bytes | None:
    size = read_size(r)
    if size < 0:
        return None
    start = r.at
    r.at = start + size
    return r.buf[start : start + size]


def read_size(r: Reader) -> i64:
    """The length of bytes or records, which are in the frame; negative for null."""
    size: i64
    if r.flexible:
        size = read_length(r) - 1
    else:
        size = i64(read_int32(r))
    if size > r.end - r.at:
        raise BadWire
    return size


def read_uuid(r: Reader) -> Uuid:
    start = r.at
    if r.end - start < 16:
        raise BadWire
    r.at = start + 16
    return Uuid(r.buf[start : start + 16])


def read_int8(r: Reader) -> i32:
    value = signed_byte(r.buf[r.at])
    r.at += 1
    return value


def signed_byte(value: i64) -> i32:
    return i32(value - 256 if value > 127 else value)


def read_int16(r: Reader) -> i32:
    value = i32(read_i16_be(r.buf, r.at))
    r.at += 2
    return value


def read_int32(r: Reader) -> i32:
    value = read_i32_be(r.buf, r.at)
    r.at += 4
    return value


def read_int64(r: Reader) -> i64:
    value = read_i64_be(r.buf, r.at)
    r.at += 8
    return value


def read_bool(r: Reader) -> bool:
    value = r.buf[r.at] != 0
    r.at += 1
    return value


def read_length(r: Reader) -> i64:
    """An unsigned varint."""
    first: i64 = r.buf[r.at]
    if first < 0x80:
        r.at += 1
        return first
    value, r.at = rest_of_uvarint(r.buf, r.at + 1, first)
    return value
