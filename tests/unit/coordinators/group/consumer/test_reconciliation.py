"""From join to a stable group: epochs, targets, revocation and assignment of partitions."""

from barnabas.coordinators.group.consumer.member import MemberState
from barnabas.coordinators.group.settings import GroupSettings, GroupTimes
from support.group.consumer_stories import ConsumerStory, topic_id


def test_the_first_member_gets_everything_with_its_first_heartbeat() -> None:
    story = ConsumerStory()

    only = story.joins("a")

    assert only.partitions() == {0, 1, 2, 3, 4, 5}
    assert only.epoch == 2
    assert story.group.state == "Stable"


def test_a_join_writes_member_epoch_target_and_assignment_in_this_order() -> None:
    story = ConsumerStory()

    story.joins("a")

    assert story.kinds() == [
        "MemberMetadata",
        "Metadata",
        "TargetAssignmentMember",
        "TargetAssignmentMetadata",
        "CurrentMemberAssignment",
    ]


def test_a_new_member_waits_until_the_old_one_has_revoked() -> None:
    story = ConsumerStory()
    old = story.joins("old")

    new = story.joins("new")

    assert (new.epoch, new.partitions()) == (3, set())
    assert story.group.members["new"].state is MemberState.UNRELEASED
    told = story.asks(old, topic_partitions=old.says())
    # It is told what to keep, and stays in its epoch until it says that the rest is gone.
    assert told.assignment is not None
    assert told.member_epoch == 2
    story.beats(new)
    assert new.partitions() == set()

    old.takes(told)
    story.beats(old)
    story.beats(new)

    assert (old.epoch, new.epoch) == (3, 3)
    assert old.partitions() | new.partitions() == {0, 1, 2, 3, 4, 5}
    assert not old.partitions() & new.partitions()
    assert story.group.state == "Stable"


def test_a_member_that_reports_no_partitions_is_assumed_to_own_them() -> None:
    story = ConsumerStory()
    old = story.joins("old")
    new = story.joins("new")

    old.takes(story.asks(old))
    old.takes(story.asks(old))
    story.beats(new)

    assert new.partitions() == set()
    assert story.group.members["old"].state is MemberState.UNREVOKED


def test_partitions_of_a_departed_member_go_to_the_others() -> None:
    story = ConsumerStory()
    stays, leaves = story.is_stable_with("stays", "leaves")

    answer = story.leaves(leaves)

    assert (answer.error_code, answer.member_epoch) == (0, -1)
    story.beats(stays)
    assert stays.partitions() == {0, 1, 2, 3, 4, 5}


def test_the_last_member_leaves_an_empty_group_with_its_epoch() -> None:
    story = ConsumerStory()
    only = story.joins("a")
    before = len(story.stage.records)

    story.leaves(only)

    assert story.group.is_empty
    assert story.group.state == "Empty"
    assert story.group.epoch == 3
    assert story.kinds(before) == [
        "CurrentMemberAssignment-",
        "TargetAssignmentMember-",
        "MemberMetadata-",
        "Metadata",
    ]


def test_an_idle_heartbeat_writes_nothing_and_returns_no_assignment() -> None:
    story = ConsumerStory()
    only = story.joins("a")
    story.beats(only)
    before = len(story.stage.records)

    answer = story.asks(only)

    assert answer.assignment is None
    assert (answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms) == ("a", 2, 5_000)
    assert story.stage.records[before:] == []


def test_a_full_request_gets_the_unchanged_assignment() -> None:
    story = ConsumerStory()
    only = story.joins("a")

    answer = story.asks(
        only,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=["orders"],
        topic_partitions=only.says(),
    )

    assert answer.assignment is not None
    assert answer.assignment.topic_partitions[0].partitions == [0, 1, 2, 3, 4, 5]


def test_after_a_lost_response_the_previous_epoch_is_accepted() -> None:
    story = ConsumerStory()
    old, new = story.is_stable_with("old", "new")
    story.leaves(new)
    lost = story.asks(old, topic_partitions=old.says())
    assert lost.member_epoch == 4

    again = story.asks(old, topic_partitions=old.says())

    assert again.error_code == 0
    assert again.member_epoch == 4


def test_a_member_that_subscribes_to_nothing_is_in_the_first_epoch() -> None:
    story = ConsumerStory()

    idle = story.joins("a", topics=())

    assert idle.epoch == 1
    assert story.kinds() == ["MemberMetadata", "CurrentMemberAssignment"]


def test_a_member_revokes_unsubscribed_topics_immediately() -> None:
    story = ConsumerStory(topics={"orders": 2, "payments": 2})
    member = story.joins("a", topics=("orders", "payments"))

    answer = story.asks(member, subscribed_topic_names=["orders"], topic_partitions=member.says())

    assert answer.assignment is not None
    assert [topic.topic_id for topic in answer.assignment.topic_partitions] == [topic_id("orders")]
    member.takes(answer)
    story.settles(member)
    assert member.partitions("orders") == {0, 1}
    assert member.partitions("payments") == set()


