"""Assignors of classic groups, with Kafka's names and semantics. Pure.

Members of one group may run different clients, and the leader decides for all. Clients must agree on the
name, the format and the guarantees (balance, stickiness); sticky assignors may differ in details. Racks are
ignored.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from heapq import heapify, heappop, heappush
from typing import Final, TypeAlias

from barnabas.base.ids import TopicPartition
from barnabas.base.values import value
from barnabas.client.group.subscription import (
    NO_GENERATION,
    Subscription,
    decode_generation,
    decode_previous,
    encode_generation,
    encode_previous,
)

# Members by id.
Members: TypeAlias = Mapping[str, Subscription]
# Partition counts; missing topics are not included.
Counts: TypeAlias = Mapping[str, int]
Shares: TypeAlias = dict[str, list[TopicPartition]]


def in_order(members: Members) -> list[str]:
    """Sort static members first, by instance id, because their member ids change with every restart."""

    def key(member: str) -> tuple[bool, str]:
        instance = members[member].instance_id
        return (instance is None, member if instance is None else instance)

    return sorted(members, key=key)


def assign_range(members: Members, counts: Counts) -> Shares:
    """Assign consecutive partitions of each topic separately.

    The first members get one more if the count does not divide evenly. Topics with equal partition counts and
    subscribers are assigned alike, so that records of one key reach the same member (co-partitioning).
    """
    ordered = in_order(members)
    shares: Shares = {member: [] for member in ordered}
    for topic in sorted(counts):
        wanting = [member for member in ordered if topic in members[member].topics]
        if not wanting:
            continue
        each, more = divmod(counts[topic], len(wanting))
        first = 0
        for place, member in enumerate(wanting):
            after = first + each + (place < more)
            shares[member] += [TopicPartition(topic, number) for number in range(first, after)]
            first = after
    return shares


def assign_roundrobin(members: Members, counts: Counts) -> Shares:
    """Assign the partitions of all topics in turn to the subscribed members."""
    ordered = in_order(members)
    shares: Shares = {member: [] for member in ordered}
    wanted = set().union(*(members[member].topics for member in ordered))
    turn = 0
    for topic in sorted(wanted & counts.keys()):
        for number in range(counts[topic]):
            while topic not in members[ordered[turn % len(ordered)]].topics:
                turn += 1
            shares[ordered[turn % len(ordered)]].append(TopicPartition(topic, number))
            turn += 1
    return shares


# sticky and cooperative-sticky balance the assignment, and move as few partitions as possible. Balanced means
# that no member could take a partition from one that has two more. A partition claimed by two members belongs
# to the one with the later generation; with equal generations, to neither.


_Claims = dict[str, tuple[frozenset[TopicPartition], int]]


def assign_sticky(members: Members, counts: Counts) -> Shares:
    """Eager members have revoked all partitions; their user data holds the last assignment."""
    return _assign(members, counts, {name: decode_previous(one.user_data) for name, one in members.items()})


def assign_cooperative(members: Members, counts: Counts) -> Shares:
    """Leave moving partitions unassigned in this round: the owner must revoke them first."""
    claims: _Claims = {}
    for name, one in members.items():
        generation = one.generation if one.generation != NO_GENERATION else decode_generation(one.user_data)
        claims[name] = (one.owned, generation)
    shares = _assign(members, counts, claims)
    owners: dict[TopicPartition, set[str]] = defaultdict(set)
    for name, one in members.items():
        for tp in one.owned:
            owners[tp].add(name)
    return {
        name: [tp for tp in share if not owners.get(tp, set()) - {name}] for name, share in shares.items()
    }


def _assign(members: Members, counts: Counts, claims: _Claims) -> Shares:
    ordered = in_order(members)
    wanting = {
        topic: takers
        for topic in counts
        if (takers := [member for member in ordered if topic in members[member].topics])
    }
    tps = [TopicPartition(topic, number) for topic in sorted(wanting) for number in range(counts[topic])]
    owner = _owners(members, claims, tps)
    if all(len(takers) == len(ordered) for takers in wanting.values()):
        _assign_equally(ordered, tps, owner)
    else:
        _assign_by_subscription(ordered, tps, wanting, owner)
    shares: Shares = {member: [] for member in ordered}
    for tp in tps:
        shares[owner[tp]].append(tp)
    return shares


def _owners(members: Members, claims: _Claims, tps: list[TopicPartition]) -> dict[TopicPartition, str]:
    """Return the last owner of each partition that still exists and that the owner still subscribes to."""
    there = set(tps)
    best: dict[TopicPartition, tuple[int, str | None]] = {}
    for member, (owned, generation) in claims.items():
        for tp in owned & there:
            if tp.topic not in members[member].topics:
                continue
            known = best.get(tp)
            if known is None or generation > known[0]:
                best[tp] = (generation, member)
            elif generation == known[0]:
                best[tp] = (generation, None)
    return {tp: member for tp, (_, member) in best.items() if member is not None}


def _assign_equally(ordered: list[str], tps: list[TopicPartition], owner: dict[TopicPartition, str]) -> None:
    """All members subscribe to all topics: each gets the same number of partitions, or one more."""
    least, more = divmod(len(tps), len(ordered))
    buffered_bytes: dict[str, list[TopicPartition]] = {member: [] for member in ordered}
    for tp in tps:
        if tp in owner:
            buffered_bytes[owner[tp]].append(tp)
    # Members with the most partitions keep the extra ones.
    for member in sorted(ordered, key=lambda name: -len(buffered_bytes[name])):
        keeps = least + (more > 0 and len(buffered_bytes[member]) > least)
        more -= len(buffered_bytes[member]) > least and more > 0
        for tp in buffered_bytes[member][keeps:]:
            del owner[tp]
        del buffered_bytes[member][keeps:]
    free = [tp for tp in tps if tp not in owner]
    loads = [(len(buffered_bytes[member]), place) for place, member in enumerate(ordered)]
    _deal(free, loads, ordered, owner)


def _deal(
    free: list[TopicPartition],
    loads: list[tuple[int, int]],
    ordered: list[str],
    owner: dict[TopicPartition, str],
) -> None:
    """Assign each partition to the least loaded member, the first in order among equals."""
    heapify(loads)
    for tp in free:
        load, place = heappop(loads)
        owner[tp] = ordered[place]
        heappush(loads, (load + 1, place))


def _assign_by_subscription(
    ordered: list[str],
    tps: list[TopicPartition],
    wanting: Mapping[str, list[str]],
    owner: dict[TopicPartition, str],
) -> None:
    """Subscriptions differ: assign partitions with few candidates first, then balance."""
    load = dict.fromkeys(ordered, 0)
    for member in owner.values():
        load[member] += 1
    for tp in sorted((tp for tp in tps if tp not in owner), key=lambda tp: (len(wanting[tp.topic]), tp)):
        taker = min(wanting[tp.topic], key=load.__getitem__)
        owner[tp] = taker
        load[taker] += 1
    changed = True
    # This terminates: every move reduces the sum of the squared loads.
    while changed:
        changed = False
        for tp in tps:
            taker = min(wanting[tp.topic], key=load.__getitem__)
            if load[owner[tp]] - load[taker] >= 2:
                load[owner[tp]] -= 1
                load[taker] += 1
                owner[tp] = taker
                changed = True


# The table of assignors


@value(kw_only=True)
class Assignor:
    name: str
    assign: Callable[[Members, Counts], Shares]
    # Whether members keep their partitions during a rebalance.
    cooperative: bool = False
    # Encodes a member's user data from its last partitions and generation.
    user_data: Callable[[Iterable[TopicPartition], int], bytes | None] = lambda tps, generation: None


def _previous(tps: Iterable[TopicPartition], generation: int) -> bytes | None:
    """As in Java: no user data before the first assignment."""
    return None if generation == NO_GENERATION else encode_previous(tps, generation)


def _generation(tps: Iterable[TopicPartition], generation: int) -> bytes | None:
    return encode_generation(generation)


ASSIGNORS: Final = {
    each.name: each
    for each in (
        Assignor(name="range", assign=assign_range),
        Assignor(name="roundrobin", assign=assign_roundrobin),
        Assignor(name="sticky", assign=assign_sticky, user_data=_previous),
        Assignor(
            name="cooperative-sticky", assign=assign_cooperative, cooperative=True, user_data=_generation
        ),
    )
}
