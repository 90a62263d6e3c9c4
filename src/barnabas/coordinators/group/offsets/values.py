"""Validation of commit values (compiled), which are stored undecoded and must be decodable later."""

from typing import Final

from librt.strings import read_i16_be
from mypy_extensions import i64

LAST_VERSION: Final = 4
FLEXIBLE_VERSION: Final = 4
TOPIC_ID_TAG: Final = 0
TOPIC_ID_SIZE: Final = 16
# An unsigned varint has at most five bytes.
LAST_SHIFT: Final = 28
INT32_MAX: Final = 0x7FFFFFFF
BAD: Final = -1


def value_fault(data: bytes, at: i64, end: i64, version: i64) -> str:
    """The error in the value in data[at:end], which starts after its version; "" if it is valid.

    Layout: offset, leader epoch (from version 3), metadata, commit time, expiry time (version 1), tagged
    fields.
    """
    at += 12 if version >= 3 else 8
    if version >= FLEXIBLE_VERSION:
        size, text = read_length(data, at, end)
        at = text + size - 1
        if text == BAD or size < 1 or at > end:
            return "metadata is truncated or null"
    else:
        text = at + 2
        at = string_end(data, at, end)
        if at == BAD:
            return "metadata is truncated or null"
    if at > text and not is_utf8(data[text:at]):
        return "metadata is not UTF-8"
    at += 16 if version == 1 else 8
    if at > end:
        return "value is truncated"
    if version >= FLEXIBLE_VERSION and not are_tags(data, at, end):
        return "tagged fields are truncated"
    return ""


def are_tags(data: bytes, at: i64, end: i64) -> bool:
    count, at = read_length(data, at, end)
    while at != BAD and count > 0:
        count -= 1
        tag, at = read_length(data, at, end)
        if at == BAD:
            return False
        size, at = read_length(data, at, end)
        if at == BAD or size > end - at or (tag == TOPIC_ID_TAG and size != TOPIC_ID_SIZE):
            return False
        at += size
    return at != BAD


def read_length(data: bytes, at: i64, end: i64) -> tuple[i64, i64]:
    """An unsigned varint and the position after it; (0, BAD) if it is truncated or has more than 31 bits."""
    shift: i64 = 0
    value: i64 = 0
    while at < end and shift <= LAST_SHIFT:
        byte: i64 = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value, at) if value <= INT32_MAX else (0, BAD)
        shift += 7
    return 0, BAD


def string_end(data: bytes, at: i64, end: i64) -> i64:
    """The end of a string with a two-byte length; BAD if it is truncated or null."""
    if end - at < 2:
        return BAD
    size: i64 = i64(read_i16_be(data, at))
    return at + 2 + size if 0 <= size <= end - at - 2 else BAD


def is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
