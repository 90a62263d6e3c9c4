"""Convert between partition images and records: create, alter, write."""

from dataclasses import replace
from typing import Any, Final

from barnabas.base.ids import Uuid
from barnabas.metadata.errors import MetadataInconsistent
from barnabas.metadata.image import PartitionImage
from barnabas.protocol.stored.cluster_topics import PartitionChangeRecord, PartitionRecord

# Field values of a PartitionChangeRecord that mean "unchanged".
LEADER_UNCHANGED: Final = -2
RECOVERY_UNCHANGED: Final = -1

# Reserved directory ids (KIP-858): the replica was placed before directories had ids; the broker has not
# chosen one yet; the directory is offline.
MIGRATING: Final = Uuid(bytes(16))
UNASSIGNED: Final = Uuid(bytes(15) + b"\x01")
LOST: Final = Uuid(bytes(15) + b"\x02")


def partition_of(record: PartitionRecord) -> PartitionImage:
    return PartitionImage(
        replicas=tuple(record.replicas),
        directories=_directories(record, tuple(record.directories), len(record.replicas)),
        isr=tuple(record.isr),
        removing_replicas=tuple(record.removing_replicas),
        adding_replicas=tuple(record.adding_replicas),
        elr=tuple(record.eligible_leader_replicas or ()),
        last_known_elr=tuple(record.last_known_elr or ()),
        leader=record.leader,
        leader_recovery_state=record.leader_recovery_state,
        leader_epoch=record.leader_epoch,
        partition_epoch=record.partition_epoch,
    )


def altered(partition: PartitionImage, record: PartitionChangeRecord) -> PartitionImage:
    """Apply a change. It increments the partition epoch, and a new leader also the leader epoch."""
    changes: dict[str, Any] = {"partition_epoch": partition.partition_epoch + 1}
    for field, attribute in _LISTS:
        values = getattr(record, field)
        if values is not None:
            changes[attribute] = tuple(values)
    replicas = changes.get("replicas", partition.replicas)
    directories = changes.get("directories", partition.directories)
    changes["directories"] = _directories(record, directories, len(replicas))
    if record.leader != LEADER_UNCHANGED:
        changes["leader"] = record.leader
        changes["leader_epoch"] = partition.leader_epoch + 1
    if record.leader_recovery_state != RECOVERY_UNCHANGED:
        changes["leader_recovery_state"] = record.leader_recovery_state
    return replace(partition, **changes)


def without_elr(partition: PartitionImage) -> PartitionImage:
    """Clear the ELR, which increments the partition epoch like any change."""
    return replace(partition, elr=(), last_known_elr=(), partition_epoch=partition.partition_epoch + 1)


def record_of(partition: PartitionImage, topic_id: Uuid, index: int) -> PartitionRecord:
    return PartitionRecord(
        partition_id=index,
        topic_id=topic_id,
        replicas=list(partition.replicas),
        isr=list(partition.isr),
        removing_replicas=list(partition.removing_replicas),
        adding_replicas=list(partition.adding_replicas),
        leader=partition.leader,
        leader_recovery_state=partition.leader_recovery_state,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        directories=list(partition.directories),
        eligible_leader_replicas=list(partition.elr) or None,
        last_known_elr=list(partition.last_known_elr) or None,
    )


_LISTS: Final = (
    ("isr", "isr"),
    ("replicas", "replicas"),
    ("removing_replicas", "removing_replicas"),
    ("adding_replicas", "adding_replicas"),
    ("directories", "directories"),
    ("eligible_leader_replicas", "elr"),
    ("last_known_elr", "last_known_elr"),
)


def _directories(record: object, given: tuple[Uuid, ...], replicas: int) -> tuple[Uuid, ...]:
    # Record versions without directories have none, whatever the number of replicas.
    if all(one == MIGRATING for one in given):
        return (MIGRATING,) * replicas
    if len(given) != replicas:
        raise MetadataInconsistent(record, f"{len(given)} directories for {replicas} replicas")
    return given
