"""Random operations on a classic group keep its invariants."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from barnabas.coordinators.group.settings import GroupSettings
from barnabas.protocol.error_codes import ErrorCode
from support.group.stories import Asked, Member, Story, subscription

pytestmark = pytest.mark.kernel

SETTINGS = GroupSettings(classic_size_max=6, new_member_join_timeout_ms=20_000)
PROTOCOLS: list[list[tuple[str, bytes]]] = [
    [("range", subscription("t"))],
    [("range", subscription("t", "u")), ("sticky", b"?")],
    [("sticky", b"1"), ("range", subscription("u"))],
    [("sticky", b"1")],
]


class Life:
    """One group, eight clients, and dice."""

    def __init__(self, seed: int) -> None:
        self.dice = Random(seed)
        self.group = Story(SETTINGS)
        self.members = [Member(f"c{number}", f"i{number % 3}" if number > 4 else None) for number in range(8)]
        self.asked: list[Asked] = []

    def step(self) -> None:
        acts: list[Callable[[Member], None]] = [self.join, self.join, self.sync, self.sync, self.beat]
        acts += [self.leave, self.wait, self.wait, self.forget]
        self.dice.choice(acts)(self.dice.choice(self.members))
        self.learn()

    def join(self, member: Member) -> None:
        how: dict[str, Any] = {"version": self.dice.choice([0, 3, 5, 8, 9])}
        if member.instance_id is not None:
            how["version"] = self.dice.choice([5, 8, 9])
        self.group.joins(member, protocols=self.dice.choice(PROTOCOLS), **how)
        self.asked.append(member.join)

    def sync(self, member: Member) -> None:
        parts = {one.id: self.dice.randbytes(3) for one in self.members if self.dice.random() < 0.9}
        self.asked.append(self.group.syncs(member, parts, version=4))

    def beat(self, member: Member) -> None:
        self.group.beats(member)

    def leave(self, member: Member) -> None:
        if self.dice.random() < 0.3:
            self.group.leaves(member)

    def wait(self, _: Member) -> None:
        self.group.waits(self.dice.choice([10, 1_000, 3_000, 5_000, 12_000]))

    def forget(self, member: Member) -> None:
        """It starts again and knows nothing of itself."""
        if self.dice.random() < 0.3:
            member.id, member.generation, member.join = "", -1, Asked()

    def learn(self) -> None:
        for member in self.members:
            if not member.waits and member.join.error is ErrorCode.NONE:
                member.id = member.joined.member_id
                member.generation = member.joined.generation_id


def check_counts(life: Life) -> None:
    group = life.group.group
    members = group.members.values()
    assert group.joining_count == sum(member.joining is not None for member in members)
    assert group.static == {one.instance_id: one.id for one in members if one.instance_id is not None}
    assert (group.leader in group.members) == bool(members)
    assert group.unsynced <= set(group.members)
    assert not group.pending & set(group.members)
    assert group.joining_count <= SETTINGS.classic_size_max
    assert group.is_empty <= (not members)
    if members:
        assert group.elected_protocol() in {"range", "sticky"}


def check_waiting(life: Life) -> None:
    """Whoever has no answer is known to the group, and waits for what this state can give."""
    group = life.group.group
    waiting = [asked for asked in life.asked if asked.waits]
    known = [to for member in group.members.values() for to in (member.joining, member.syncing) if to]
    assert {id(asked) for asked in waiting} == {id(to) for to in known}
    for member in group.members.values():
        assert member.joining is None or group.state == "PreparingRebalance"
        assert member.syncing is None or group.state == "CompletingRebalance"
    life.asked = waiting


def check_timers(life: Life) -> None:
    """Nothing can wait for ever: where a round is open, its end is set."""
    group, timers = life.group.group, life.group.context.timers
    assert (("classic-join", "g", "") in timers) == (group.state == "PreparingRebalance")
    assert (("classic-sync", "g", "") in timers) == bool(group.unsynced)
    for member in group.members.values():
        assert member.is_known_to_live or ("classic-session", "g", member.id) in timers


@pytest.mark.parametrize("seed", range(40))
def test_a_group_stays_consistent_and_a_reload_restores_it(seed: int) -> None:
    life = Life(seed)
    life.join(life.members[0])

    for _ in range(150):
        life.step()
        check_counts(life)
        check_waiting(life)
        check_timers(life)
        assert life.group.replayed().group.durable() == life.group.group.durable()

    life.group.waits(300_000)
    assert all(not asked.waits for asked in life.asked)
    assert life.group.state == "Empty"
