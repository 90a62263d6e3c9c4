"""Input and output of the assignors."""

from collections.abc import Iterable, Mapping
from struct import Struct
from typing import Final, NamedTuple, TypeAlias

from barnabas.base.ids import Uuid

# Non-empty partition sets by topic. Immutable by convention, so that assignments can be compared by identity.
Assignment: TypeAlias = dict[Uuid, frozenset[int]]


class MemberSpec(NamedTuple):
    """One member. Racks are ignored, as by the assignors of Kafka 4.3."""

    instance_id: str | None
    rack: str | None
    # Ids of the existing topics that it subscribes to.
    topics: frozenset[Uuid]
    # Its previous target assignment.
    owned: Mapping[Uuid, frozenset[int]]


class TopicSpec(NamedTuple):
    """One topic."""

    partitions: int
    # Racks of each partition's replicas; () if no rack is known.
    racks: tuple[frozenset[str], ...] = ()


_SIGNED_HALVES: Final = Struct(">qq")


def in_order_of_ids(topics: Iterable[Uuid]) -> list[Uuid]:
    """Sort ids as Kafka does: as pairs of signed 64-bit numbers."""
    return sorted(topics, key=topic_order)


def topic_order(topic: Uuid) -> tuple[int, int]:
    high, low = _SIGNED_HALVES.unpack(topic)
    return high, low


def subscribers_by_topic(members: Iterable[MemberSpec]) -> dict[Uuid, list[int]]:
    """The subscribers of each topic, as ascending positions in `members`."""
    # Group members by subscription first, because most have the same one.
    by_subscription: dict[frozenset[Uuid], list[int]] = {}
    for position, member in enumerate(members):
        by_subscription.setdefault(member.topics, []).append(position)
    found: dict[Uuid, list[int]] = {}
    for topics, positions in by_subscription.items():
        for topic in topics:
            found.setdefault(topic, []).extend(positions)
    if len(by_subscription) > 1:
        for positions in found.values():
            positions.sort()
    return found
