"""What members of a classic group tell each other, as values and as bytes. Pure.

Java's and librdkafka's members read the same bytes: a version first, then ConsumerProtocolSubscription or
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
    """One member as the leader sees it: what it wants, and what it has had until now."""

    topics: frozenset[str]
    owned: frozenset[TopicPartition] = frozenset()
    # Under which generation it had them.
    generation: int = NO_GENERATION
    user_data: bytes | None = None
    rack: str | None = None
    instance_id: str | None = None


def by_topic(tps: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Partitions in order, under topics in order."""
    grouped: dict[str, list[int]] = {}
    for tp in sorted(tps):
        grouped.setdefault(tp.topic, []).append(tp.partition)
    return grouped


def encode_subscription(subscription: Subscription) -> bytes:
    """In the newest form: older members read the front of it, which has stayed as it was."""
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
    """Malformed if it cannot be read. A version newer than ours is read as far as we know it."""
    told, _ = decode_versioned(ConsumerProtocolSubscription, data, newer_as_last=True)
    return Subscription(
        topics=frozenset(told.topics),
        owned=frozenset(
            TopicPartition(one.topic, number) for one in told.owned_partitions for number in one.partitions
        ),
        generation=told.generation_id,
        user_data=told.user_data,
        rack=told.rack_id or None,
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
    """Nothing for no bytes: a leader may leave a member out."""
    if not data:
        return frozenset()
    told, _ = decode_versioned(ConsumerProtocolAssignment, data, newer_as_last=True)
    return frozenset(
        TopicPartition(one.topic, number) for one in told.assigned_partitions for number in one.partitions
    )


# What the sticky assignors write into the bytes that are theirs: Java's StickyAssignor cannot use the owned
# partitions of the subscription, because an eager member has given everything back before it joins.


def encode_previous(tps: Iterable[TopicPartition], generation: int) -> bytes:
    """What an eager member had, and when: an assignment without its version and bytes, then a generation."""
    topics = [
        ConsumerProtocolAssignmentTopicPartition(topic=topic, partitions=partitions)
        for topic, partitions in by_topic(tps).items()
    ]
    whole = encode(ConsumerProtocolAssignment(assigned_partitions=topics), 0)
    # The last four bytes stand for the user data, of which there are none.
    return whole[:-4] + _GENERATION.pack(generation)


def decode_previous(data: bytes | None) -> tuple[frozenset[TopicPartition], int]:
    """The same back; nothing if it is not that: it is a wish, not an order."""
    if not data:
        return frozenset(), NO_GENERATION
    nothing = _GENERATION.pack(-1)
    # The oldest form has no generation; read with the newer one first, as Java does.
    for tail, has_generation in ((nothing, True), (nothing, False)):
        body = data[:-4] + tail if has_generation else data + tail
        generation = _GENERATION.unpack(data[-4:])[0] if has_generation and len(data) >= 4 else NO_GENERATION
        try:
            told, end = decode(ConsumerProtocolAssignment, 0, body)
        except Malformed:
            continue
        if end == len(body):
            tps = {
                TopicPartition(one.topic, number)
                for one in told.assigned_partitions
                for number in one.partitions
            }
            return frozenset(tps), generation
    return frozenset(), NO_GENERATION


def encode_generation(generation: int) -> bytes:
    """What a cooperative sticky member adds, for leaders that know subscriptions of version 1 only."""
    return _GENERATION.pack(generation)


def decode_generation(data: bytes | None) -> int:
    return (
        NO_GENERATION if data is None or len(data) != _GENERATION.size else int(_GENERATION.unpack(data)[0])
    )
