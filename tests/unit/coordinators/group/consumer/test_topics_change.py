"""Topics that are made, grow and go while a group reads them."""

from support.group.consumer_stories import ConsumerStory


def test_partitions_that_are_added_are_assigned() -> None:
    story = ConsumerStory(topics={"orders": 2})
    member = story.joins("a")

    story.has_topics({"orders": 4})
    story.beats(member)

    assert member.partitions() == {0, 1, 2, 3}
    assert member.epoch == 3


def test_a_topic_that_does_not_exist_yet_is_assigned_when_created() -> None:
    story = ConsumerStory(topics={})
    member = story.joins("a")
    assert member.partitions() == set()

    story.has_topics({"orders": 2})
    story.beats(member)

    assert member.partitions() == {0, 1}


def test_a_topic_that_is_deleted_is_taken_away() -> None:
    story = ConsumerStory(topics={"orders": 2, "payments": 2})
    member = story.joins("a", topics=("orders", "payments"))

    story.has_topics({"orders": 2})
    story.settles_after_topics(member)

    assert member.partitions("payments") == set()
    assert member.partitions("orders") == {0, 1}


def test_unsubscribed_topics_do_not_affect_a_group() -> None:
    story = ConsumerStory(topics={"orders": 2, "payments": 2})
    member = story.joins("a")
    story.beats(member)

    story.has_topics({"orders": 2, "payments": 9})
    assert story.group.is_fresh
    story.has_topics({"orders": 3, "payments": 9})

    assert not story.group.is_fresh


def test_a_loaded_group_checks_its_topics_with_the_first_heartbeat() -> None:
    story = ConsumerStory(topics={"orders": 2})
    member = story.joins("a")
    story.has_topics({"orders": 4})

    after = story.replayed()
    after.beats(member)

    assert member.partitions() == {0, 1, 2, 3}


def test_a_group_that_was_loaded_stays_in_its_epoch_if_its_topics_are_the_same() -> None:
    story = ConsumerStory()
    member = story.joins("a")

    after = story.replayed()
    after.beats(member)

    assert after.group.epoch == 2
    assert len(after.stage.records) == len(story.stage.records)
