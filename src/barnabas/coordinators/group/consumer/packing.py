"""Hand-written encoders of the records of a rebalance (compiled).

When a thousand members join at once, ten times as many records are written. The bytes equal those of the
messages in protocol/stored/consumer_groups.py; records.py uses these encoders.
"""

from collections.abc import Mapping
from struct import Struct, pack
from typing import Final

from barnabas.base.ids import Uuid
from barnabas.protocol.wire import write_uvarint

# Key types.
EPOCH: Final = 3
MEMBER: Final = 5
TARGET_EPOCH: Final = 6
TARGET: Final = 7
CURRENT: Final = 8

_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")
_TWO_INT16: Final = Struct(">hh")
_VERSION: Final = b"\0\0"
_NULL: Final = b"\0"
_NO_TAGS: Final = b"\0"
# Version, epoch, and at most one tagged field of eight bytes.
_EPOCH: Final = Struct(">hiB")
_EPOCH_AND_NUMBER: Final = Struct(">hiBBBq")
# Version, two epochs, state.
_PLACE: Final = Struct(">hiib")
# Tagged fields with null classic member metadata.
_NO_CLASSIC: Final = b"\x01\x00\x01\x00"
# Tagged fields with one field, tag 0; its length follows.
_FIRST_TAG: Final = b"\x01\x00"


def pack_group_key(kind: int, group_id: str) -> bytes:
    group = group_id.encode()
    return _TWO_INT16.pack(kind, len(group)) + group


def pack_member_key(kind: int, group_id: str, member_id: str) -> bytes:
    group = group_id.encode()
    member = member_id.encode()
    return b"".join([_TWO_INT16.pack(kind, len(group)), group, _INT16.pack(len(member)), member])


def pack_epoch(epoch: int, number: int) -> bytes:
    """The value of an epoch record. `number`, the hash or time, is omitted if zero."""
    return _EPOCH_AND_NUMBER.pack(0, epoch, 1, 0, 8, number) if number else _EPOCH.pack(0, epoch, 0)


def pack_target(target: Mapping[Uuid, frozenset[int]]) -> bytes:
    """The value of a member's target assignment."""
    parts = [_VERSION, write_uvarint(len(target) + 1)]
    for topic, numbers in target.items():
        parts.append(topic)
        _add_numbers(parts, sorted(numbers))
        parts.append(_NO_TAGS)
    parts.append(_NO_TAGS)
    return b"".join(parts)


def pack_current(
    epoch: int,
    previous_epoch: int,
    state: int,
    assigned: Mapping[Uuid, Mapping[int, int]],
    revoking: Mapping[Uuid, Mapping[int, int]],
) -> bytes:
    """The value of a member's current assignment."""
    parts = [_PLACE.pack(0, epoch, previous_epoch, state)]
    _add_held(parts, assigned)
    _add_held(parts, revoking)
    parts.append(_NO_TAGS)
    return b"".join(parts)


def pack_member(
    strings: list[str | None],
    topics: tuple[str, ...],
    regex: str | None,
    timeout_ms: int,
    assignor: str | None,
) -> bytes:
    """The value of a non-classic member. `strings` are its instance id, rack, client id and host."""
    parts = [_VERSION]
    for text in strings:
        _add_string(parts, text)
    parts.append(write_uvarint(len(topics) + 1))
    for topic in topics:
        _add_string(parts, topic)
    _add_string(parts, regex)
    parts.append(_INT32.pack(timeout_ms))
    _add_string(parts, assignor)
    parts.append(_NO_CLASSIC)
    return b"".join(parts)


def _add_string(parts: list[bytes], text: str | None) -> None:
    if text is None:
        parts.append(_NULL)
        return
    data = text.encode()
    parts.append(write_uvarint(len(data) + 1))
    parts.append(data)


def _add_numbers(parts: list[bytes], numbers: list[int]) -> None:
    parts.append(write_uvarint(len(numbers) + 1))
    if len(numbers) == 1:
        parts.append(_INT32.pack(numbers[0]))
    else:
        parts.append(pack(f">{len(numbers)}i", *numbers))


def _add_held(parts: list[bytes], held: Mapping[Uuid, Mapping[int, int]]) -> None:
    """The partitions of each topic, with their assignment epochs in a tagged field."""
    parts.append(write_uvarint(len(held) + 1))
    for topic, since in held.items():
        parts.append(topic)
        _add_numbers(parts, list(since))
        if not since:
            parts.append(_NO_TAGS)
            continue
        epochs: list[bytes] = []
        _add_numbers(epochs, list(since.values()))
        data = b"".join(epochs)
        parts.append(_FIRST_TAG)
        parts.append(write_uvarint(len(data)))
        parts.append(data)
