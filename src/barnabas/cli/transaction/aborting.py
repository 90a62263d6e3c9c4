"""The commands abort and forceTerminateTransaction of `barnabas transactions`."""

import argparse
from typing import TYPE_CHECKING, Final

from barnabas.base.ids import TopicPartition
from barnabas.cli.tool import ToolFailed, print_json
from barnabas.cli.transaction.failures import failing

if TYPE_CHECKING:
    from barnabas.client.admin.admin import Admin
    from barnabas.client.admin.records import ProducerDescription

_NOT_IDENTIFIED: Final = (
    "The transaction to abort must be identified either with --start-offset (for brokers on 3.0 or above) or"
    " with --producer-id, --producer-epoch, and --coordinator-epoch (for older brokers)"
)


def check_abort(options: argparse.Namespace) -> None:
    """Raise ToolFailed unless the options identify a transaction."""
    if options.start_offset is not None:
        return
    if options.producer_id is None:
        raise ToolFailed(_NOT_IDENTIFIED)
    for name in ("producer_epoch", "coordinator_epoch"):
        if getattr(options, name) is None:
            raise ToolFailed(f"Missing required argument --{name.replace('_', '-')}")


async def abort(admin: "Admin", options: argparse.Namespace) -> int:
    tp = TopicPartition(options.topic, options.partition)
    if options.start_offset is not None:
        found = await _open_from(admin, tp, options.start_offset)
        producer_id, producer_epoch = found.producer_id, found.producer_epoch
        coordinator_epoch = found.coordinator_epoch or 0
    else:
        producer_id, producer_epoch = options.producer_id, options.producer_epoch
        # The tables print -1 for an unknown epoch.
        coordinator_epoch = max(0, options.coordinator_epoch)
    meant = (
        f"AbortTransactionSpec(topicPartition={tp}, producerId={producer_id},"
        f" producerEpoch={producer_epoch}, coordinatorEpoch={coordinator_epoch})"
    )
    with failing(f"Failed to abort transaction {meant}", _refusals(meant, coordinator_epoch)):
        await admin.abort_transaction(
            tp,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            coordinator_epoch=coordinator_epoch,
        )
    if options.json:
        aborted = {
            "topic": tp.topic,
            "partition": tp.partition,
            "producerId": producer_id,
            "producerEpoch": producer_epoch,
            "coordinatorEpoch": coordinator_epoch,
        }
        print_json({"aborted": aborted})
    return 0


async def _open_from(admin: "Admin", tp: TopicPartition, offset: int) -> "ProducerDescription":
    """Return the producer whose open transaction starts at `offset`."""
    with failing(f"Failed to validate producer state for partition {tp}"):
        producers = (await admin.describe_producers([tp]))[tp]
    for each in producers:
        if each.transaction_start_offset == offset:
            return each
    raise ToolFailed(f"Could not find any open transactions starting at offset {offset} on partition {tp}")


def _refusals(meant: str, coordinator_epoch: int) -> dict[str, str]:
    request = f"WriteTxnMarkers request with {meant} failed"
    fenced = f"the provided coordinator epoch {coordinator_epoch} has been fenced by the active coordinator"
    return {
        "CLUSTER_AUTHORIZATION_FAILED": f"{request} due to cluster authorization error",
        "INVALID_PRODUCER_EPOCH": f"{request} due an invalid producer epoch",
        "TRANSACTION_COORDINATOR_FENCED": f"{request} since {fenced}",
    }


async def force_terminate(admin: "Admin", options: argparse.Namespace) -> int:
    name: str = options.transactionalId
    request = f"InitProducerId request for transactionalId `{name}` failed"
    said = {
        "CLUSTER_AUTHORIZATION_FAILED": f"{request} due to cluster authorization failure",
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": f"{request} due to transactional ID authorization failure",
    }
    with failing(f"Failed to force terminate transactionalId `{name}`", said):
        fenced = await admin.fence_producer(name)
    if options.json:
        print_json(
            {
                "transactionalId": name,
                "producerId": fenced.producer_id,
                "producerEpoch": fenced.producer_epoch,
            }
        )
    return 0
