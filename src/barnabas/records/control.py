"""Control batches: the records that brokers and controllers write about the log itself.

A control record's key says what it is; its value is for whoever knows that kind, and stays bytes here.
Transaction markers carry the producer's id and epoch and are transactional; the quorum's records are not.
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
    """What a control record announces."""

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
    """Say what a control record is. A type that is not known comes back as its number, to be passed over."""
    if key is None or len(key) < _KEY.size:
        size = "no key" if key is None else f"{len(key)} bytes"
        raise CorruptBatch(f"{size}, and {_KEY.size} bytes are the least", where="control record key")
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
    """One control record in a batch. Markers need the producer's id and epoch, the others have none."""
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
