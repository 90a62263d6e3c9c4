"""Compact form of common commit values: two numbers (compiled).

A plain value has no metadata and no expiry of its own. It is stored as its offset and its facts: commit time,
leader epoch and form of the value. Both reproduce the same value byte by byte; only its topic id, if any, is
stored elsewhere.
"""

from typing import Final

from librt.strings import (
    BytesWriter,
    read_i16_be,
    read_i32_be,
    read_i64_be,
    write_i16_be,
    write_i32_be,
    write_i64_be,
)
from mypy_extensions import i32, i64

# Facts of a value that is not plain. Those of a plain value are never 0, because they contain a form.
NOT_PLAIN: Final = 0

# Forms: version 4 without and with a topic id, and version 3, which earlier releases wrote.
NO_ID: Final = 1
WITH_ID: Final = 2
OLD: Final = 3

# Positions of the fields: version, offset, leader epoch, metadata, time, tagged fields.
OFFSET_AT: Final = 2
EPOCH_AT: Final = 10
TEXT_AT: Final = 14
TIME_AT: Final = 15
TAGS_AT: Final = 23
TOPIC_ID_AT: Final = 26
OLD_TIME_AT: Final = 16
SIZE: Final = 24
SIZE_WITH_ID: Final = 42
VERSION: Final = 4
OLD_VERSION: Final = 3
# An empty compact string. In version 3 an empty string is two zero bytes.
EMPTY: Final = 1
TOPIC_ID_SIZE: Final = 16

# Layout of the facts from the lowest bit: form, leader epoch + 1 (it may be -1), time as a signed distance
# from TIME_MIDDLE. 42 bits of time last until the year 2109.
FORM_BITS: Final = 3
EPOCH_SHIFT: Final = 2
EPOCH_MAX: Final = 0xFFFFE
EPOCH_BITS: Final = 0xFFFFF
TIME_SHIFT: Final = 22
TIME_MAX: Final = 0x3FFFFFFFFFF
TIME_MIDDLE: Final = 0x20000000000


def plain_facts(data: bytes, at: i64, end: i64) -> i64:
    """The facts of the value in data[at:end], or NOT_PLAIN."""
    form: i64 = plain_form(data, at, end)
    if form == NOT_PLAIN:
        return NOT_PLAIN
    time_ms: i64 = read_i64_be(data, at + (OLD_TIME_AT if form == OLD else TIME_AT))
    epoch: i64 = i64(read_i32_be(data, at + EPOCH_AT))
    if time_ms < 0 or time_ms > TIME_MAX or epoch < -1 or epoch > EPOCH_MAX:
        return NOT_PLAIN
    return ((time_ms - TIME_MIDDLE) << TIME_SHIFT) | ((epoch + 1) << EPOCH_SHIFT) | form


def plain_form(data: bytes, at: i64, end: i64) -> i64:
    size: i64 = end - at
    if size != SIZE and size != SIZE_WITH_ID:
        return NOT_PLAIN
    version: i64 = i64(read_i16_be(data, at))
    text: i64 = data[at + TEXT_AT]
    if version == VERSION and text == EMPTY:
        tags: i64 = data[at + TAGS_AT]
        if size == SIZE:
            return NO_ID if tags == 0 else NOT_PLAIN
        # One tagged field, tag 0, with the size of a topic id.
        tag: i64 = data[at + TAGS_AT + 1]
        tag_size: i64 = data[at + TAGS_AT + 2]
        return WITH_ID if tags == 1 and tag == 0 and tag_size == TOPIC_ID_SIZE else NOT_PLAIN
    if version == OLD_VERSION and size == SIZE and text == 0 and data[at + TEXT_AT + 1] == 0:
        return OLD
    return NOT_PLAIN


def form_in(facts: i64) -> i64:
    return facts & FORM_BITS


def plain_value(offset: i64, facts: i64, id_high: i64, id_low: i64) -> bytes:
    """Reproduce the value. The topic id is used only if the form has one."""
    form: i64 = form_in(facts)
    epoch: i64 = ((facts >> EPOCH_SHIFT) & EPOCH_BITS) - 1
    value = BytesWriter()
    write_i16_be(value, OLD_VERSION if form == OLD else VERSION)
    write_i64_be(value, offset)
    write_i32_be(value, i32(epoch))
    if form == OLD:
        write_i16_be(value, 0)
    else:
        value.append(EMPTY)
    write_i64_be(value, (facts >> TIME_SHIFT) + TIME_MIDDLE)
    if form == NO_ID:
        value.append(0)
    elif form == WITH_ID:
        value.append(1)
        value.append(0)
        value.append(TOPIC_ID_SIZE)
        write_i64_be(value, id_high)
        write_i64_be(value, id_low)
    return value.getvalue()
