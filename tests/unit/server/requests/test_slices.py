"""Requests are split into slices, and the answers of slices joined: nothing is lost, doubled or moved."""

import random

import pytest

from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.group_offsets import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from barnabas.protocol.messages.offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.messages.topics import CreatableTopic, CreateTopicsRequest
from barnabas.protocol.messages.transactions import (
    WritableTxnMarker,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from barnabas.server.handlers import txn_markers
from barnabas.server.requests.slices import Slices, weight

pytestmark = pytest.mark.kernel


def asked(*counts: int) -> ListOffsetsRequest:
    """A request for topics with so many partitions each."""
    return ListOffsetsRequest(
        replica_id=-1,
        isolation_level=1,
        topics=[
            ListOffsetsTopic(
                name=f"t{number}",
                partitions=[
                    ListOffsetsPartition(partition_index=index, timestamp=-1) for index in range(count)
                ],
            )
            for number, count in enumerate(counts)
        ],
    )


def partitions_of(body: ListOffsetsRequest) -> list[tuple[str, int]]:
    return [(topic.name, one.partition_index) for topic in body.topics for one in topic.partitions]


@pytest.mark.parametrize(
    ("counts", "sizes"),
    [
        ((1, 1, 1), [3]),
        ((5,), [5]),
        # A topic counts as an item, too.
        ((4, 4, 4), [8, 4]),
        ((2, 2, 2, 2), [6, 2]),
        ((30,), [9, 9, 9, 3]),
        ((3, 12, 1), [3, 9, 4]),
        ((0, 0, 0), [0]),
    ],
)
def test_slices_are_about_as_large_as_allowed(counts: tuple[int, ...], sizes: list[int]) -> None:
    slices = Slices(("topics", "partitions"), at_once=10)

    bodies = list(slices.split(asked(*counts)))

    assert [len(partitions_of(body)) for body in bodies] == sizes
    assert all(weight(body.topics, ("partitions",)) <= 10 for body in bodies)
    assert all(body.isolation_level == 1 for body in bodies)


@pytest.mark.parametrize("seed", range(20))
def test_answers_of_slices_are_joined_to_the_answer_of_the_whole(seed: int) -> None:
    rng = random.Random(seed)
    whole = asked(*(rng.choice((0, 1, 3, 40)) for _ in range(rng.randint(1, 20))))
    slices = Slices(("topics", "partitions"), at_once=rng.randint(2, 15))
    joined: list[ListOffsetsTopicResponse] = []

    for body in slices.split(whole):
        answers = [
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    ListOffsetsPartitionResponse(partition_index=one.partition_index)
                    for one in topic.partitions
                ],
            )
            for topic in body.topics
        ]
        joined = slices.join(joined, answers)

    assert [topic.name for topic in joined] == [topic.name for topic in whole.topics]
    found = [(topic.name, one.partition_index) for topic in joined for one in topic.partitions]
    assert found == partitions_of(whole)


def test_three_levels_are_split_at_the_innermost() -> None:
    slices = Slices(
        ("groups", "topics", "partition_indexes"),
        ("groups", "topics", "partitions"),
        at_once=10,
        same=("group_id",),
    )
    topics = [
        OffsetFetchRequestTopics(name=f"t{number}", partition_indexes=list(range(25))) for number in (0, 1)
    ]
    every = OffsetFetchRequestGroup(group_id="all", topics=None)
    whole = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=topics), every])
    joined: list[OffsetFetchResponseGroup] = []

    for body in slices.split(whole):
        answers = [
            OffsetFetchResponseGroup(
                group_id=group.group_id,
                topics=[
                    OffsetFetchResponseTopics(
                        name=topic.name,
                        partitions=[
                            OffsetFetchResponsePartitions(
                                partition_index=index, committed_offset=0, metadata=""
                            )
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in group.topics or ()
                ],
            )
            for group in body.groups
        ]
        joined = slices.join(joined, answers)

    assert [group.group_id for group in joined] == ["g", "all"]
    assert [(topic.name, len(topic.partitions)) for topic in joined[0].topics] == [("t0", 25), ("t1", 25)]


def test_answers_about_the_markers_of_one_producer_are_joined() -> None:
    [slices] = txn_markers.API.slices
    topic = WritableTxnMarkerTopic(name="t", partition_indexes=list(range(1200)))
    whole = WriteTxnMarkersRequest(markers=[WritableTxnMarker(producer_id=7, topics=[topic])])
    joined: list[WritableTxnMarkerResult] = []

    for body in slices.split(whole):
        joined = slices.join(joined, txn_markers.refuse(body, 1, ErrorCode.NOT_LEADER_OR_FOLLOWER).markers)

    [marker] = joined
    [answered] = marker.topics
    assert [one.partition_index for one in answered.partitions] == list(range(1200))


def test_items_that_may_be_duplicates_stay_together() -> None:
    slices = Slices("topics", at_once=10, together=("name",))
    names = [f"t{number % 15}" for number in range(30)]

    bodies = list(slices.split(CreateTopicsRequest(topics=[CreatableTopic(name=name) for name in names])))

    found = [[topic.name for topic in body.topics] for body in bodies]
    assert sorted(name for some in found for name in some) == sorted(names)
    assert all(some.count(name) == 2 for some in found for name in some)


def test_a_slice_of_a_produce_keeps_the_fields_of_the_whole() -> None:
    topic = TopicProduceData(
        name="t", partition_data=[PartitionProduceData(index=index, records=b"x") for index in range(50)]
    )
    whole = ProduceRequest(transactional_id="id", acks=-1, timeout_ms=7, topic_data=[topic])
    slices = Slices(("topic_data", "partition_data"), at_once=20, is_hot=True)

    assert slices.is_long(whole)
    bodies = list(slices.split(whole))

    assert [(body.transactional_id, body.acks, body.timeout_ms) for body in bodies] == [("id", -1, 7)] * 3
    indexes = [one.index for body in bodies for topic in body.topic_data for one in topic.partition_data]
    assert indexes == list(range(50))


def test_a_request_without_the_list_is_not_long() -> None:
    slices = Slices(("groups", "topics", "partition_indexes"), at_once=1, same=("group_id",))

    assert not slices.is_long(OffsetFetchRequest(group_id="g", topics=None))
    assert not slices.is_long(CreateTopicsRequest(topics=[]))
