"""Fetch: what is answered without a look into a log."""

import pytest

from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from barnabas.records.builder import build_batch
from barnabas.server.handlers.fetch import API
from support.hosted import one_topic, topic_id
from support.log.managers import on_a_loop

OUT_OF_RANGE = [-2, -1, 1, 2**31 - 1]


@pytest.mark.parametrize("index", OUT_OF_RANGE)
@on_a_loop
async def test_a_follower_fetch_of_a_missing_partition_is_rejected(index: int) -> None:
    broker = await one_topic()
    topic = FetchTopic(topic_id=topic_id("orders"), partitions=[FetchPartition(partition=index)])
    body = FetchRequest(
        replica_state=ReplicaState(replica_id=3), session_id=0, session_epoch=-1, topics=[topic]
    )

    answer = await broker.ask(API, body, 16)

    [answered] = answer.responses[0].partitions
    assert (answered.partition_index, answered.error_code) == (index, ErrorCode.NOT_LEADER_OR_FOLLOWER)


@on_a_loop
async def test_a_session_in_a_version_without_divergence_gets_a_supported_error() -> None:
    broker = await one_topic()
    broker.log("orders").append_as_leader(build_batch([(0, b"k", b"v", ())]), leader_epoch=0, now_ms=0)
    broker.settle()
    beyond = FetchPartition(partition=0, fetch_offset=5, last_fetched_epoch=0, partition_max_bytes=1000)
    topic = FetchTopic(topic="orders", partitions=[beyond])
    opened = await broker.ask(API, FetchRequest(session_epoch=0, max_bytes=1000, topics=[topic]), 12)
    assert opened.responses[0].partitions[0].diverging_epoch is not None

    again = FetchRequest(session_id=opened.session_id, session_epoch=1, max_bytes=1000)
    answer = await broker.ask(API, again, 11)

    [answered] = answer.responses[0].partitions
    assert answered.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
