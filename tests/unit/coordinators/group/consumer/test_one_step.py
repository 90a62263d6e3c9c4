"""One step of a member towards its target, whatever state it is in."""

from collections.abc import Mapping
from dataclasses import replace

from barnabas.base.ids import Uuid
from barnabas.coordinators.group.consumer.member import ConsumerMember, MemberState
from barnabas.coordinators.group.consumer.reconcile import (
    Owned,
    StepInputs,
    SubscribedTopics,
    Target,
    next_step,
)
from support.group.consumer_stories import image_of, topic_id

ORDERS, PAYMENTS = topic_id("orders"), topic_id("payments")
IMAGE = image_of({"orders": 4, "payments": 4})
MEMBER = ConsumerMember(id="m", epoch=5, previous_epoch=4, assigned={ORDERS: {0: 3, 1: 5}})


def _step(
    member: ConsumerMember,
    target: Target,
    *,
    owned: Owned = (),
    names: tuple[str, ...] = ("orders",),
    changed: bool = False,
    holders: Mapping[tuple[Uuid, int], str] | None = None,
) -> ConsumerMember:
    held = holders or {}
    around = StepInputs(
        owned=owned,
        subscribed=SubscribedTopics(frozenset(names), IMAGE),
        subscription_changed=changed,
        holder=lambda topic, partition: held.get((topic, partition)),
    )
    return next_step(member, target, around)


def _target(*partitions: int, epoch: int = 6, topic: Uuid = ORDERS) -> Target:
    return Target(epoch, {topic: frozenset(partitions)})


def test_retained_partitions_keep_their_epoch_and_new_ones_get_the_current() -> None:
    after = _step(MEMBER, _target(0, 1, 2))

    assert after.assigned == {ORDERS: {0: 3, 1: 5, 2: 6}}
    assert (after.epoch, after.previous_epoch, after.state) == (6, 5, MemberState.STABLE)


def test_a_partition_that_another_holds_is_waited_for() -> None:
    after = _step(MEMBER, _target(0, 1, 2), holders={(ORDERS, 2): "other"})

    assert after.assigned == MEMBER.assigned
    assert (after.epoch, after.state) == (6, MemberState.UNRELEASED)


def test_owned_partitions_outside_the_target_are_revoked_in_the_old_epoch() -> None:
    after = _step(MEMBER, _target(0), owned=[(ORDERS, [0, 1])])

    assert (after.assigned, after.revoking) == ({ORDERS: {0: 3}}, {ORDERS: {1: 5}})
    assert (after.epoch, after.state) == (5, MemberState.UNREVOKED)


def test_unowned_partitions_need_no_revocation() -> None:
    after = _step(MEMBER, _target(0), owned=[(ORDERS, [0])])

    assert (after.assigned, after.revoking) == ({ORDERS: {0: 3}}, {})
    assert (after.epoch, after.state) == (6, MemberState.STABLE)


def test_a_member_may_regain_a_partition_being_revoked() -> None:
    revokes = replace(
        MEMBER, state=MemberState.UNREVOKED, assigned={ORDERS: {0: 3}}, revoking={ORDERS: {1: 5}}
    )

    after = _step(revokes, _target(0, 1, epoch=7), owned=[(ORDERS, [0])], holders={(ORDERS, 1): "m"})

    assert after.assigned == {ORDERS: {0: 3, 1: 7}}
    assert (after.epoch, after.state) == (7, MemberState.STABLE)


def test_a_member_that_has_not_given_up_stays_where_it_is() -> None:
    revokes = replace(
        MEMBER, state=MemberState.UNREVOKED, assigned={ORDERS: {0: 3}}, revoking={ORDERS: {1: 5}}
    )

    assert _step(revokes, _target(0), owned=[(ORDERS, [0, 1])]) is revokes
    assert _step(revokes, _target(0), owned=None) is revokes


def test_unsubscribed_topics_of_an_old_target_are_not_assigned() -> None:
    target = Target(6, {ORDERS: frozenset({0, 1}), PAYMENTS: frozenset({3})})

    after = _step(MEMBER, target, names=("orders",))

    assert after.assigned == MEMBER.assigned
    assert after.state is MemberState.STABLE


def test_a_changed_subscription_revokes_topics_before_a_new_target() -> None:
    member = replace(MEMBER, assigned={ORDERS: {0: 3}, PAYMENTS: {2: 5}})
    target = Target(5, {ORDERS: frozenset({0}), PAYMENTS: frozenset({2})})

    after = _step(member, target, owned=[(PAYMENTS, [2])], changed=True)
    without = _step(member, target, owned=[], changed=True)

    assert (after.assigned, after.revoking) == ({ORDERS: {0: 3}}, {PAYMENTS: {2: 5}})
    assert (after.epoch, after.state) == (5, MemberState.UNREVOKED)
    assert (without.assigned, without.revoking, without.state) == ({ORDERS: {0: 3}}, {}, MemberState.STABLE)


def test_a_revoking_member_revokes_more_after_a_subscription_change() -> None:
    revokes = replace(
        MEMBER,
        state=MemberState.UNREVOKED,
        assigned={ORDERS: {0: 3}, PAYMENTS: {2: 5}},
        revoking={ORDERS: {1: 5}, PAYMENTS: {3: 4}},
    )

    after = _step(revokes, _target(0, epoch=5), owned=[(ORDERS, [0, 1]), (PAYMENTS, [2])], changed=True)

    assert after.assigned == {ORDERS: {0: 3}}
    assert after.revoking == {ORDERS: {1: 5}, PAYMENTS: {3: 4, 2: 5}}


def test_a_member_at_its_target_takes_no_step() -> None:
    assert _step(MEMBER, _target(0, 1, epoch=5)) is MEMBER
    assert _step(MEMBER, _target(0, 1, epoch=5), changed=True) is MEMBER


def test_partitions_of_a_topic_that_is_gone_are_given_up() -> None:
    gone = topic_id("gone")
    member = replace(MEMBER, assigned={gone: {0: 5}})

    after = _step(member, Target(6, {gone: frozenset({0})}), owned=[(gone, [0])], names=("gone",))

    assert after.revoking == {gone: {0: 5}}
