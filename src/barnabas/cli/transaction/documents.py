"""JSON documents about transactions and producers. Pure."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from barnabas.client.admin.records import ProducerDescription
    from barnabas.client.admin.transactions import (
        HangingTransaction,
        TransactionDescription,
        TransactionListing,
    )


def listed(found: "TransactionListing") -> dict[str, Any]:
    return {
        "transactionalId": found.transactional_id,
        "coordinator": found.coordinator,
        "producerId": found.producer_id,
        "state": found.state,
    }


def described(found: "TransactionDescription", *, now_ms: int) -> dict[str, Any]:
    start_ms = found.start_time_ms
    return {
        "transactionalId": found.transactional_id,
        "coordinator": found.coordinator,
        "producerId": found.producer_id,
        "producerEpoch": found.producer_epoch,
        "state": found.state,
        "timeoutMs": found.timeout_ms,
        "startTimeMs": start_ms,
        "durationMs": None if start_ms is None else now_ms - start_ms,
        "partitions": [{"topic": tp.topic, "partition": tp.partition} for tp in found.partitions],
    }


def producer(found: "ProducerDescription") -> dict[str, Any]:
    return {
        "producerId": found.producer_id,
        "producerEpoch": found.producer_epoch,
        "coordinatorEpoch": found.coordinator_epoch,
        "lastSequence": found.last_sequence,
        "lastTimestamp": found.last_timestamp_ms,
        "transactionStartOffset": found.transaction_start_offset,
    }


def hanging(found: "HangingTransaction", *, now_ms: int) -> dict[str, Any]:
    """Includes the transactional id if a coordinator knows the producer; Kafka's table has no such column."""
    return {
        "topic": found.partition.topic,
        "partition": found.partition.partition,
        "transactionalId": found.transactional_id,
        **producer(found.producer),
        "durationMs": now_ms - found.producer.last_timestamp_ms,
    }
