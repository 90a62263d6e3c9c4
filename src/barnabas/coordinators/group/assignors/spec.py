"""What an assignor is told of members and topics, and what it answers."""

from collections.abc import Iterable, Mapping
from struct import Struct
from typing import Final, NamedTuple, TypeAlias

from barnabas.base.ids import Uuid

# Partitions by topic; no topic is there without one. Never changed once it is made: whoever holds the same
# object holds the same assignment.
Assignment: TypeAlias = dict[Uuid, frozenset[int]]


class MemberSpec(NamedTuple):
    """What an assignor knows of a member. Kafka 4.3's assignors do not look at racks, and so ours do not."""

    instance_id: str | None
    rack: str | None
    # Ids of the topics that it is subscribed to and that exist.
    topics: frozenset[Uuid]
    # Its target assignment of before.
    owned: Mapping[Uuid, frozenset[int]]


class TopicSpec(NamedTuple):
    """What an assignor knows of a topic."""

    partitions: int
    # Of each partition's replicas; () if nobody knows racks.
    racks: tuple[frozenset[str], ...] = ()


_SIGNED_HALVES: Final = Struct(">qq")


def in_order_of_ids(topics: Iterable[Uuid]) -> list[Uuid]:
    """Sorted as Kafka sorts ids: it compares two signed numbers, so half of all ids are below zero."""
    return sorted(topics, key=topic_order)


def topic_order(topic: Uuid) -> tuple[int, int]:
    high, low = _SIGNED_HALVES.unpack(topic)
    return high, low


def subscribers_by_topic(members: Iterable[MemberSpec]) -> dict[Uuid, list[int]]:
    """Who subscribes to each topic, as positions in `members`, ascending."""
    # Most members of a group subscribe to the same: one step for each kind of member and each of its topics.
    alike: dict[frozenset[Uuid], list[int]] = {}
    for position, member in enumerate(members):
        alike.setdefault(member.topics, []).append(position)
    found: dict[Uuid, list[int]] = {}
    for topics, positions in alike.items():
        for topic in topics:
            found.setdefault(topic, []).extend(positions)
    if len(alike) > 1:
        for positions in found.values():
            positions.sort()
    return found
