"""sticky and cooperative-sticky: balance the assignment, and move as few partitions as possible.

Balanced means that no member could take a partition from one that has two more. A partition claimed by two
members belongs to the one with the later generation; with equal generations, to neither.
"""

from collections import defaultdict
from collections.abc import Mapping
from heapq import heapify, heappop, heappush

from barnabas.base.ids import TopicPartition
from barnabas.client.group.assignors.order import in_order
from barnabas.client.group.subscription import (
    NO_GENERATION,
    Subscription,
    decode_generation,
    decode_previous,
)

_Claims = dict[str, tuple[frozenset[TopicPartition], int]]


def assign_sticky(
    members: Mapping[str, Subscription], counts: Mapping[str, int]
) -> dict[str, list[TopicPartition]]:
    """Eager members have revoked all partitions; their user data holds the last assignment."""
    return _assign(members, counts, {name: decode_previous(one.user_data) for name, one in members.items()})


def assign_cooperative(
    members: Mapping[str, Subscription], counts: Mapping[str, int]
) -> dict[str, list[TopicPartition]]:
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


def _assign(
    members: Mapping[str, Subscription], counts: Mapping[str, int], claims: _Claims
) -> dict[str, list[TopicPartition]]:
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
    shares: dict[str, list[TopicPartition]] = {member: [] for member in ordered}
    for tp in tps:
        shares[owner[tp]].append(tp)
    return shares


def _owners(
    members: Mapping[str, Subscription], claims: _Claims, tps: list[TopicPartition]
) -> dict[TopicPartition, str]:
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
    held: dict[str, list[TopicPartition]] = {member: [] for member in ordered}
    for tp in tps:
        if tp in owner:
            held[owner[tp]].append(tp)
    # Members with the most partitions keep the extra ones.
    for member in sorted(ordered, key=lambda name: -len(held[name])):
        keeps = least + (more > 0 and len(held[member]) > least)
        more -= len(held[member]) > least and more > 0
        for tp in held[member][keeps:]:
            del owner[tp]
        del held[member][keeps:]
    free = [tp for tp in tps if tp not in owner]
    loads = [(len(held[member]), place) for place, member in enumerate(ordered)]
    _deal(free, loads, ordered, owner)


def _deal(
    free: list[TopicPartition],
    loads: list[tuple[int, int]],
    ordered: list[str],
    owner: dict[TopicPartition, str],
) -> None:
    """Give each partition to the least loaded member, the first in order among equals."""
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
