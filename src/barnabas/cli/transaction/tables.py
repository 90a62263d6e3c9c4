"""The tables of kafka-transactions.sh. Pure."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from barnabas.client.admin.records import ProducerDescription
    from barnabas.client.admin.transactions import (
        HangingTransaction,
        TransactionDescription,
        TransactionListing,
    )

_NONE: Final = "None"
# Kafka prints this for an unknown coordinator epoch.
_NO_EPOCH: Final = -1
_MINUTE_MS: Final = 60_000


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Pad each column to its widest cell, and end it with a tab."""
    cells = [list(head), *([str(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(
        "".join(f"{cell:<{width}}\t" for cell, width in zip(row, widths, strict=True)) for row in cells
    )


def listing(found: "Iterable[TransactionListing]") -> str:
    return table(
        ("TransactionalId", "Coordinator", "ProducerId", "TransactionState"),
        [(each.transactional_id, each.coordinator, each.producer_id, each.state) for each in found],
    )


def description(found: "TransactionDescription", *, now_ms: int) -> str:
    head = (
        "CoordinatorId",
        "TransactionalId",
        "ProducerId",
        "ProducerEpoch",
        "TransactionState",
        "TransactionTimeoutMs",
        "CurrentTransactionStartTimeMs",
        "TransactionDurationMs",
        "TopicPartitions",
    )
    start_ms = found.start_time_ms
    row = (
        found.coordinator,
        found.transactional_id,
        found.producer_id,
        found.producer_epoch,
        found.state,
        found.timeout_ms,
        _NONE if start_ms is None else start_ms,
        _NONE if start_ms is None else now_ms - start_ms,
        ",".join(map(str, found.partitions)),
    )
    return table(head, [row])


def producers(found: "Iterable[ProducerDescription]") -> str:
    head = (
        "ProducerId",
        "ProducerEpoch",
        "LatestCoordinatorEpoch",
        "LastSequence",
        "LastTimestamp",
        "CurrentTransactionStartOffset",
    )
    rows = [
        (
            each.producer_id,
            each.producer_epoch,
            _NO_EPOCH if each.coordinator_epoch is None else each.coordinator_epoch,
            each.last_sequence,
            each.last_timestamp_ms,
            _NONE if each.transaction_start_offset is None else each.transaction_start_offset,
        )
        for each in found
    ]
    return table(head, rows)


def hanging(found: "Iterable[HangingTransaction]", *, now_ms: int) -> str:
    head = (
        "Topic",
        "Partition",
        "ProducerId",
        "ProducerEpoch",
        "CoordinatorEpoch",
        "StartOffset",
        "LastTimestamp",
        "Duration(min)",
    )
    rows = [
        (
            each.partition.topic,
            each.partition.partition,
            each.producer.producer_id,
            each.producer.producer_epoch,
            _NO_EPOCH if each.producer.coordinator_epoch is None else each.producer.coordinator_epoch,
            each.producer.transaction_start_offset,
            each.producer.last_timestamp_ms,
            (now_ms - each.producer.last_timestamp_ms) // _MINUTE_MS,
        )
        for each in found
    ]
    return table(head, rows)
