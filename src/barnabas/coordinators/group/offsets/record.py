"""Hand-written codec of the record of one committed offset; every commit writes one for each partition.

The bytes equal those of OffsetCommitKey and OffsetCommitValue in protocol/stored/offsets.py.
"""

from struct import Struct
from typing import Final, NamedTuple, final

from librt.strings import BytesWriter, write_i16_be, write_i32_be, write_i64_be
from mypy_extensions import i16, i32, mypyc_attr

from barnabas.base.ids import ZERO_UUID, Uuid
from barnabas.coordinators.decision.outcome import PackedRecord
from barnabas.protocol.stored.framing import decode_versioned
from barnabas.protocol.stored.offsets import OffsetCommitValue
from barnabas.protocol.wire import write_uvarint

NO_EXPIRY: Final = -1

_KEY_TYPE: Final[i16] = 1
# The usual version, and the last one that has an expiry timestamp. (KIP-211)
_VERSION: Final = 4
_EXPIRY_VERSION: Final = 1

# Version, offset, leader epoch; then metadata as a compact string, time and tagged fields.
_HEAD: Final = Struct(">hqi")
_TAIL: Final = Struct(">qb")
_TAIL_WITH_ID: Final = Struct(">qbbb16s")
# The whole value if the metadata is empty.
_PLAIN: Final = Struct(">hqibqb")
_PLAIN_WITH_ID: Final = Struct(">hqibqbbb16s")
_EMPTY_STRING: Final = 1
_ID_TAG: Final = 0
_ID_SIZE: Final = 16
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
        write_i16_be(plain, i16(_VERSION))
        write_i64_be(plain, offset)
        write_i32_be(plain, i32(leader_epoch))
        plain.append(_EMPTY_STRING)
        write_i64_be(plain, commit_ms)
        plain.append(1 if has_id else 0)
        if has_id:
            plain.append(_ID_TAG)
            plain.append(_ID_SIZE)
            plain.write(topic_id)
        return plain.getvalue()
    text = metadata.encode()
    head = _HEAD.pack(_VERSION, offset, leader_epoch) + write_uvarint(len(text) + 1) + text
    if has_id:
        return head + _TAIL_WITH_ID.pack(commit_ms, 1, _ID_TAG, len(topic_id), topic_id)
    return head + _TAIL.pack(commit_ms, 0)


def read_offset(value: bytes) -> CommittedOffset:
    """Decode a value that was encoded here or validated by load.py."""
    size = len(value)
    if value[1] == _VERSION and value[_HEAD.size] == _EMPTY_STRING:
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
