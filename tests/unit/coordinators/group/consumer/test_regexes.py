"""Subscriptions by regular expression, and topics that come and go."""

from barnabas.coordinators.group.consumer.patterns import TopicPatterns
from support.group.consumer_stories import Consumer, ConsumerStory, image_of

TOPICS = {"orders": 2, "orders-eu": 2, "payments": 2}


def test_an_expression_matches_whole_names() -> None:
    image = image_of({"orders": 1, "orders-eu": 1, "my-orders": 1})
    patterns = TopicPatterns()

    def matching(regex: str) -> frozenset[str]:
        found = patterns.topics_of(regex, image)
        assert found is not None
        return found.topics

    assert matching("orders") == {"orders"}
    assert matching("orders.*") == {"orders", "orders-eu"}
    assert matching("(?i)ORDERS") == {"orders"}


def test_a_member_gets_the_partitions_of_all_topics_that_match() -> None:
    story = ConsumerStory(topics=TOPICS)

    member = story.joins("a", topics=None, regex="orders.*")

    assert member.partitions("orders") == member.partitions("orders-eu") == {0, 1}
    assert member.partitions("payments") == set()
    assert story.group.is_subscribed_to("orders-eu")


def test_internal_topics_are_matched_like_any_other() -> None:
    story = ConsumerStory(topics={"__consumer_offsets": 1, "orders": 1})

    member = story.joins("a", topics=None, regex=".*")

    assert member.partitions("__consumer_offsets") == {0}


def test_a_resolved_expression_is_written_with_the_metadata_version() -> None:
    story = ConsumerStory(topics=TOPICS)

    story.joins("a", topics=None, regex="orders.*")

    assert story.kinds()[:3] == ["MemberMetadata", "RegularExpression", "Metadata"]
    _, value = story.written()[1]
    assert value.topics == ["orders", "orders-eu"]
    assert (value.version, value.timestamp) == (1, story.stage.now.ms)


def test_names_and_an_expression_can_be_combined() -> None:
    story = ConsumerStory(topics=TOPICS)

    member = story.joins("a", topics=("payments",), regex="orders")

    assert member.partitions("orders") == member.partitions("payments") == {0, 1}


def test_a_topic_created_later_is_matched() -> None:
    story = ConsumerStory(topics=TOPICS)
    member = story.joins("a", topics=None, regex="orders.*")
    story.waits(11_000, member)

    story.has_topics({**TOPICS, "orders-us": 3})
    story.beats(member)

    assert member.partitions("orders-us") == {0, 1, 2}
    assert member.epoch == 3


def test_expressions_are_not_refreshed_too_soon() -> None:
    story = ConsumerStory(topics=TOPICS)
    member = story.joins("a", topics=None, regex="orders.*")
    story.waits(10_000, member)

    story.has_topics({**TOPICS, "orders-us": 3})
    story.beats(member)
    assert member.partitions("orders-us") == set()
    story.stage.pass_time(1)
    story.beats(member)

    assert member.partitions("orders-us") == {0, 1, 2}


def test_an_altered_topic_does_not_refresh_expressions() -> None:
    story = ConsumerStory(topics=TOPICS)
    member = story.joins("a", topics=None, regex="orders.*")
    story.waits(11_000, member)
    before = len(story.stage.records)

    story.has_topics({**TOPICS, "payments": 5})
    story.beats(member)

    assert story.stage.records[before:] == []


def test_expressions_are_refreshed_after_the_interval() -> None:
    story = ConsumerStory(topics=TOPICS)
    member = story.joins("a", topics=None, regex="orders.*")
    story.waits(story.settings.regex_refresh_interval_ms, member)
    assert story.kinds().count("RegularExpression") == 1

    story.waits(1_000, member)

    assert story.kinds().count("RegularExpression") == 2
    # Nothing is different, so nobody moves.
    assert story.group.epoch == 2


def test_an_unused_expression_is_deleted() -> None:
    story = ConsumerStory(topics=TOPICS)
    member = story.joins("a", topics=None, regex="orders.*")
    before = len(story.stage.records)

    member.takes(story.asks(member, subscribed_topic_regex="pay.*", topic_partitions=member.says()))
    story.settles(member)

    assert story.kinds(before)[:4] == [
        "MemberMetadata",
        "RegularExpression-",
        "RegularExpression",
        "Metadata",
    ]
    assert member.partitions("payments") == {0, 1}
    assert member.partitions("orders") == set()
    assert list(story.group.subscriptions.resolved) == ["pay.*"]


def test_an_expression_stays_while_another_member_uses_it() -> None:
    story = ConsumerStory(topics=TOPICS)
    first, second = story.is_stable_with("a", "b", topics=None, regex="orders.*")

    story.leaves(first)
    assert list(story.group.subscriptions.resolved) == ["orders.*"]
    story.leaves(second)

    assert story.group.subscriptions.resolved == {}
    assert not story.group.is_subscribed_to("orders")


def test_a_member_without_its_expression_reads_only_its_names() -> None:
    story = ConsumerStory(topics=TOPICS)
    member = story.joins("a", topics=("payments",), regex="orders.*")

    member.takes(story.asks(member, subscribed_topic_regex="", topic_partitions=member.says()))
    story.settles(member)

    assert member.partitions("orders") == set()
    assert member.partitions("payments") == {0, 1}


def test_a_second_member_reuses_a_resolved_expression() -> None:
    story = ConsumerStory(topics=TOPICS)
    story.is_stable_with("a", "b", topics=None, regex="orders.*")

    assert story.kinds().count("RegularExpression") == 1


def test_members_with_different_expressions_share_common_topics() -> None:
    story = ConsumerStory(topics=TOPICS)
    orders = Consumer("a", topics=None, regex="orders.*")
    everything = Consumer("b", topics=None, regex=".*")

    story.is_stable_with(orders, everything)

    held = [member.partitions(topic) for topic in TOPICS for member in (orders, everything)]
    assert sum(len(one) for one in held) == 6
    assert everything.partitions("payments") == {0, 1}


def test_a_topic_is_new_only_once() -> None:
    story = ConsumerStory(topics=TOPICS)
    member = story.joins("a", topics=None, regex="orders.*")
    story.waits(11_000, member)
    story.has_topics({**TOPICS, "new": 1})
    story.waits(13_000, member)
    before = len(story.stage.records)

    story.has_topics({**TOPICS, "new": 2})
    story.beats(member)

    assert story.stage.records[before:] == []
