"""What must hold of a shard of groups after every step, whatever was done to it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from barnabas.base.ids import Uuid
from barnabas.coordinators.decision.timers import TimerKey
from barnabas.coordinators.group.classic.group import ClassicGroup
from barnabas.coordinators.group.consumer.group import ConsumerGroup
from barnabas.coordinators.group.consumer.member import STATIC_LEAVING_EPOCH, MemberState
from barnabas.coordinators.group.group import Group
from barnabas.coordinators.group.shard import GroupShard
from barnabas.metadata.image import TopicImage
from barnabas.protocol.stored.consumer_protocol import ConsumerProtocolAssignment
from barnabas.protocol.stored.framing import CONSUMER_OFFSETS, decode_versioned
from barnabas.protocol.stored.offsets import GroupMetadataKey, OffsetCommitKey
from support.group.model import Asked, GroupWorld
from support.group.model_classic import ClassicClient
from support.group.model_clients import GroupClient

_OFFSETS_TIMER = ("offsets", "", "")


def check_all(world: GroupWorld) -> None:
    check_replay(world)
    check_nothing_is_left_behind(world)
    for group in world.shard.context.groups.values():
        if isinstance(group, ConsumerGroup):
            check_owners(group)
            check_epochs(group)
        else:
            assert isinstance(group, ClassicGroup)
            check_classic(group)
    check_waiting(world)
    check_timers(world)


# The log


def check_replay(world: GroupWorld) -> None:
    """A shard that reads the log from its beginning is the one that wrote it; so it is when compacted."""
    for read in world.read_again():
        _check_same(world.shard, read)


def check_nothing_is_left_behind(world: GroupWorld) -> None:
    """What the log says last is of a group, a member or an expression that there is, or a tombstone."""
    groups = world.shard.context.groups
    for key_bytes, value in world.last_values().items():
        key = CONSUMER_OFFSETS.decode_key(key_bytes)
        if value is None or isinstance(key, OffsetCommitKey):
            continue
        if isinstance(key, GroupMetadataKey):
            assert isinstance(groups.get(key.group), ClassicGroup), f"left behind: {key}"
            continue
        group = groups.get(key.group_id)
        assert isinstance(group, ConsumerGroup), f"left behind: {key}"
        assert getattr(key, "member_id", None) in (None, *group.members), f"left behind: {key}"
        regex = getattr(key, "regular_expression", None)
        assert regex in (None, *group.subscriptions.resolved), f"left behind: {key}"


def _check_same(live: GroupShard, read: GroupShard) -> None:
    assert read.durable() == live.durable()
    for group_id, group in read.context.groups.items():
        assert _counts(group) == _counts(live.context.groups[group_id])


def _counts(group: Group) -> Any:
    """What is counted beside what the records say. Of a classic group a round may have changed it."""
    if not isinstance(group, ConsumerGroup):
        return group.kind
    subscriptions = group.subscriptions
    held = [
        (topic_id, number, group.ownership.holder(topic_id, number))
        for member in group.members.values()
        for topic_id, number in _places(member.assigned, member.revoking)
    ]
    return (
        group.kind,
        group.state,
        group.static,
        group.assignors,
        group.classic_members,
        group.classic_protocols,
        sorted(subscriptions),
        subscriptions.regexes,
        sorted(held),
    )


# Who has what


def check_owners(group: ConsumerGroup) -> None:
    """A partition that a member may read, or has still to give up, is of nobody else."""
    owners: dict[tuple[Uuid, int], str] = {}
    for member in group.members.values():
        for place in _places(member.assigned, member.revoking):
            assert place not in owners, f"{place} of {group.id} has {owners[place]} and {member.id}"
            owners[place] = member.id
            assert group.ownership.holder(*place) == member.id
    targets: dict[tuple[Uuid, int], str] = {}
    for member_id, target in group.targets.items():
        assert member_id in group.members, f"a target of {member_id}, who is not in {group.id}"
        for place in _places(target):
            assert place not in targets, f"{place} of {group.id} is for {targets[place]} and {member_id}"
            targets[place] = member_id


def check_epochs(group: ConsumerGroup) -> None:
    assert group.assignment_epoch <= group.epoch
    assert group.static == {one.instance_id: one.id for one in group.members.values() if one.instance_id}
    assert set(group.subscriptions.resolved) <= set(group.subscriptions.regexes)
    for member in group.members.values():
        # As in Kafka, a classic group that has no generation yet becomes one in epoch 0.
        first = min(group.epoch, 1)
        assert member.epoch == STATIC_LEAVING_EPOCH or first <= member.epoch <= group.assignment_epoch, member
        assert not member.revoking or member.state is MemberState.UNREVOKED, member
        for since in _since(member.assigned):
            assert since <= group.assignment_epoch, member


class Tenures:
    """Who was ever given a partition in an epoch. As long as a group lives, that is one member."""

    def __init__(self) -> None:
        self._given: dict[str, dict[tuple[Uuid, int, int], str]] = {}
        self._groups: dict[str, tuple[ConsumerGroup, int]] = {}
        self._shard: GroupShard | None = None

    def check(self, shard: GroupShard) -> None:
        """To be called after every write: so no group can end and begin between two looks."""
        groups = {
            one: group for one, group in shard.context.groups.items() if isinstance(group, ConsumerGroup)
        }
        for group_id, (known, before) in self._groups.items():
            # The same group in a shard that was loaded again is another object.
            if group_id not in groups or (shard is self._shard and groups[group_id] is not known):
                del self._given[group_id]
            else:
                now = groups[group_id].epoch
                assert now >= before, f"the epoch of {group_id} went from {before} back to {now}"
        self._shard = shard
        self._groups = {one: (group, group.epoch) for one, group in groups.items()}
        for group in groups.values():
            self._note(group)

    def _note(self, group: ConsumerGroup) -> None:
        given = self._given.setdefault(group.id, {})
        for member in group.members.values():
            # A static member that comes back with another id is the same one.
            who = member.instance_id or member.id
            for topic_id, partitions in member.assigned.items():
                for number, since in partitions.items():
                    if since > 0:
                        first = given.setdefault((topic_id, number, since), who)
                        assert first == who, f"{number} was given to {first} and {who} in epoch {since}"


def check_work(shard: GroupShard, clients: Iterable[GroupClient]) -> None:
    """What clients work on, as long as the group counts them in, is of one of them."""
    workers: dict[tuple[str, Uuid, int], str] = {}
    for client in clients:
        group = shard.context.groups.get(client.group)
        if (
            not isinstance(group, ConsumerGroup)
            or client.id not in group.members
            or not client.was_given_by_server
        ):
            continue
        for place in client.works_on:
            other = workers.setdefault((client.group, *place), client.name)
            assert other == client.name, f"{other} and {client.name} work on {place} of {client.group}"


# Who waits, and how long


def check_classic(group: ClassicGroup) -> None:
    members = group.members.values()
    assert group.joining_count == sum(one.joining is not None for one in members)
    assert group.static == {one.instance_id: one.id for one in members if one.instance_id is not None}
    assert (group.leader in group.members) == bool(members)
    assert group.unsynced <= set(group.members)
    assert not group.pending & set(group.members)
    # Whoever loads it must find it as it is, unless a round is open: then its members join again.
    stored = group.stored
    if group.state == "Stable":
        assert stored is not None
        written = {one.member_id: one.assignment for one in stored.members}
        assert written == {one.id: one.assignment for one in members}
        assert stored.generation == group.generation
    elif group.state == "Empty":
        assert stored is None or not stored.members


def check_waiting(world: GroupWorld) -> None:
    """Whoever has no answer is known to a group, in a state that will give one."""
    known: list[Asked] = []
    for group in world.shard.context.groups.values():
        for member in group.members.values() if isinstance(group, ClassicGroup) else ():
            assert member.joining is None or group.state == "PreparingRebalance"
            assert member.syncing is None or group.state == "CompletingRebalance"
            known += [one for one in (member.joining, member.syncing) if isinstance(one, Asked)]
    assert {id(one) for one in world.waiting} == {id(one) for one in known}, "somebody waits for nothing"


def check_timers(world: GroupWorld) -> None:
    """Every member has an end if it is not heard of, every round has one, and nothing else has."""
    shard = world.shard
    timers, wanted, allowed = shard.context.timers, {_OFFSETS_TIMER}, set[TimerKey]()
    for group in shard.context.groups.values():
        if isinstance(group, ConsumerGroup):
            for member in group.members.values():
                wanted.add(("session", group.id, member.id))
                allowed |= {
                    (kind, group.id, member.id)
                    for kind in ("rebalance", "classic-member-join", "classic-member-sync")
                }
                if (
                    member.state is MemberState.UNREVOKED
                    and member.classic is None
                    and member.epoch != STATIC_LEAVING_EPOCH
                ):
                    wanted.add(("rebalance", group.id, member.id))
        elif isinstance(group, ClassicGroup):
            for one in group.members.values():
                (allowed if one.is_known_to_live else wanted).add(("classic-session", group.id, one.id))
            wanted |= {("classic-session", group.id, one) for one in group.pending}
            if group.state == "PreparingRebalance":
                wanted.add(("classic-join", group.id, ""))
            if group.unsynced:
                wanted.add(("classic-sync", group.id, ""))
    missing = [key for key in wanted if key not in timers]
    assert not missing, f"nothing will end this: {missing}"
    assert len(timers) == sum(key in timers for key in wanted | allowed), "timers of what is not there"


def check_synced(shard: GroupShard, client: GroupClient) -> None:
    """A member of a classic group that was told an assignment is in the generation that it was told."""
    group = shard.context.groups.get(client.group)
    if not isinstance(client, ClassicClient) or not client.is_in or not isinstance(group, ClassicGroup):
        return
    # It may still have what a consumer group gave it, before that became this one.
    if client.was_given_by_server:
        return
    if client.generation != group.generation or client.id not in group.members:
        return
    assert group.stored is not None
    assert group.stored.generation == client.generation
    written = {one.member_id: one.assignment for one in group.stored.members}
    # What it was told may name topics that are gone, and a group that was a consumer group between has not
    # written those down again.
    topics = shard.context.image.topics
    assert _read(written[client.id], topics) == _read(client.assignment, topics)


def _read(assignment: bytes, topics: Mapping[str, TopicImage]) -> set[tuple[str, int]]:
    if not assignment:
        return set()
    read, _ = decode_versioned(ConsumerProtocolAssignment, assignment)
    return {
        (one.topic, partition)
        for one in read.assigned_partitions
        if one.topic in topics
        for partition in one.partitions
    }


def check_settled(world: GroupWorld, group_id: str, clients: Sequence[GroupClient]) -> None:
    """All of these clients are in the group and nobody else is, and everything is read by one of them."""
    group = world.shard.context.groups.get(group_id)
    if group is None:
        assert not clients
        return
    assert isinstance(group, ClassicGroup | ConsumerGroup)
    assert set(group.members) == {one.id for one in clients}
    if isinstance(group, ClassicGroup):
        assert group.state == ("Stable" if clients else "Empty")
        return
    # As in Kafka, a group in which all speak the classic protocol, and which may not become a classic one,
    # does not look for news: it is the heartbeats of the others that make it move.
    if clients and group.classic_members == len(group.members):
        return
    assert group.state == ("Stable" if clients else "Empty")
    # As in Kafka, what a classic leader said is taken over, and it may have been of another time.
    if group.assignment_ms == 0 and group.targets:
        return
    topics = [topic for name, topic in world.image.topics.items() if name in group.subscriptions]
    places = {(topic.id, number) for topic in topics for number in range(len(topic.partitions))}
    assert {place for one in clients for place in one.owned} == places


def _places(*parts: Any) -> list[tuple[Uuid, int]]:
    return [(topic_id, number) for part in parts for topic_id, numbers in part.items() for number in numbers]


def _since(held: Any) -> list[int]:
    return [since for partitions in held.values() for since in partitions.values()]
