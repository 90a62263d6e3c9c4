"""Topics that are deleted, and sometimes recreated, while a stream runs: the driver's plans, no Spark."""

import pytest

from barnabas.client.blocking import Admin
from barnabas.client.errors import UnknownTopic
from barnabas.spark.source.ranges import DataLoss
from support.spark.planning import Topics, stream


@pytest.fixture
def topics(address: str) -> Topics:
    return Topics(address)


each_choice = pytest.mark.parametrize("kind", ["subscribe", "assign", "subscribePattern"])


@each_choice
def test_a_stream_continues_with_its_other_topics(address: str, topics: Topics, kind: str) -> None:
    topics.make("a", "b", records=5)
    with stream(address, **topics.choice(kind, "a", "b")) as query:
        assert len(query.trigger()) == 2
        topics.delete("a")
        topics.send("b", 3)

        assert query.trigger() == [(topics.name("b"), 0, 5, 8)]
        topics.send("b", 1)
        assert query.trigger() == [(topics.name("b"), 0, 8, 9)]
        assert query.trigger() == []


@each_choice
@pytest.mark.parametrize("restarted", [False, True], ids=["running", "restarted"])
@pytest.mark.parametrize("records", [3, 9], ids=["shorter", "longer"])
def test_a_recreated_topic_is_read_from_its_beginning(
    address: str, topics: Topics, kind: str, restarted: bool, records: int
) -> None:
    topics.make("a", "b", records=5)
    with stream(address, **topics.choice(kind, "a", "b")) as query:
        query.trigger()
        topics.delete("a")
        assert query.trigger() == []
        if restarted:
            query.start_again()
        assert query.trigger() == []
        topics.make("a", records=records)

        assert query.trigger() == [(topics.name("a"), 0, 0, records)]
        topics.send("a", 1)
        assert query.trigger() == [(topics.name("a"), 0, records, records + 1)]


@pytest.mark.parametrize(("before", "after"), [(3, 1), (1, 3)], ids=["fewer", "more"])
def test_a_recreated_topic_may_have_another_number_of_partitions(
    address: str, topics: Topics, before: int, after: int
) -> None:
    topics.make("a", records=5, partitions=before)
    with stream(address, **topics.choice("subscribe", "a")) as query:
        query.trigger()
        topics.delete("a")
        assert query.trigger() == []
        topics.make("a", records=7, partitions=after)

        assert query.trigger() == [(topics.name("a"), number, 0, 7) for number in range(after)]
        assert query.trigger() == []


def test_a_stream_waits_for_assigned_partitions_that_are_missing(address: str, topics: Topics) -> None:
    topics.make("a", records=5, partitions=2)
    with stream(address, **topics.choice("assign", "a", partitions=2)) as query:
        query.trigger()
        topics.delete("a")
        topics.make("a", records=7)
        assert query.trigger() == [(topics.name("a"), 0, 0, 7)]

        with Admin(bootstrap_servers=address) as admin:
            admin.create_partitions(topics.name("a"), 2)
        topics.send("a", 1, partitions=2)

        assert query.trigger() == [(topics.name("a"), 0, 7, 8), (topics.name("a"), 1, 0, 1)]


def test_a_stream_survives_the_deletion_of_all_its_topics(address: str, topics: Topics) -> None:
    topics.make("a", "b", records=5)
    with stream(address, **topics.choice("subscribe", "a", "b")) as query:
        query.trigger()
        topics.delete("a", "b")
        assert query.trigger() == []
        assert query.trigger() == []
        topics.make("a", "b", records=2)

        assert query.trigger() == [(topics.name("a"), 0, 0, 2), (topics.name("b"), 0, 0, 2)]


def test_the_loss_of_a_topic_is_logged_once(
    address: str, topics: Topics, caplog: pytest.LogCaptureFixture
) -> None:
    topics.make("a", "b", records=5)
    with stream(address, **topics.choice("subscribe", "a", "b")) as query:
        query.trigger()
        topics.delete("a")
        for _ in range(3):
            topics.send("b", 1)
            query.trigger()

    lost = [one.getMessage() for one in caplog.records if one.getMessage().startswith("records lost")]
    assert lost == [f"records lost: {topics.name('a')}-0 no longer exists; the query was at offset 5"]


def test_another_process_replans_a_batch_with_a_deleted_topic_identically(
    address: str, topics: Topics
) -> None:
    topics.make("a", "b", records=5)
    with stream(address, **topics.choice("subscribe", "a", "b")) as query:
        query.trigger()
        before = query.at
        topics.delete("a")
        topics.send("b", 2)
        planned = query.trigger()
        assert before is not None
        assert query.at is not None
        query.start_again()

        again = [(*one.value[0], *one.value[1:]) for one in query.reader.partitions(before, query.at)]

        assert again == planned == [(topics.name("b"), 0, 5, 7)]


@each_choice
def test_a_deleted_topic_is_data_loss_and_named(address: str, topics: Topics, kind: str) -> None:
    topics.make("a", "b", records=5)
    with stream(address, failOnDataLoss="true", **topics.choice(kind, "a", "b")) as query:
        query.trigger()
        topics.delete("a")

        with pytest.raises(
            DataLoss, match=rf"{topics.name('a')}-0 no longer exists; the query was at offset 5"
        ):
            query.trigger()


@pytest.mark.parametrize("kind", ["subscribe", "assign"])
def test_a_topic_that_never_existed_is_an_error(address: str, topics: Topics, kind: str) -> None:
    topics.make("a", records=5)
    told = f"{topics.name('c')}(-0)?: UNKNOWN_TOPIC_OR_PARTITION: no broker at {address} knows it"
    with stream(address, **topics.choice(kind, "a", "c")) as query:
        with pytest.raises(UnknownTopic, match=told):
            query.trigger()

        # The same holds for a topic that is new to a restarted query.
        query.at = {topics.name("a"): {"0": 5}}
        with pytest.raises(UnknownTopic, match=told):
            query.trigger()


def test_available_now_ends_without_a_deleted_topic(address: str, topics: Topics) -> None:
    topics.make("a", "b", records=5)
    with stream(address, **topics.choice("subscribe", "a", "b")) as query:
        query.trigger()
        query.start_again()
        topics.delete("a")
        topics.send("b", 2)
        query.reader.prepareForTriggerAvailableNow()

        assert query.trigger() == [(topics.name("b"), 0, 5, 7)]
        assert query.trigger() == []
        query.start_again()
        topics.make("a", records=9)
        query.reader.prepareForTriggerAvailableNow()
        assert query.trigger() == [(topics.name("a"), 0, 0, 9)]
