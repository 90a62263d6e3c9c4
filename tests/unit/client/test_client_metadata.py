"""Client metadata: which of several leaders is accepted."""

from dataclasses import replace

import pytest

from barnabas.base.errors import Malformed
from barnabas.base.ids import TopicPartition, Uuid
from barnabas.client.metadata import NO_LEADER, Metadata, Node
from barnabas.client.topics_in_use import TopicsInUse
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.cluster import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from barnabas.protocol.messages.produce import NodeEndpoint

ORDERS_0 = TopicPartition("orders", 0)
FIRST_ID, SECOND_ID = Uuid(b"1" * 16), Uuid(b"2" * 16)


def row(number: int, leader: int = 1, epoch: int = 0, error: int = 0) -> MetadataResponsePartition:
    return MetadataResponsePartition(
        error_code=error,
        partition_index=number,
        leader_id=leader,
        leader_epoch=epoch,
        replica_nodes=[1, 2],
        isr_nodes=[1],
        offline_replicas=[2],
    )


def answer(*rows: MetadataResponsePartition, error: int = 0, topic_id: Uuid = FIRST_ID) -> MetadataResponse:
    topic = MetadataResponseTopic(
        error_code=error, name="orders", topic_id=topic_id, is_internal=False, partitions=list(rows)
    )
    brokers = [MetadataResponseBroker(node_id=each, host=f"h{each}", port=9092, rack=None) for each in (1, 2)]
    return MetadataResponse(brokers=brokers, cluster_id="c", controller_id=2, topics=[topic])


def test_a_response_has_nodes_topics_and_leaders() -> None:
    known = Metadata().with_answer(answer(row(1, leader=2), row(0)))

    assert known.nodes == {1: Node(1, "h1", 9092), 2: Node(2, "h2", 9092)}
    assert (known.cluster_id, known.controller_id) == ("c", 2)
    assert [each.leader for each in known.topics["orders"].partitions] == [1, 2]
    assert known.names == {FIRST_ID: "orders"}


def test_an_older_leader_epoch_is_ignored() -> None:
    known = Metadata().with_answer(answer(row(0, leader=2, epoch=5)))

    known = known.with_answer(answer(row(0, leader=1, epoch=4)))

    assert known.topics["orders"].partitions[0].leader == 2


def test_any_epoch_of_a_recreated_topic_is_accepted() -> None:
    known = Metadata().with_answer(answer(row(0, leader=2, epoch=5)))

    known = known.with_answer(answer(row(0, leader=1, epoch=0), topic_id=SECOND_ID))

    assert known.topics["orders"].partitions[0].leader == 1
    assert known.names == {SECOND_ID: "orders"}


def test_a_topic_that_is_gone_is_forgotten_and_the_reason_kept() -> None:
    known = Metadata().with_answer(answer(row(0)))

    known = known.with_answer(answer(error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))

    assert known.topics == {}
    assert known.errors == {"orders": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_a_topic_whose_leaders_are_being_elected_is_known() -> None:
    waiting = row(1, leader=NO_LEADER, error=ErrorCode.LEADER_NOT_AVAILABLE)

    topic = Metadata().with_answer(answer(row(0), waiting)).topics["orders"]

    assert topic.leader_of(0) is not None
    assert topic.leader_of(1) is None
    assert topic.leader_of(2) is None


def test_partition_indexes_with_gaps_are_malformed() -> None:
    with pytest.raises(Malformed, match="consecutive from 0"):
        Metadata().with_answer(answer(row(0), row(2)))


def test_a_hint_of_a_newer_leader_is_taken_with_its_address() -> None:
    known = Metadata().with_answer(answer(row(0)))

    news = known.with_leader(ORDERS_0, 3, 1, [NodeEndpoint(node_id=3, host="h3", port=1, rack=None)])

    assert news is not None
    assert news.nodes[3] == Node(3, "h3", 1)
    assert news.topics["orders"].partitions[0].leader == 3
    assert known.topics["orders"].partitions[0].leader == 1


@pytest.mark.parametrize(
    ("tp", "leader", "epoch"),
    [
        (ORDERS_0, 2, 0),  # not newer
        (ORDERS_0, -1, 1),  # nobody
        (ORDERS_0, 9, 1),  # nobody knows where
        (TopicPartition("orders", 7), 2, 1),
        (TopicPartition("other", 0), 2, 1),
    ],
)
def test_an_outdated_leader_hint_is_ignored(tp: TopicPartition, leader: int, epoch: int) -> None:
    assert Metadata().with_answer(answer(row(0))).with_leader(tp, leader, epoch, []) is None


def test_unused_topics_are_dropped() -> None:
    known = Metadata().with_answer(answer(row(0)))

    assert known.without(["orders"]) == replace(known, topics={}, names={})


def test_a_forgotten_leader_is_valid_again_after_a_later_refresh() -> None:
    topics_in_use = TopicsInUse()
    before = topics_in_use.start_refresh()
    topics_in_use.forget(ORDERS_0, 4)

    topics_in_use.refreshed(frozenset({"orders"}), before)
    assert topics_in_use.is_forgotten(ORDERS_0, 4)

    topics_in_use.refreshed(frozenset({"orders"}), topics_in_use.start_refresh())
    assert not topics_in_use.is_forgotten(ORDERS_0, 4)


def test_a_leader_newer_than_the_forgotten_one_is_valid() -> None:
    topics_in_use = TopicsInUse()
    topics_in_use.forget(ORDERS_0, 4)

    assert topics_in_use.is_forgotten(ORDERS_0, 3)
    assert not topics_in_use.is_forgotten(ORDERS_0, 5)


def test_idle_topics_are_dropped_with_their_invalidated_leaders() -> None:
    topics_in_use = TopicsInUse()
    topics_in_use.touch("orders", 1.0)
    topics_in_use.touch("other", 5.0)
    topics_in_use.forget(ORDERS_0, 4)

    assert topics_in_use.drop_idle(2.0) == ["orders"]
    assert list(topics_in_use.names) == ["other"]
    assert not topics_in_use.has_forgotten
