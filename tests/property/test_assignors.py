"""Whatever the group: every partition has one owner, shares are fair, and nothing moves without need."""

from collections import defaultdict
from collections.abc import Mapping
from itertools import pairwise
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.ids import Uuid
from barnabas.coordinators.group.assignors import ASSIGNORS, Assignment, MemberSpec, TopicSpec, assign

Members = dict[str, MemberSpec]
Topics = dict[Uuid, TopicSpec]

TOPICS_MAX = 6
PARTITIONS_MAX = 12
MEMBERS_MAX = 12


@st.composite
def topics_of_any_size(draw: st.DrawFn) -> Topics:
    ids = draw(st.lists(st.binary(min_size=16, max_size=16), min_size=1, max_size=TOPICS_MAX, unique=True))
    return {Uuid(one): TopicSpec(draw(st.integers(1, PARTITIONS_MAX)), ()) for one in ids}


@st.composite
def groups(draw: st.DrawFn, *, homogeneous: bool) -> tuple[Members, Topics]:
    """Members who own nothing, or what somebody gave them at random: not more than one owner for each."""
    topics = draw(topics_of_any_size())
    some_topics = st.frozensets(st.sampled_from(sorted(topics)))
    subscribed_by_all = draw(some_topics) if homogeneous else None
    members = {}
    for number in range(draw(st.integers(1, MEMBERS_MAX))):
        instance_id = f"static-{number}" if draw(st.booleans()) else None
        subscribed = draw(some_topics) if subscribed_by_all is None else subscribed_by_all
        # Ids that are not in the order in which members come.
        members[f"{number * 7 % MEMBERS_MAX}-{number}"] = MemberSpec(instance_id, None, subscribed, {})
    if not draw(st.booleans()):
        return members, topics
    owned: dict[str, dict[Uuid, set[int]]] = {member_id: defaultdict(set) for member_id in members}
    owners = st.none() | st.sampled_from(sorted(members))
    for topic, spec in topics.items():
        for partition in range(spec.partitions):
            owner = draw(owners)
            if owner is not None:
                owned[owner][topic].add(partition)
    return {
        member_id: spec._replace(owned={topic: frozenset(of) for topic, of in owned[member_id].items()})
        for member_id, spec in members.items()
    }, topics


SAME = groups(homogeneous=True)
MIXED = groups(homogeneous=False)
ANY = SAME | MIXED
ASSIGNOR = st.sampled_from(ASSIGNORS)


def is_homogeneous(members: Members) -> bool:
    return len({member.topics for member in members.values()}) <= 1


def assigned_by(assignor: str, members: Members, topics: Topics) -> dict[str, Assignment]:
    return assign(assignor, members, topics, homogeneous=is_homogeneous(members))


def owning(members: Members, assigned: Mapping[str, Assignment]) -> Members:
    return {member_id: spec._replace(owned=assigned[member_id]) for member_id, spec in members.items()}


def load(assignment: Assignment) -> int:
    return sum(map(len, assignment.values()))


def pairs(assignment: Mapping[Uuid, frozenset[int]]) -> set[tuple[Uuid, int]]:
    return {(topic, partition) for topic, partitions in assignment.items() for partition in partitions}


def check_owners(members: Members, topics: Topics, assigned: Mapping[str, Assignment]) -> None:
    assert list(assigned.keys() ^ members.keys()) == []
    owners = defaultdict(list)
    for member_id, assignment in assigned.items():
        assert assignment.keys() <= members[member_id].topics
        assert all(assignment.values()), "a topic without partitions"
        for one in pairs(assignment):
            owners[one].append(member_id)
    subscribed = frozenset[Uuid]().union(*(member.topics for member in members.values()))
    every = {(topic, partition) for topic in subscribed for partition in range(topics[topic].partitions)}
    assert owners.keys() == every
    assert all(len(of) == 1 for of in owners.values())


@given(ANY, ASSIGNOR)
def test_every_partition_that_is_subscribed_to_has_one_owner(
    group: tuple[Members, Topics], assignor: str
) -> None:
    members, topics = group

    check_owners(members, topics, assigned_by(assignor, members, topics))


@given(SAME)
def test_subscriptions_that_happen_to_be_the_same_may_be_called_mixed(group: tuple[Members, Topics]) -> None:
    members, topics = group

    check_owners(members, topics, assign("uniform", members, topics, homogeneous=False))


