"""Control batches: records that brokers and controllers write about the log itself.

A control record's key has its type; this module does not decode its value. Transaction markers carry the
producer's id and epoch and are transactional; the quorum's records are not.
"""

from enum import IntEnum
from struct import Struct
from typing import Final

from barnabas.records.builder import build_batch
from barnabas.records.errors import CorruptBatch

CONTROL_KEY_VERSION: Final = 0
# Version and type. A later version may add fields after these two.
_KEY: Final = Struct(">hh")


class ControlType(IntEnum):
    """The type of a control record."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


TRANSACTION_MARKERS: Final = (ControlType.ABORT, ControlType.COMMIT)
_KNOWN: Final = {int(kind): kind for kind in ControlType}


def control_key(kind: ControlType) -> bytes:
    """The key of a control record."""
    return _KEY.pack(CONTROL_KEY_VERSION, kind)


def read_control_type(key: bytes | None) -> ControlType | int:
    """The type of a control record; the number of an unknown type, which readers skip."""
    if key is None or len(key) < _KEY.size:
        size = "null" if key is None else f"{len(key)} bytes"
        raise CorruptBatch(f"{size}, expected at least {_KEY.size} bytes", where="control record key")
    version: int
    kind: int
    version, kind = _KEY.unpack_from(key)
    if version < 0:
        raise CorruptBatch(f"version {version} is negative", where="control record key")
    return _KNOWN.get(kind, kind)


def build_control_batch(
    kind: ControlType,
    value: bytes,
    *,
    timestamp: int,
    base_offset: int = 0,
    leader_epoch: int,
    producer_id: int = -1,
    producer_epoch: int = -1,
) -> bytes:
    """Build a batch of one control record. Only markers have a producer id and epoch."""
    marker = kind in TRANSACTION_MARKERS
    assert marker == (producer_id >= 0), f"{kind.name} with producer id {producer_id}"
    return build_batch(
        [(timestamp, control_key(kind), value, ())],
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=marker,
        control=True,
    )
