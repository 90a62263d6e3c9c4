"""Encode and decode batches of the metadata log (pure).

A record object is one of protocol/stored/cluster_*.py. It is written in the newest version of its schema, or
in the version given by Versioned(record, version).
"""

from collections.abc import Iterable, Sequence

from barnabas.base.errors import BarnabasError, Malformed
from barnabas.base.values import value
from barnabas.protocol.schema.struct import schema_of
from barnabas.protocol.stored.control import LeaderChangeMessage, LeaderChangeMessageVoter
from barnabas.protocol.stored.framing import (
    Versioned,
    decode_metadata_record,
    encode_control,
    encode_metadata_record,
)
from barnabas.raft.errors import RecordsTooLarge
from barnabas.raft.settings import BATCH_BYTES_MAX
from barnabas.records.builder import build_batch
from barnabas.records.control import ControlType, build_control_batch
from barnabas.records.decode import decode_batch
from barnabas.records.header import HEADER_SIZE, BatchHeader, read_header
from barnabas.records.validate import check_batch


@value(kw_only=True)
class CommittedBatch:
    """A committed batch. A control batch has no records here."""

    base_offset: int
    last_offset: int
    epoch: int
    append_time_ms: int
    # Bytes in the log.
    size: int
    # Each with its stored version.
    records: tuple[tuple[object, int], ...]


def encode_record(record: object) -> bytes:
    if isinstance(record, Versioned):
        return encode_metadata_record(record.message, record.version)
    return encode_metadata_record(record, schema_of(type(record)).versions.last)


def encode_batch(records: Sequence[object], *, epoch: int, now_ms: int) -> bytes:
    """Encode one atomic batch. The log assigns its base offset."""
    assert records, "a batch has at least one record"
    values = [(now_ms, None, encode_record(record), ()) for record in records]
    batch = build_batch(values, leader_epoch=epoch)
    if len(batch) > BATCH_BYTES_MAX:
        raise RecordsTooLarge(size=len(batch), limit=BATCH_BYTES_MAX)
    return batch


def leader_change_batch(
    *, leader: int, voters: Iterable[int], granting: Iterable[int], epoch: int, now_ms: int
) -> bytes:
    """The first batch of an epoch, as Kafka writes it for static voters."""
    message = LeaderChangeMessage(
        version=0,
        leader_id=leader,
        voters=[LeaderChangeMessageVoter(voter_id=voter) for voter in sorted(voters)],
        granting_voters=[LeaderChangeMessageVoter(voter_id=voter) for voter in sorted(granting)],
    )
    return build_control_batch(
        ControlType.LEADER_CHANGE, encode_control(message), timestamp=now_ms, leader_epoch=epoch
    )


class DamagedBatch(BarnabasError):
    """A committed batch cannot be decoded; `at` is its position in the bytes that were read."""

    def __init__(self, at: int, what: str) -> None:
        super().__init__(what)
        self.at = at


def decode_batches(data: bytes, *, from_offset: int, upto: int) -> list[CommittedBatch]:
    """Decode the whole batches of `data` in [from_offset, upto), without an incomplete last one.

    DamagedBatch if the first batch is incomplete, a CRC is wrong, or a record is unknown: metadata records
    must not be skipped.
    """
    found = []
    at = 0
    try:
        while (header := _whole_header(data, at)) is not None and header.last_offset < upto:
            check_batch(data, at)
            if header.last_offset >= from_offset:
                found.append(_decode(data, at, header))
            at += header.size
    except Malformed as wrong:
        # A position in the message is one in `data`, not in the file.
        raise DamagedBatch(at, wrong.what if wrong.where.startswith("batch at") else str(wrong)) from None
    if at == 0 and data:
        raise DamagedBatch(0, f"no complete batch below the committed offset {upto}")
    return found


def _whole_header(data: bytes, at: int) -> BatchHeader | None:
    if len(data) - at < HEADER_SIZE:
        return None
    header = read_header(data, at)
    return header if at + header.size <= len(data) else None


def _decode(data: bytes, at: int, header: BatchHeader) -> CommittedBatch:
    return CommittedBatch(
        base_offset=header.base_offset,
        last_offset=header.last_offset,
        epoch=header.leader_epoch,
        append_time_ms=header.max_timestamp,
        size=header.size,
        records=() if header.is_control else tuple(decode_values(data, at)),
    )


def decode_values(data: bytes, at: int) -> Iterable[tuple[object, int]]:
    """Decode the metadata records of the batch at `at`, each with its version."""
    for record in decode_batch(data, at):
        if record.value is None:
            raise Malformed("value is null", where=f"metadata record at offset {record.offset}")
        yield decode_metadata_record(record.value)
