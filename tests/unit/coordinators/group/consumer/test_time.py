"""Session and revocation timeouts."""

from dataclasses import replace

from barnabas.coordinators.group.consumer.member import MemberState
from barnabas.coordinators.group.settings import GroupTimes
from barnabas.protocol.error_codes import ErrorCode
from support.group.consumer_stories import AT_ONCE, REBALANCE_MS, SESSION_MS, Consumer, ConsumerStory


def test_a_member_without_heartbeats_is_removed_when_its_session_expires() -> None:
    story = ConsumerStory()
    lives, dies = story.is_stable_with("lives", "dies")

    story.waits(SESSION_MS - 1_000, lives)
    assert "dies" in story.group.members
    story.waits(1_000, lives)

    assert "dies" not in story.group.members
    story.beats(lives)
    assert lives.partitions() == {0, 1, 2, 3, 4, 5}
    assert story.error(story.asks(dies)) is ErrorCode.UNKNOWN_MEMBER_ID


def test_every_heartbeat_extends_the_session() -> None:
    story = ConsumerStory()
    member = story.joins("a")

    story.waits(3 * SESSION_MS, member)

    assert "a" in story.group.members


def test_a_session_is_as_long_as_the_group_has_set() -> None:
    story = ConsumerStory(
        replace(AT_ONCE, times_of_groups={"g": GroupTimes(assignment_interval_ms=0, session_timeout_ms=50)})
    )
    story.joins("a")

    story.waits(50)

    assert story.group.is_empty


def test_a_member_that_does_not_revoke_in_time_is_removed() -> None:
    story = ConsumerStory()
    holds = story.joins("holds")
    new = story.joins("new")
    holds.takes(story.asks(holds))
    assert story.group.members["holds"].state is MemberState.UNREVOKED

    for _ in range(REBALANCE_MS // 1_000 - 1):
        story.stage.pass_time(1_000)
        story.asks(holds)
        story.beats(new)
    assert "holds" in story.group.members
    story.stage.pass_time(1_000)

    assert "holds" not in story.group.members
    story.beats(new)
    assert new.partitions() == {0, 1, 2, 3, 4, 5}


def test_a_member_that_revokes_in_time_stays() -> None:
    story = ConsumerStory()
    old = story.joins("old")
    new = story.joins("new")
    story.beats(old)
    story.waits(REBALANCE_MS // 2, new)
    story.beats(old)

    story.waits(REBALANCE_MS, old, new)

    assert story.group.state == "Stable"
    assert len(story.group.members) == 2


def test_after_a_restart_sessions_and_revocations_have_the_full_timeout() -> None:
    story = ConsumerStory()
    old = story.joins("old")
    new = story.joins("new")
    old.takes(story.asks(old))
    after = story.replayed()

    after.waits(SESSION_MS - 1)
    assert len(after.group.members) == 2
    after.asks(old)
    after.asks(new)
    after.waits(REBALANCE_MS - SESSION_MS)
    after.waits(1)

    # The session of neither is over, but one still has what it should have given up.
    assert list(after.group.members) == ["new"]


def test_no_timer_fires_for_departed_members() -> None:
    story = ConsumerStory()
    member = story.joins("a")

    story.leaves(member)

    assert ("session", "g", "a") not in story.context.timers
    assert ("rebalance", "g", "a") not in story.context.timers


def test_no_timer_fires_for_a_member_that_has_revoked() -> None:
    story = ConsumerStory()
    old = story.joins("old")
    story.joins("new")
    story.beats(old)
    assert ("rebalance", "g", "old") in story.context.timers

    story.beats(old)

    assert ("rebalance", "g", "old") not in story.context.timers


def test_an_absent_static_member_has_no_revocation_timeout() -> None:
    story = ConsumerStory(
        replace(AT_ONCE, times=GroupTimes(assignment_interval_ms=0, session_timeout_ms=600_000))
    )
    static = story.joins(Consumer("static", instance_id="one"))
    story.joins("new")
    static.takes(story.asks(static))
    assert story.group.members["static"].state is MemberState.UNREVOKED

    story.leaves(static, epoch=-2)
    story.waits(REBALANCE_MS)

    assert "static" in story.group.members
