"""The classic consumer protocol embedded in requests: subscriptions and assignments."""

from collections.abc import Iterable, Mapping
from struct import unpack_from
from typing import Final

from barnabas.base.errors import Malformed
from barnabas.base.ids import Uuid
from barnabas.coordinators.group.assignors.spec import Assignment
from barnabas.coordinators.group.consumer.reconcile import Owned
from barnabas.metadata.image import MetadataImage
from barnabas.protocol.stored.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
)
from barnabas.protocol.stored.framing import decode_versioned, encode_value

_VERSION_MAX: Final = 3


def read_subscription(metadata: bytes) -> ConsumerProtocolSubscription:
    """Malformed if it cannot be decoded."""
    subscription, _ = decode_versioned(ConsumerProtocolSubscription, metadata, newer_as_last=True)
    return subscription


def owned_partitions(subscription: ConsumerProtocolSubscription, image: MetadataImage) -> Owned:
    return [
        (image.topics[owned.topic].id, owned.partitions)
        for owned in subscription.owned_partitions
        if owned.topic in image.topics
    ]


def read_assignment(assignment: bytes, image: MetadataImage) -> Assignment:
    """Malformed if it cannot be decoded, or has user data that only the client's assignor understands."""
    if not assignment:
        return {}
    read, _ = decode_versioned(ConsumerProtocolAssignment, assignment, newer_as_last=True)
    if read.user_data:
        raise Malformed("contains user data of a custom assignor", where="assignment")
    return {
        image.topics[given.topic].id: frozenset(given.partitions)
        for given in read.assigned_partitions
        if given.topic in image.topics
    }


def write_assignment(
    partitions: Mapping[Uuid, Iterable[int]], metadata: bytes, image: MetadataImage
) -> bytes:
    """Encode in the version of the member's subscription."""
    (version,) = unpack_from(">h", metadata)
    assignment = ConsumerProtocolAssignment(
        assigned_partitions=[
            ConsumerProtocolAssignmentTopicPartition(
                topic=image.topics_by_id[topic_id].name, partitions=sorted(numbers)
            )
            for topic_id, numbers in partitions.items()
            if topic_id in image.topics_by_id
        ],
        user_data=None,
    )
    return encode_value(assignment, min(version, _VERSION_MAX))
