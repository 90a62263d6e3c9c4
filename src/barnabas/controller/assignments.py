"""The replicas of new partitions, from the request or by automatic placement."""

from collections.abc import Sequence

from barnabas.base.ids import Uuid
from barnabas.controller.decision import Refused
from barnabas.controller.facts import Facts
from barnabas.controller.leadership import default_directory, is_active
from barnabas.controller.partition_change import RECOVERED
from barnabas.controller.placement import place, usable_brokers
from barnabas.metadata.image import MetadataImage
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.stored.cluster_topics import PartitionRecord


def manual(
    image: MetadataImage, replicas: Sequence[int], *, number: int, replication_factor: int | None
) -> tuple[int, ...]:
    """Check a manual assignment. All partitions of a topic must have the same number of replicas."""
    if not replicas:
        raise _invalid("The manual partition assignment includes an empty replica list.")
    previous = None
    for broker in sorted(replicas):
        if broker not in image.brokers:
            raise _invalid(
                f"The manual partition assignment includes broker {broker}, but no such broker is registered."
            )
        if broker == previous:
            raise _invalid(f"The manual partition assignment includes the broker {broker} more than once.")
        previous = broker
    if replication_factor is not None and len(replicas) != replication_factor:
        raise _invalid(
            f"The manual partition assignment includes a partition with {len(replicas)} replica(s), but this "
            f"is not consistent with previous partitions, which have {replication_factor} replica(s)."
        )
    if not any(is_active(image, broker) for broker in replicas):
        raise _invalid(
            f"All brokers specified in the manual partition assignment for partition {number} are fenced or "
            "in controlled shutdown."
        )
    return tuple(replicas)


def placed(
    image: MetadataImage, facts: Facts, *, count: int, replication_factor: int
) -> list[tuple[int, ...]]:
    """Place replicas automatically."""
    assignments = place(usable_brokers(image), partitions=count, replicas=replication_factor, rng=facts.rng)
    for replicas in assignments:
        if not any(is_active(image, broker) for broker in replicas):
            raise Refused(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                "All brokers are currently fenced or in controlled shutdown.",
            )
    return assignments


def partition_record(
    image: MetadataImage, topic_id: Uuid, number: int, replicas: Sequence[int]
) -> PartitionRecord:
    """The record of a new partition. All active replicas are in the ISR, because the partition is empty."""
    isr = [broker for broker in replicas if is_active(image, broker)]
    assert isr, f"partition {number} of {topic_id!r} would have no leader"
    return PartitionRecord(
        partition_id=number,
        topic_id=topic_id,
        replicas=list(replicas),
        isr=isr,
        leader=isr[0],
        leader_recovery_state=RECOVERED,
        leader_epoch=0,
        partition_epoch=0,
        directories=[default_directory(image, broker) for broker in replicas],
    )


def _invalid(message: str) -> Refused:
    return Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
