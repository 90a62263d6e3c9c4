"""ConsumerGroupDescribe: states, epochs, what members have and should have."""

from support.group.consumer_stories import ConsumerStory


def test_a_group_is_described_with_current_and_target_assignments() -> None:
    story = ConsumerStory()
    old = story.joins("old")
    story.joins("new")
    story.asks(old, topic_partitions=old.says())

    group = story.shard.describe_consumer("g")

    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Reconciling", 3, 3)
    assert group.assignor_name == "uniform"
    by_id = {member.member_id: member for member in group.members}
    has = by_id["old"].assignment.topic_partitions
    # Also what it has not given up yet.
    assert [(topic.topic_name, topic.partitions) for topic in has] == [("orders", [0, 1, 2, 3, 4, 5])]
    assert len(by_id["old"].target_assignment.topic_partitions[0].partitions) == 3
    assert by_id["new"].assignment.topic_partitions == []
    assert (by_id["new"].member_epoch, by_id["new"].member_type) == (3, 1)
    assert (by_id["new"].client_id, by_id["new"].client_host) == ("client", "/127.0.0.1")
    assert by_id["new"].subscribed_topic_names == ["orders"]
    assert by_id["new"].subscribed_topic_regex == ""


def test_topics_that_are_gone_are_left_out() -> None:
    story = ConsumerStory()
    story.joins("a")

    story.has_topics({})

    (member,) = story.shard.describe_consumer("g").members
    assert member.assignment.topic_partitions == member.target_assignment.topic_partitions == []


def test_the_group_state_follows_from_counts() -> None:
    story = ConsumerStory()
    first = story.joins("a")
    assert story.group.state == "Stable"

    second = story.joins("b")
    assert story.group.state == "Reconciling"
    story.settles(first, second)
    story.leaves(second)
    assert story.group.state == "DeferredAssignments"
    story.leaves(first)

    assert story.group.state == "Empty"
    assert story.shard.describe_consumer("g").members == []
