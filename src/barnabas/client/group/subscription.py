"""Subscriptions and assignments of members of a classic group, as values and as bytes. Pure.

The format is that of Java and librdkafka: a version, then ConsumerProtocolSubscription or
ConsumerProtocolAssignment.
"""

from collections.abc import Iterable
from struct import Struct
from typing import Final

from barnabas.base.errors import Malformed
from barnabas.base.ids import TopicPartition
from barnabas.base.values import value
from barnabas.protocol.schema.codec import decode, encode
from barnabas.protocol.stored.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
    ConsumerProtocolSubscriptionTopicPartition,
)
from barnabas.protocol.stored.framing import decode_versioned

PROTOCOL_TYPE: Final = "consumer"
NO_GENERATION: Final = -1
_NEWEST: Final = 3
_ASSIGNMENT_NEWEST: Final = 3
_VERSION: Final = Struct(">h")
_GENERATION: Final = Struct(">i")


@value(kw_only=True)
class Subscription:
    """A member's subscription as the leader sees it, with its previous partitions."""

    topics: frozenset[str]
    owned: frozenset[TopicPartition] = frozenset()
    # The generation of the owned partitions.
    generation: int = NO_GENERATION
    user_data: bytes | None = None
    rack: str | None = None
    instance_id: str | None = None


def by_topic(tps: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Group partitions by topic, both sorted."""
    grouped: dict[str, list[int]] = {}
    for tp in sorted(tps):
        grouped.setdefault(tp.topic, []).append(tp.partition)
    return grouped


def encode_subscription(subscription: Subscription) -> bytes:
    """Encode in the newest version: older members read its prefix, which is unchanged."""
    owned = [
        ConsumerProtocolSubscriptionTopicPartition(topic=topic, partitions=partitions)
        for topic, partitions in by_topic(subscription.owned).items()
    ]
    message = ConsumerProtocolSubscription(
        topics=sorted(subscription.topics),
        user_data=subscription.user_data,
        owned_partitions=owned,
        generation_id=subscription.generation,
        rack_id=subscription.rack,
    )
    return _VERSION.pack(_NEWEST) + encode(message, _NEWEST)


def decode_subscription(data: bytes, *, instance_id: str | None = None) -> Subscription:
    """Decode, or raise Malformed. Unknown fields of a newer version are ignored."""
    message, _ = decode_versioned(ConsumerProtocolSubscription, data, newer_as_last=True)
    return Subscription(
        topics=frozenset(message.topics),
        owned=frozenset(
            TopicPartition(one.topic, number) for one in message.owned_partitions for number in one.partitions
        ),
        generation=message.generation_id,
        user_data=message.user_data,
        rack=message.rack_id or None,
        instance_id=instance_id,
    )


def encode_assignment(tps: Iterable[TopicPartition]) -> bytes:
    topics = [
        ConsumerProtocolAssignmentTopicPartition(topic=topic, partitions=partitions)
        for topic, partitions in by_topic(tps).items()
    ]
    message = ConsumerProtocolAssignment(assigned_partitions=topics)
    return _VERSION.pack(_ASSIGNMENT_NEWEST) + encode(message, _ASSIGNMENT_NEWEST)


def decode_assignment(data: bytes) -> frozenset[TopicPartition]:
    """Decode an assignment. Empty bytes mean no partitions: a leader may omit a member."""
    if not data:
        return frozenset()
    message, _ = decode_versioned(ConsumerProtocolAssignment, data, newer_as_last=True)
    return frozenset(
        TopicPartition(one.topic, number) for one in message.assigned_partitions for number in one.partitions
    )


# User data of the sticky assignors. Java's StickyAssignor cannot use the owned partitions of the
# subscription, because an eager member has revoked all partitions before it joins.


def encode_previous(tps: Iterable[TopicPartition], generation: int) -> bytes:
    """Encode an eager member's last assignment (without version and user data) and generation."""
    topics = [
        ConsumerProtocolAssignmentTopicPartition(topic=topic, partitions=partitions)
        for topic, partitions in by_topic(tps).items()
    ]
    whole = encode(ConsumerProtocolAssignment(assigned_partitions=topics), 0)
    # Replace the last four bytes, the length of the empty user data.
    return whole[:-4] + _GENERATION.pack(generation)


def decode_previous(data: bytes | None) -> tuple[frozenset[TopicPartition], int]:
    """Decode encode_previous(); empty if malformed, because stickiness is only a preference."""
    if not data:
        return frozenset(), NO_GENERATION
    nothing = _GENERATION.pack(-1)
    # Try the newer format first, as Java does; the oldest one has no generation.
    for tail, has_generation in ((nothing, True), (nothing, False)):
        body = data[:-4] + tail if has_generation else data + tail
        generation = _GENERATION.unpack(data[-4:])[0] if has_generation and len(data) >= 4 else NO_GENERATION
        try:
            message, end = decode(ConsumerProtocolAssignment, 0, body)
        except Malformed:
            continue
        if end == len(body):
            tps = {
                TopicPartition(one.topic, number)
                for one in message.assigned_partitions
                for number in one.partitions
            }
            return frozenset(tps), generation
    return frozenset(), NO_GENERATION


def encode_generation(generation: int) -> bytes:
    """Encode the user data of cooperative-sticky, for leaders limited to subscription version 1."""
    return _GENERATION.pack(generation)


def decode_generation(data: bytes | None) -> int:
    return (
        NO_GENERATION if data is None or len(data) != _GENERATION.size else int(_GENERATION.unpack(data)[0])
    )