def test_within_the_interval_a_new_epoch_keeps_the_assignment() -> None:
    times = GroupTimes(assignment_interval_ms=1_000)
    story = ConsumerStory(GroupSettings(times=times))
    first = story.joins("first")
    story.stage.pass_time(999)

    second = story.joins("second")

    assert story.group.state == "DeferredAssignments"
    assert (second.epoch, second.partitions()) == (2, set())
    story.stage.pass_time(1)
    story.beats(second)
    assert story.group.assignment_epoch == 3
    story.settles(first, second)
    assert len(second.partitions()) == 3


def test_a_clock_set_back_does_not_delay_an_assignment() -> None:
    story = ConsumerStory(GroupSettings(times=GroupTimes(assignment_interval_ms=1_000)))
    story.joins("first")
    story.stage.set_clock_back(3_600_000)
    story.stage.pass_time(1_000)

    story.joins("second")

    assert story.group.state != "DeferredAssignments"


def test_groups_have_intervals_of_their_own() -> None:
    own = GroupTimes(assignment_interval_ms=0, heartbeat_interval_ms=7_000)
    story = ConsumerStory(GroupSettings(times_of_groups={"g": own}))
    story.joins("first")

    answer = story.asks_to_join(story.joins("second"))

    assert story.group.state != "DeferredAssignments"
    assert answer.heartbeat_interval_ms == 7_000


def test_most_members_decide_which_assignor_is_used() -> None:
    story = ConsumerStory(topics={"orders": 2, "payments": 2})
    both = ("orders", "payments")

    story.is_stable_with("a", "b", topics=both, assignor="range")

    # Range gives each member the same partitions of both topics.
    for member in story.group.members.values():
        assert member.assigned[topic_id("orders")].keys() == member.assigned[topic_id("payments")].keys()
    assert story.shard.describe_consumer("g").assignor_name == "range"


def test_the_hundredth_member_costs_as_many_records_as_the_second() -> None:
    story = ConsumerStory(GroupSettings(), topics={"orders": 100})
    for number in range(100):
        story.joins(f"m{number}")
    before = len(story.stage.records)

    story.joins("one more")

    assert story.kinds(before) == ["MemberMetadata", "Metadata", "CurrentMemberAssignment"]


def test_unsubscribed_topics_are_revoked_before_the_new_target() -> None:
    times = GroupTimes(assignment_interval_ms=60_000)
    story = ConsumerStory(GroupSettings(times=times), topics={"orders": 2, "payments": 2})
    member = story.joins("a", topics=("orders", "payments"))

    member.takes(story.asks(member, subscribed_topic_names=["orders"], topic_partitions=member.says()))

    assert story.group.state == "DeferredAssignments"
    assert (member.partitions("orders"), member.partitions("payments")) == ({0, 1}, set())


def test_a_reconciled_member_may_change_its_subscription() -> None:
    story = ConsumerStory(topics={"orders": 2, "payments": 2})
    member = story.joins("a")
    story.beats(member)

    story.beats(member, subscribed_topic_names=["payments"])
    story.settles(member)

    assert (member.partitions("orders"), member.partitions("payments")) == (set(), {0, 1})


def test_targets_that_do_not_change_are_not_written_again() -> None:
    story = ConsumerStory(topics={"orders": 2, "payments": 2})
    story.joins("a")
    before = len(story.stage.records)

    story.joins("b", topics=("payments",))

    assert story.kinds(before).count("TargetAssignmentMember") == 1


def test_the_assignor_that_a_member_asks_for_when_it_joins_counts_at_once() -> None:
    story = ConsumerStory(topics={"orders": 2, "payments": 2})
    both = ("orders", "payments")
    story.joins("a", topics=both)

    story.joins("b", topics=both, assignor="range")

    targets = story.group.targets
    assert targets["a"] == {topic_id("orders"): {0}, topic_id("payments"): {0}}
    assert targets["b"] == {topic_id("orders"): {1}, topic_id("payments"): {1}}


def test_the_topic_hash_follows_the_subscriptions_of_the_group() -> None:
    story = ConsumerStory(topics={"orders": 2, "payments": 2})
    first = story.joins("a")
    story.beats(first)
    one_topic = story.group.metadata_hash

    second = story.joins("b", topics=("payments",))
    two_topics = story.group.metadata_hash
    story.beats(second)
    story.leaves(second)

    assert one_topic != two_topics
    assert story.group.metadata_hash == one_topic
    # A hash that was wrong would have cost an epoch now.
    epoch = story.group.epoch
    after = story.replayed()
    after.beats(first)
    assert after.group.epoch == epoch
