"""Fetch (key 1), versions 4-18.

Supported: sessions, long polls, isolation levels, leader epochs and divergence, topic ids; records are sent
as file ranges. Not supported: fetches of followers, because a single node has none; remote storage.
v5 log_start_offset; v7 sessions; v9 current_leader_epoch; v12 last_fetched_epoch, diverging_epoch; v13 topic
ids; v16 node_endpoints.
"""

from functools import partial
from typing import Final

from barnabas.base.ids import ZERO_UUID, Uuid
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import Request
from barnabas.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from barnabas.replication.partition import failed
from barnabas.server.cluster.brokers import endpoints_of
from barnabas.server.fetch.sessions import Plan, Wanted
from barnabas.server.fetch.waiting import FetchWait
from barnabas.server.requests.api import Answer, Api, Context

_TOPIC_IDS_FROM: Final = 13
_HINTS_FROM: Final = 16
_ISOLATION_LEVELS: Final = (0, 1)
_NONE: Final = ErrorCode.NONE
_MOVED: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


def handle(ctx: Context, request: Request) -> Answer:
    body: FetchRequest = request.body
    broker = ctx.broker
    if body.isolation_level not in _ISOLATION_LEVELS:
        return refuse(body, request.version, ErrorCode.UNKNOWN_SERVER_ERROR)
    plan = broker.sessions.plan(body, request.version, broker.clock.monotonic_ms())
    if plan.error is not _NONE:
        return FetchResponse(error_code=plan.error)
    respond = partial(_respond, ctx, request.version, plan)
    if _is_replica(body):
        # A cluster has one broker, so no other replica can fetch.
        code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        return respond([(one, failed(one.asked.partition, code)) for one in plan.wanted])
    return FetchWait(broker, body, plan.wanted, respond).start()


def _is_replica(body: FetchRequest) -> bool:
    state = body.replica_state
    return body.replica_id >= 0 or (state is not None and state.replica_id >= 0)


def _respond(
    ctx: Context, version: int, plan: Plan, read: list[tuple[Wanted, PartitionData]]
) -> FetchResponse:
    """Build the response: all partitions or, in an incremental session, the changed ones."""
    if plan.session is not None:
        ctx.broker.sessions.served(plan, read)
        news = [one for one in read if one[0].is_news(one[1])]
        read = news if plan.incremental else read
    topics: list[FetchableTopicResponse] = []
    moved: set[int] = set()
    last: Uuid | str | None = None
    for wanted, data in read:
        if data.error_code in _MOVED and version >= _HINTS_FROM:
            _hint(ctx, wanted, data, moved)
        if wanted.topic != last:
            last = wanted.topic
            topics.append(_topic(wanted.topic, version))
        topics[-1].partitions.append(data)
    response = FetchResponse(session_id=plan.session_id, responses=topics)
    if moved:
        response.node_endpoints = endpoints_of(ctx.broker.image, ctx.listener, moved, NodeEndpoint)
    return response


def _topic(topic: Uuid | str, version: int) -> FetchableTopicResponse:
    if version >= _TOPIC_IDS_FROM:
        assert isinstance(topic, bytes)
        return FetchableTopicResponse(topic_id=Uuid(topic), partitions=[])
    assert isinstance(topic, str)
    return FetchableTopicResponse(topic=topic, topic_id=ZERO_UUID, partitions=[])


def _hint(ctx: Context, wanted: Wanted, data: PartitionData, moved: set[int]) -> None:
    """Add the current leader of the partition. (KIP-951)"""
    image = ctx.broker.image
    topic = (
        image.topics_by_id.get(Uuid(wanted.topic))
        if isinstance(wanted.topic, bytes)
        else image.topics.get(wanted.topic)
    )
    if topic is not None and 0 <= data.partition_index < len(topic.partitions):
        now = topic.partitions[data.partition_index]
        data.current_leader = LeaderIdAndEpoch(leader_id=now.leader, leader_epoch=now.leader_epoch)
        if data.error_code == ErrorCode.FENCED_LEADER_EPOCH or now.leader != ctx.broker.node_id:
            moved.add(now.leader)


def refuse(body: FetchRequest, version: int, code: ErrorCode) -> object:
    if version >= 7:
        return FetchResponse(error_code=code)
    return FetchResponse(
        responses=[
            FetchableTopicResponse(
                topic=topic.topic,
                partitions=[failed(asked.partition, code, looked_at=False) for asked in topic.partitions],
            )
            for topic in body.topics
        ]
    )


API = Api(ApiKey.FETCH, versions=range(4, 19), handle=handle, refuse=refuse, pauses=True)
