"""The leader's assignors: complete, balanced and sticky."""

from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.ids import TopicPartition
from barnabas.client.group.assignors import ASSIGNORS, Counts, Members, Shares
from barnabas.client.group.subscription import Subscription

# A partition that moves takes two rounds.
ROUNDS_MAX = 5

TOPICS = ("a", "b", "c")
NAMES = tuple(ASSIGNORS)


def member(*topics: str, owned: str = "", generation: int = -1, instance: str | None = None) -> Subscription:
    """`owned` is like "a-0 a-1"; the user data of an eager sticky member has it, too."""
    tps = frozenset(TopicPartition(each[0], int(each[2:])) for each in owned.split())
    return Subscription(
        topics=frozenset(topics),
        owned=tps,
        generation=generation,
        instance_id=instance,
        user_data=ASSIGNORS["sticky"].user_data(tps, generation),
    )


def shown(shares: Shares) -> dict[str, str]:
    return {name: " ".join(map(str, share)) for name, share in shares.items()}


@st.composite
def groups(draw: st.DrawFn) -> tuple[dict[str, Subscription], dict[str, int]]:
    """Members with any subscriptions and possibly contradictory claims of any generation."""
    counts = {topic: draw(st.integers(0, 6)) for topic in TOPICS if draw(st.booleans())}
    everything = [TopicPartition(topic, number) for topic in TOPICS for number in range(6)]
    members = {}
    for number in range(draw(st.integers(1, 6))):
        owned = frozenset(draw(st.lists(st.sampled_from(everything), max_size=5)))
        generation = draw(st.integers(-1, 3))
        members[f"m{number}"] = Subscription(
            topics=frozenset(draw(st.sets(st.sampled_from(TOPICS), min_size=1))),
            owned=owned,
            generation=generation,
            user_data=ASSIGNORS["sticky"].user_data(owned, generation),
        )
    return members, counts


def wanted(members: Members, counts: Counts) -> set[TopicPartition]:
    return {
        TopicPartition(topic, number)
        for topic, count in counts.items()
        if any(topic in one.topics for one in members.values())
        for number in range(count)
    }


@pytest.mark.parametrize("name", ["range", "roundrobin", "sticky"])
@given(group=groups())
def test_each_partition_goes_to_one_subscribed_member(
    name: str, group: tuple[dict[str, Subscription], dict[str, int]]
) -> None:
    members, counts = group

    shares = ASSIGNORS[name].assign(members, counts)

    assert shares.keys() == members.keys()
    assert Counter(tp for share in shares.values() for tp in share) == Counter(wanted(members, counts))
    assert all(tp.topic in members[one].topics for one, share in shares.items() for tp in share)


@given(group=groups())
def test_a_sticky_assignment_is_even(group: tuple[dict[str, Subscription], dict[str, int]]) -> None:
    members, counts = group

    shares = ASSIGNORS["sticky"].assign(members, counts)

    for poor, rich in combinations(sorted(shares, key=lambda one: len(shares[one])), 2):
        could_take = [tp for tp in shares[rich] if tp.topic in members[poor].topics]
        assert not could_take or len(shares[rich]) - len(shares[poor]) < 2


@given(group=groups())
def test_a_moved_partition_is_unassigned_for_one_round(
    group: tuple[dict[str, Subscription], dict[str, int]],
) -> None:
    members, counts = group
    assign = ASSIGNORS["cooperative-sticky"].assign

    for _ in range(ROUNDS_MAX):
        shares = assign(members, counts)
        for name, share in shares.items():
            others = [one.owned for other, one in members.items() if other != name]
            assert not any(tp in owned for tp in share for owned in others)
        if Counter(tp for share in shares.values() for tp in share) == Counter(wanted(members, counts)):
            return
        # All members have revoked what they did not keep. With different subscriptions that may cause
        # another move.
        members = {
            name: Subscription(topics=one.topics, owned=frozenset(shares[name]), generation=9)
            for name, one in members.items()
        }
    pytest.fail(f"still not given after {ROUNDS_MAX} rounds")


@given(members=st.integers(1, 8), leaves=st.integers(0, 7), count=st.integers(0, 30))
def test_when_a_member_leaves_only_its_partitions_move(members: int, leaves: int, count: int) -> None:
    names = [f"m{number}" for number in range(members + 1)]
    before = ASSIGNORS["sticky"].assign({name: member("a") for name in names}, {"a": count})
    gone = names[leaves % len(names)]
    left = {
        name: Subscription(topics=frozenset("a"), user_data=ASSIGNORS["sticky"].user_data(before[name], 4))
        for name in names
        if name != gone
    }

    after = ASSIGNORS["sticky"].assign(left, {"a": count})

    assert all(set(before[name]) <= set(after[name]) for name in left)


@given(members=st.integers(1, 8), count=st.integers(0, 30))
def test_a_new_member_gets_its_share_and_nothing_else_moves(members: int, count: int) -> None:
    names = [f"m{number}" for number in range(members)]
    before = ASSIGNORS["sticky"].assign({name: member("a") for name in names}, {"a": count})
    grown = {
        name: Subscription(topics=frozenset("a"), user_data=ASSIGNORS["sticky"].user_data(before[name], 4))
        for name in names
    } | {"new": member("a")}

    after = ASSIGNORS["sticky"].assign(grown, {"a": count})

    assert all(set(after[name]) <= set(before[name]) for name in names)


def test_range_gives_runs_of_neighbours_and_one_more_to_the_first() -> None:
    members = {"y": member("a", "b"), "x": member("a", "b"), "z": member("a")}

    shares = ASSIGNORS["range"].assign(members, {"a": 7, "b": 3})

    assert shown(shares) == {"x": "a-0 a-1 a-2 b-0 b-1", "y": "a-3 a-4 b-2", "z": "a-5 a-6"}


def test_roundrobin_assigns_in_turn_and_skips_unsubscribed_members() -> None:
    members = {"x": member("a"), "y": member("a", "b"), "z": member("a", "b", "c")}

    shares = ASSIGNORS["roundrobin"].assign(members, {"a": 1, "b": 2, "c": 3})

    # The example of Kafka's own documentation.
    assert shown(shares) == {"x": "a-0", "y": "b-0", "z": "b-1 c-0 c-1 c-2"}


@pytest.mark.parametrize("name", ["range", "roundrobin"])
def test_static_members_are_served_first_by_their_instance_ids(name: str) -> None:
    members = {"a": member("a"), "b": member("a", instance="2"), "c": member("a", instance="1")}

    shares = ASSIGNORS[name].assign(members, {"a": 3})

    assert shown(shares) == {"c": "a-0", "b": "a-1", "a": "a-2"}


def test_a_claim_of_an_older_generation_does_not_count() -> None:
    members = {
        "old": member("a", owned="a-0 a-1", generation=3),
        "new": member("a", owned="a-0 a-1", generation=4),
        "more": member("a"),
    }

    shares = ASSIGNORS["sticky"].assign(members, {"a": 3})

    assert shares["new"][0] in (TopicPartition("a", 0), TopicPartition("a", 1))
    assert set(shares["old"]) | set(shares["more"]) == set(wanted(members, {"a": 3})) - set(shares["new"])


@pytest.mark.parametrize("name", NAMES)
def test_missing_topics_are_ignored(name: str) -> None:
    assert ASSIGNORS[name].assign({"x": member("a", "b")}, {}) == {"x": []}