@given(ANY, ASSIGNOR, st.data())
def test_claims_that_contradict_each_other_do_no_harm(
    group: tuple[Members, Topics], assignor: str, data: st.DataObject
) -> None:
    members, topics = group
    numbers = st.frozensets(st.integers(0, PARTITIONS_MAX + 3), min_size=1)
    claims = st.dictionaries(st.sampled_from(sorted(topics)), numbers)
    members = {member_id: spec._replace(owned=data.draw(claims)) for member_id, spec in members.items()}

    check_owners(members, topics, assigned_by(assignor, members, topics))


@given(ANY, ASSIGNOR, st.randoms(use_true_random=False))
def test_reassigning_changes_nothing_in_any_order_of_members(
    group: tuple[Members, Topics], assignor: str, random: Random
) -> None:
    members, topics = group
    settled = owning(members, assigned_by(assignor, members, topics))
    order = list(settled)
    random.shuffle(order)

    again = assigned_by(assignor, {member_id: settled[member_id] for member_id in order}, topics)

    assert all(again[member_id] is settled[member_id].owned for member_id in members)


@given(ANY, ASSIGNOR)
def test_previous_assignments_are_not_modified(group: tuple[Members, Topics], assignor: str) -> None:
    members, topics = group
    before = {member_id: dict(spec.owned) for member_id, spec in members.items()}

    assigned = assigned_by(assignor, members, topics)

    assert {member_id: spec.owned for member_id, spec in members.items()} == before
    for member_id, spec in members.items():
        assert (assigned[member_id] is spec.owned) == (assigned[member_id] == spec.owned)


@given(SAME)
def test_uniform_shares_differ_by_one_at_most(group: tuple[Members, Topics]) -> None:
    members, topics = group

    loads = [load(of) for of in assign("uniform", members, topics, homogeneous=True).values()]

    assert max(loads) - min(loads) <= 1


@given(MIXED)
def test_partitions_are_balanced_among_members_that_share_topics(group: tuple[Members, Topics]) -> None:
    members, topics = group

    assigned = assign("uniform", members, topics, homogeneous=False)

    for assignment in assigned.values():
        for other_id, other in members.items():
            if assignment.keys() & other.topics:
                assert load(assignment) - load(assigned[other_id]) <= 1


@given(SAME, st.data())
def test_a_leaving_member_moves_only_its_own_partitions(
    group: tuple[Members, Topics], data: st.DataObject
) -> None:
    members, topics = group
    settled = owning(members, assign("uniform", members, topics, homogeneous=True))
    gone = data.draw(st.sampled_from(sorted(settled)))
    left = {member_id: spec for member_id, spec in settled.items() if member_id != gone}

    after = assign("uniform", left, topics, homogeneous=True)

    assert all(pairs(spec.owned) <= pairs(after[member_id]) for member_id, spec in left.items())


@given(SAME)
def test_a_joining_member_increases_no_other_share(group: tuple[Members, Topics]) -> None:
    members, topics = group
    settled = owning(members, assign("uniform", members, topics, homogeneous=True))
    subscribed = next(iter(settled.values())).topics
    grown = {**settled, "new": MemberSpec(None, None, subscribed, {})}

    after = assign("uniform", grown, topics, homogeneous=True)

    assert all(pairs(after[member_id]) <= pairs(spec.owned) for member_id, spec in settled.items())


@given(ANY)
def test_range_gives_contiguous_ranges_in_one_order_of_members(group: tuple[Members, Topics]) -> None:
    members, topics = group
    order = sorted(
        members,
        key=lambda member_id: (
            members[member_id].instance_id is None,
            members[member_id].instance_id or member_id,
        ),
    )

    assigned = assigned_by("range", members, topics)

    for topic, spec in topics.items():
        subscribers = [member_id for member_id in order if topic in members[member_id].topics]
        cut = [sorted(assigned[member_id].get(topic, ())) for member_id in subscribers]
        if subscribers:
            assert [partition for one in cut for partition in one] == list(range(spec.partitions))
            assert all(len(one) - len(following) in (0, 1) for one, following in pairwise(cut))
            assert len(cut[0]) - len(cut[-1]) <= 1


@given(SAME)
def test_range_brings_equal_partitions_of_equal_topics_together(group: tuple[Members, Topics]) -> None:
    members, topics = group

    for assignment in assign("range", members, topics, homogeneous=True).values():
        by_size = defaultdict(set)
        for topic in next(iter(members.values())).topics:
            by_size[topics[topic].partitions].add(assignment.get(topic, frozenset()))
        assert all(len(ranges) == 1 for ranges in by_size.values())
