"""The record of one committed offset: hand-written codec, compact form and validation (compiled).

Every commit writes a record for each partition. The bytes equal those of OffsetCommitKey and
OffsetCommitValue in protocol/stored/offsets.py.

A plain value has no metadata and no expiry of its own. table.py stores it as two numbers: its offset, and its
facts, which are commit time, leader epoch and form of the value. Both reproduce the same value byte by byte;
only its topic id, if any, is stored elsewhere. Values read from a log are stored undecoded, so load.py
validates them first.
"""

from struct import Struct
from typing import Final, NamedTuple, final

from librt.strings import (
    BytesWriter,
    read_i16_be,
    read_i32_be,
    read_i64_be,
    write_i16_be,
    write_i32_be,
    write_i64_be,
)
from mypy_extensions import i16, i32, i64, mypyc_attr

from barnabas.base.ids import ZERO_UUID, Uuid
from barnabas.coordinators.decision.outcome import PackedRecord
from barnabas.protocol.stored.framing import decode_versioned
from barnabas.protocol.stored.offsets import OffsetCommitValue
from barnabas.protocol.wire import write_uvarint

NO_EXPIRY: Final = -1

_KEY_TYPE: Final[i16] = 1
# The usual version, and the last one that has an expiry timestamp. (KIP-211)
VERSION: Final = 4
_EXPIRY_VERSION: Final = 1

# Version, offset, leader epoch; then metadata as a compact string, time and tagged fields.
_HEAD: Final = Struct(">hqi")
_TAIL: Final = Struct(">qb")
_TAIL_WITH_ID: Final = Struct(">qbbb16s")
# The whole value if the metadata is empty.
_PLAIN: Final = Struct(">hqibqb")
_PLAIN_WITH_ID: Final = Struct(">hqibqbbb16s")
# An empty compact string. In version 3 an empty string is two zero bytes.
EMPTY: Final = 1
TOPIC_ID_TAG: Final = 0
TOPIC_ID_SIZE: Final = 16
# Version and offset; then metadata as a string, commit and expiry time.
_EXPIRY_HEAD: Final = Struct(">hqh")
_EXPIRY_TAIL: Final = Struct(">qq")


@mypyc_attr(acyclic=True)
@final
class OffsetRecord(PackedRecord):
    """The offset of one partition for one group. `value` is encoded by pack_offset(); None is a tombstone."""

    __slots__ = ("group", "partition", "topic", "value")

    def __init__(self, group: str, topic: str, partition: int, value: bytes | None) -> None:
        self.group: Final = group
        self.topic: Final = topic
        self.partition: Final = partition
        self.value: Final = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OffsetRecord) and self.fields() == other.fields()

    def __hash__(self) -> int:
        return hash(self.fields())

    def __repr__(self) -> str:
        return f"OffsetRecord{self.fields()}"

    def fields(self) -> tuple[str, str, int, bytes | None]:
        return self.group, self.topic, self.partition, self.value

    def encoded(self) -> tuple[bytes, bytes | None]:
        group = self.group.encode()
        topic = self.topic.encode()
        key = BytesWriter()
        write_i16_be(key, _KEY_TYPE)
        write_i16_be(key, i16(len(group)))
        key.write(group)
        write_i16_be(key, i16(len(topic)))
        key.write(topic)
        write_i32_be(key, i32(self.partition))
        return key.getvalue(), self.value


class CommittedOffset(NamedTuple):
    """A decoded value. Times are in milliseconds; NO_EXPIRY means that the broker's retention applies."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_ms: int
    expire_ms: int = NO_EXPIRY
    topic_id: Uuid = ZERO_UUID


def pack_offset(committed: CommittedOffset) -> bytes:
    """Encode the value of a record."""
    offset, leader_epoch, metadata, commit_ms, expire_ms, topic_id = committed
    return pack_fields(offset, leader_epoch, metadata, commit_ms, expire_ms, topic_id)


def pack_fields(
    offset: int, leader_epoch: int, metadata: str, commit_ms: int, expire_ms: int, topic_id: Uuid
) -> bytes:
    """pack_offset() of single fields. A value with an expiry has neither leader epoch nor topic id."""
    if expire_ms != NO_EXPIRY:
        text = metadata.encode()
        head = _EXPIRY_HEAD.pack(_EXPIRY_VERSION, offset, len(text))
        return head + text + _EXPIRY_TAIL.pack(commit_ms, expire_ms)
    has_id = topic_id != ZERO_UUID
    if not metadata:
        # Hot path: written field by field, because a Struct would need an object for each number.
        plain = BytesWriter()
        write_i16_be(plain, i16(VERSION))
        write_i64_be(plain, offset)
        write_i32_be(plain, i32(leader_epoch))
        plain.append(EMPTY)
        write_i64_be(plain, commit_ms)
        plain.append(1 if has_id else 0)
        if has_id:
            plain.append(TOPIC_ID_TAG)
            plain.append(TOPIC_ID_SIZE)
            plain.write(topic_id)
        return plain.getvalue()
    text = metadata.encode()
    head = _HEAD.pack(VERSION, offset, leader_epoch) + write_uvarint(len(text) + 1) + text
    if has_id:
        return head + _TAIL_WITH_ID.pack(commit_ms, 1, TOPIC_ID_TAG, len(topic_id), topic_id)
    return head + _TAIL.pack(commit_ms, 0)


def read_offset(value: bytes) -> CommittedOffset:
    """Decode a value that was encoded here or validated by load.py."""
    size = len(value)
    if value[1] == VERSION and value[_HEAD.size] == EMPTY:
        if size == _PLAIN.size:
            _, offset, leader_epoch, _, commit_ms, _ = _PLAIN.unpack(value)
            return CommittedOffset(offset, leader_epoch, "", commit_ms)
        if size == _PLAIN_WITH_ID.size and value[_PLAIN.size - 1 : _PLAIN.size + 2] == b"\x01\x00\x10":
            _, offset, leader_epoch, _, commit_ms, _, _, _, topic_id = _PLAIN_WITH_ID.unpack(value)
            return CommittedOffset(offset, leader_epoch, "", commit_ms, NO_EXPIRY, Uuid(topic_id))
    found, _ = decode_versioned(OffsetCommitValue, value)
    return CommittedOffset(
        found.offset,
        found.leader_epoch,
        found.metadata,
        found.commit_timestamp,
        found.expire_timestamp,
        found.topic_id,
    )


def metadata_length(metadata: str | None) -> int:
    """The length in UTF-16 code units, as in Java."""
    if metadata is None:
        return 0
    return len(metadata) if metadata.isascii() else len(metadata.encode("utf-16-le")) // 2


# Compact form

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
OLD_VERSION: Final = 3

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


# Validation

LAST_VERSION: Final = 4
FLEXIBLE_VERSION: Final = 4
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
