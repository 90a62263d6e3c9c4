"""sticky and cooperative-sticky: as even as can be, and otherwise everything stays where it is.

Even means: nobody could take a partition from a member that has two more than itself. A partition that two
members claim belongs to the one that had it last; if they claim it for the same generation, to neither, for
then nobody knows.
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
    """Eager members have given everything back, and tell what they had in bytes of the assignor's own."""
    return _assign(members, counts, {name: decode_previous(one.user_data) for name, one in members.items()})


def assign_cooperative(
    members: Mapping[str, Subscription], counts: Mapping[str, int]
) -> dict[str, list[TopicPartition]]:
    """What changes hands is given to nobody in this round: its owner has to let go of it first."""
    claims: _Claims = {}
    for name, one in members.items():
        told = one.generation if one.generation != NO_GENERATION else decode_generation(one.user_data)
        claims[name] = (one.owned, told)
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
        _share_alike(ordered, tps, owner)
    else:
        _share_by_wish(ordered, tps, wanting, owner)
    shares: dict[str, list[TopicPartition]] = {member: [] for member in ordered}
    for tp in tps:
        shares[owner[tp]].append(tp)
    return shares


def _owners(
    members: Mapping[str, Subscription], claims: _Claims, tps: list[TopicPartition]
) -> dict[TopicPartition, str]:
    """Who had what last, of that which is there and still wanted."""
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


def _share_alike(ordered: list[str], tps: list[TopicPartition], owner: dict[TopicPartition, str]) -> None:
    """Everybody wants everything: everybody gets the same number, or one more."""
    least, more = divmod(len(tps), len(ordered))
    held: dict[str, list[TopicPartition]] = {member: [] for member in ordered}
    for tp in tps:
        if tp in owner:
            held[owner[tp]].append(tp)
    # Those who have most keep the places for one more.
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
    """Each to whoever has the least, the first in order among equals."""
    heapify(loads)
    for tp in free:
        load, place = heappop(loads)
        owner[tp] = ordered[place]
        heappush(loads, (load + 1, place))


def _share_by_wish(
    ordered: list[str],
    tps: list[TopicPartition],
    wanting: Mapping[str, list[str]],
    owner: dict[TopicPartition, str],
) -> None:
    """Members want different topics: what few can take is dealt first, then it is evened out."""
    load = dict.fromkeys(ordered, 0)
    for member in owner.values():
        load[member] += 1
    for tp in sorted((tp for tp in tps if tp not in owner), key=lambda tp: (len(wanting[tp.topic]), tp)):
        taker = min(wanting[tp.topic], key=load.__getitem__)
        owner[tp] = taker
        load[taker] += 1
    changed = True
    # It ends: every move makes the sum of the squares of the loads smaller.
    while changed:
        changed = False
        for tp in tps:
            taker = min(wanting[tp.topic], key=load.__getitem__)
            if load[owner[tp]] - load[taker] >= 2:
                load[owner[tp]] -= 1
                load[taker] += 1
                owner[tp] = taker
                changed = True
