"""Members with an instance id: they may go for a while, and their place is kept."""

from barnabas.protocol.error_codes import ErrorCode
from support.group.consumer_stories import SESSION_MS, Consumer, ConsumerStory


def _pair(story: ConsumerStory) -> tuple[Consumer, Consumer]:
    one, two = story.is_stable_with(Consumer("1", instance_id="one"), Consumer("2", instance_id="two"))
    return one, two


def test_a_quick_restart_moves_no_partition() -> None:
    story = ConsumerStory()
    one, two = _pair(story)
    had, epoch = one.partitions(), story.group.epoch

    answer = story.leaves(one, epoch=-2)
    back = story.joins(Consumer("1 again", instance_id="one"))
    story.beats(two)

    assert (answer.error_code, answer.member_epoch) == (0, -2)
    assert back.partitions() == had
    assert back.epoch == two.epoch == story.group.epoch == epoch
    assert set(story.group.members) == {"1 again", "2"}
    assert story.group.state == "Stable"


def test_a_restart_deletes_the_old_member_and_writes_the_new_one() -> None:
    story = ConsumerStory()
    one, _ = _pair(story)
    before = len(story.stage.records)

    story.leaves(one, epoch=-2)
    story.joins(Consumer("1 again", instance_id="one"))

    assert story.kinds(before) == [
        "CurrentMemberAssignment",
        "CurrentMemberAssignment-",
        "TargetAssignmentMember-",
        "MemberMetadata-",
        "MemberMetadata",
        "TargetAssignmentMember",
        "CurrentMemberAssignment",
        "CurrentMemberAssignment",
    ]


def test_a_member_that_is_away_keeps_its_partitions_until_its_session_ends() -> None:
    story = ConsumerStory()
    one, two = _pair(story)

    story.leaves(one, epoch=-2)
    story.waits(SESSION_MS - 1_000, two)
    assert len(two.partitions()) == 3
    story.waits(2_000, two)

    assert two.partitions() == {0, 1, 2, 3, 4, 5}
    assert list(story.group.members) == ["2"]


def test_a_member_that_is_away_is_not_counted_as_settled() -> None:
    story = ConsumerStory()
    one, _ = _pair(story)

    story.leaves(one, epoch=-2)

    assert story.group.members["1"].epoch == -2
    assert story.group.state == "Reconciling"


def test_an_instance_id_in_use_is_not_released() -> None:
    story = ConsumerStory()
    _pair(story)

    answer = story.asks_to_join(Consumer("thief", instance_id="one"))

    assert story.error(answer) is ErrorCode.UNRELEASED_INSTANCE_ID
    assert set(story.group.members) == {"1", "2"}


def test_a_member_that_was_replaced_is_fenced() -> None:
    story = ConsumerStory()
    one, _ = _pair(story)
    story.leaves(one, epoch=-2)
    story.joins(Consumer("1 again", instance_id="one"))

    for epoch in (one.epoch, -1, -2):
        answer = story.asks(one, member_epoch=epoch)
        assert story.error(answer) is ErrorCode.FENCED_INSTANCE_ID


def test_an_unknown_instance_id_is_refused() -> None:
    story = ConsumerStory()
    _pair(story)
    stranger = Consumer("3", instance_id="three")

    for epoch in (3, -1, -2):
        answer = story.asks(stranger, member_epoch=epoch)
        assert story.error(answer) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_that_leaves_permanently_loses_its_partitions() -> None:
    story = ConsumerStory()
    one, two = _pair(story)

    story.leaves(one, epoch=-1)
    story.beats(two)

    assert two.partitions() == {0, 1, 2, 3, 4, 5}
    assert story.group.static == {"two": "2"}


def test_the_session_of_a_replaced_member_does_not_end_its_successor() -> None:
    story = ConsumerStory()
    one, two = _pair(story)
    story.leaves(one, epoch=-2)
    story.stage.pass_time(SESSION_MS // 2)
    story.beats(two)
    back = story.joins(Consumer("1 again", instance_id="one"))

    story.waits(SESSION_MS, two, back)

    assert len(story.group.members) == 2
    assert ("session", "g", "1") not in story.context.timers


def test_a_static_member_catches_up_with_the_epoch_after_its_return() -> None:
    story = ConsumerStory()
    one, two = _pair(story)
    story.leaves(one, epoch=-2)
    third = story.joins(Consumer("3"))

    back = story.joins(Consumer("1 again", instance_id="one"))
    story.settles(two, third, back)

    assert [len(member.partitions()) for member in (back, two, third)] == [2, 2, 2]


def test_static_members_send_idle_heartbeats_too() -> None:
    story = ConsumerStory()
    one, two = _pair(story)
    story.beats(one, two)
    before = len(story.stage.records)

    answer = story.asks(one)

    assert answer.error_code == 0
    assert story.stage.records[before:] == []


def test_the_timers_of_the_replaced_member_are_gone_at_once() -> None:
    story = ConsumerStory()
    one, _ = _pair(story)
    story.leaves(one, epoch=-2)

    story.joins(Consumer("1 again", instance_id="one"))

    assert ("session", "g", "1") not in story.context.timers
    assert ("session", "g", "1 again") in story.context.timers


def test_partitions_of_an_absent_static_member_have_epoch_0() -> None:
    story = ConsumerStory()
    one, _ = _pair(story)

    story.leaves(one, epoch=-2)

    (partitions,) = story.group.members["1"].assigned.values()
    assert set(partitions.values()) == {0}


def test_a_returning_member_with_another_subscription_keeps_common_topics() -> None:
    story = ConsumerStory(topics={"orders": 6, "payments": 2})
    one, two, three = story.is_stable_with(Consumer("1", instance_id="one"), "2", "3")
    had = one.partitions()
    story.leaves(one, epoch=-2)

    back = story.joins(Consumer("1 again", instance_id="one", topics=("orders", "payments")))
    story.settles(back, two, three)

    assert back.partitions("payments") == {0, 1}
    assert back.partitions()
    assert back.partitions() <= had
    assert back.partitions() | two.partitions() | three.partitions() == {0, 1, 2, 3, 4, 5}
