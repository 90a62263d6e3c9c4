"""Fetch: what is answered without a look into a log."""

import pytest

from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from barnabas.server.handlers.fetch import API
from support.hosted import one_topic, topic_id
from support.managers import on_a_loop

OUT_OF_RANGE = [-2, -1, 1, 2**31 - 1]


@pytest.mark.parametrize("index", OUT_OF_RANGE)
@on_a_loop
async def test_a_follower_that_asks_for_a_partition_that_does_not_exist_is_refused(index: int) -> None:
    broker = await one_topic()
    topic = FetchTopic(topic_id=topic_id("orders"), partitions=[FetchPartition(partition=index)])
    body = FetchRequest(
        replica_state=ReplicaState(replica_id=3), session_id=0, session_epoch=-1, topics=[topic]
    )

    answer = await broker.ask(API, body, 16)

    [answered] = answer.responses[0].partitions
    assert (answered.partition_index, answered.error_code) == (index, ErrorCode.NOT_LEADER_OR_FOLLOWER)
