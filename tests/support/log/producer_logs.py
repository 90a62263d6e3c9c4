"""Batch headers of producers, and their state rebuilt from a log."""

from typing import Any

from barnabas.protocol.stored.framing import decode_control
from barnabas.records.control import ControlType
from barnabas.records.decode import decode_batch
from barnabas.records.header import TRANSACTIONAL_BIT, BatchHeader, batch_headers, pack_header
from barnabas.storage.intake import Batch
from barnabas.storage.producers.table import CompletedTxn, Producers
from barnabas.storage.segment.txn_index import AbortedTxn

# Ids of two producers.
P = 4000
Q = 5000


def header(
    producer_id: int,
    *,
    epoch: int = 0,
    sequence: int = 0,
    count: int = 1,
    transactional: bool = False,
    more_attributes: int = 0,
    timestamp: int = 0,
) -> Batch:
    """A header as a producer sends it: its base offset is 0."""
    fields = BatchHeader(
        base_offset=0,
        batch_length=100,
        leader_epoch=-1,
        magic=2,
        crc=0,
        attributes=(TRANSACTIONAL_BIT if transactional else 0) | more_attributes,
        last_offset_delta=count - 1,
        base_timestamp=0,
        max_timestamp=timestamp,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        count=count,
    )
    return Batch(pack_header(fields), 0)


def append(producers: Producers, producer_id: int = P, *, timestamp: int = 1, **fields: Any) -> int:
    """Register a batch at the end of the log; return its base offset."""
    base_offset = producers.end_offset
    producers.appended(header(producer_id, timestamp=timestamp, **fields), base_offset)
    return base_offset


def end(
    producers: Producers,
    producer_id: int = P,
    *,
    epoch: int = 0,
    coordinator_epoch: int = 0,
    aborted: bool = False,
    timestamp: int = 1,
) -> CompletedTxn | None:
    return producers.marker_appended(
        producer_id=producer_id,
        producer_epoch=epoch,
        coordinator_epoch=coordinator_epoch,
        aborted=aborted,
        offset=producers.end_offset,
        timestamp=timestamp,
    )


def fields_of(completed: CompletedTxn | None) -> tuple[int, int, int, bool] | None:
    """Producer id, first and last offset, and whether it was aborted."""
    if completed is None:
        return None
    return completed.producer_id, completed.first_offset, completed.last_offset, completed.aborted


def end_transaction(producers: Producers, found: BatchHeader, batch: bytes) -> AbortedTxn | None:
    """Register the marker of a stored control batch; return its index entry if it is an abort."""
    (record,) = decode_batch(batch)
    assert record.key is not None
    assert record.value is not None
    kind = ControlType(record.key[3])
    completed = producers.marker_appended(
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        coordinator_epoch=decode_control(kind, record.value).message.coordinator_epoch,
        aborted=kind is ControlType.ABORT,
        offset=found.base_offset,
        timestamp=record.timestamp,
    )
    if completed is None or not completed.aborted:
        return None
    stable = producers.last_stable_after(completed)
    return AbortedTxn(completed.producer_id, completed.first_offset, completed.last_offset, stable)


def replay(log: bytes, upto: int) -> tuple[Producers, list[AbortedTxn]]:
    """Read a log's batches up to the offset `upto`."""
    producers = Producers()
    aborted = []
    for at, found in batch_headers(log):
        if found.base_offset >= upto:
            break
        if found.is_control and found.has_producer_id:
            entry = end_transaction(producers, found, log[at : at + found.size])
            if entry is not None:
                aborted.append(entry)
        else:
            producers.appended(Batch(log, at), found.base_offset)
    return producers, aborted
