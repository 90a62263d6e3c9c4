"""Metadata (key 3), versions 0-13.

Supported: brokers with their addresses on the client's listener; all topics, topics by name or by id;
creation of topics requested by name, if settings and client allow it. The first response reports such a topic
as unknown. Not supported: creation of internal topics, which only coordinators create.
v0 an empty list means all topics, offline replicas are omitted; v1 null means all topics, controller_id,
rack, is_internal; v2 cluster_id; v4 allow_auto_topic_creation; v5 offline_replicas; v6 LISTENER_NOT_FOUND; v7
leader_epoch; v8 authorized operations; v10 topic ids in responses; v11 no cluster operations; v12 topic ids
in requests; v13 error_code.

controller_id is the id of some live broker, because brokers forward requests to the controller.
"""

from collections.abc import Iterable
from itertools import islice
from typing import Any, Final, TypeAlias

from barnabas.base.ids import ZERO_UUID, Uuid
from barnabas.controller.topic_names import topic_name_error
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import Request
from barnabas.protocol.messages.acls import NOT_ASKED, OF_CLUSTER, OF_TOPIC
from barnabas.protocol.messages.cluster import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
)
from barnabas.server.cluster.brokers import alive_brokers, endpoints_of, some_controller
from barnabas.server.requests.api import Answer, Api, Context
from barnabas.server.requests.slices import AT_ONCE
from barnabas.server.services import Services
from barnabas.server.topic_rows import INTERNAL_TOPICS, View

_TOPIC_IDS_FROM: Final = 12

# The rows of existing topics and of unknown ones.
_Rows: TypeAlias = tuple[list[MetadataResponseTopic], list[MetadataResponseTopic]]


def handle(ctx: Context, request: Request) -> Answer:
    body: MetadataRequest = request.body
    asked = body.topics
    if asked is None or (request.version == 0 and not asked):
        asked = None
    else:
        wrong = _what_is_wrong(asked, request.version)
        if wrong is not None:
            return refuse(body, request.version, wrong)
    broker = ctx.broker
    image = broker.image
    view = broker.topic_rows.view(image, ctx.listener, request.version)
    if (view.missing if asked is None else len(asked)) > AT_ONCE:
        return _answer_long(ctx, request, asked)
    topics = view.all() if asked is None else _chosen(broker, view, body, asked)
    if body.include_topic_authorized_operations:
        topics = list(map(_with_operations, topics))
    return _answer(ctx, body, topics)


async def _answer_long(
    ctx: Context, request: Request, asked: list[MetadataRequestTopic] | None
) -> MetadataResponse:
    """Build a large response in slices. Its rows are those of the last slice's image, or older."""
    broker, body = ctx.broker, request.body
    turns = broker.long_requests

    def view() -> View:
        return broker.topic_rows.view(broker.image, ctx.listener, request.version)

    async def answer(topics: list[MetadataResponseTopic]) -> MetadataResponse:
        if body.include_topic_authorized_operations:
            topics = await turns.collect(map(_with_operations, topics))
        return _answer(ctx, body, topics)

    if asked is None:
        await turns.run(view().fill())
        return await answer(view().all())
    by_id = any(topic.topic_id != ZERO_UUID for topic in asked)
    # Each topic is answered once, even if it is requested in two slices.
    wanted: dict[Any, None] = dict.fromkeys(
        topic.topic_id if by_id else topic.name
        for topic in asked
        if (topic.topic_id != ZERO_UUID if by_id else topic.name is not None)
    )
    known: list[MetadataResponseTopic] = []
    unknown: list[MetadataResponseTopic] = []
    keys = iter(wanted)
    while piece := list(islice(keys, AT_ONCE)):
        rows = _of_ids(view(), piece) if by_id else _of_names(broker, view(), body, piece)
        known += rows[0]
        unknown += rows[1]
        await turns.pause()
    return await answer([*unknown, *known] if by_id else [*known, *unknown])


def _answer(ctx: Context, body: MetadataRequest, topics: list[MetadataResponseTopic]) -> MetadataResponse:
    broker = ctx.broker
    image = broker.image
    alive = alive_brokers(image)
    return MetadataResponse(
        brokers=endpoints_of(image, ctx.listener, alive, MetadataResponseBroker),
        cluster_id=broker.cluster_id,
        controller_id=some_controller(alive, broker.rng),
        topics=topics,
        cluster_authorized_operations=OF_CLUSTER if body.include_cluster_authorized_operations else NOT_ASKED,
    )


def _what_is_wrong(asked: list[MetadataRequestTopic], version: int) -> ErrorCode | None:
    """The error that fails the whole request, if any."""
    by_id = any(topic.topic_id != ZERO_UUID for topic in asked)
    is_nameless = any(topic.name is None for topic in asked)
    if version < _TOPIC_IDS_FROM:
        return ErrorCode.INVALID_REQUEST if by_id or is_nameless else None
    # Kafka's error code for it.
    return ErrorCode.UNKNOWN_SERVER_ERROR if is_nameless and not by_id else None


def _chosen(
    broker: Services, view: View, body: MetadataRequest, asked: list[MetadataRequestTopic]
) -> list[MetadataResponseTopic]:
    """The requested topics, each once. If any is requested by id, names are ignored."""
    ids = dict.fromkeys(topic.topic_id for topic in asked if topic.topic_id != ZERO_UUID)
    if ids:
        known, unknown = _of_ids(view, ids)
        return unknown + known
    names = dict.fromkeys(topic.name for topic in asked if topic.name is not None)
    known, unknown = _of_names(broker, view, body, names)
    return known + unknown


def _of_ids(view: View, ids: Iterable[Uuid]) -> _Rows:
    known, unknown = [], []
    for topic_id in ids:
        topic = view.image.topics_by_id.get(topic_id)
        if topic is not None:
            known.append(view.row(topic))
        else:
            code = ErrorCode.UNKNOWN_TOPIC_ID
            unknown.append(MetadataResponseTopic(error_code=code, name=None, topic_id=topic_id))
    return known, unknown


def _of_names(broker: Services, view: View, body: MetadataRequest, names: Iterable[str]) -> _Rows:
    known, unknown = [], []
    for name in names:
        topic = view.image.topics.get(name)
        if topic is not None:
            known.append(view.row(topic))
        else:
            unknown.append(_unknown(name))
    if unknown and body.allow_auto_topic_creation and broker.settings.now.auto_create_topics_enable:
        _create(broker, unknown)
    return known, unknown


def _unknown(name: str) -> MetadataResponseTopic:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if topic_name_error(name) is not None:
        code = ErrorCode.INVALID_TOPIC_EXCEPTION
    return MetadataResponseTopic(error_code=code, name=name, is_internal=name in INTERNAL_TOPICS)


def _create(broker: Services, unknown: list[MetadataResponseTopic]) -> None:
    broker.auto_topics.create(
        (
            topic.name
            for topic in unknown
            if topic.name is not None and topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        ),
        settings=broker.settings.now,
        ask=broker.controller.call,
        tasks=broker.tasks,
    )


def _with_operations(row: MetadataResponseTopic) -> MetadataResponseTopic:
    """Return a copy with the authorized operations. Rows are shared by responses."""
    return MetadataResponseTopic(
        error_code=row.error_code,
        name=row.name,
        topic_id=row.topic_id,
        is_internal=row.is_internal,
        partitions=row.partitions,
        # A topic without a name is unknown.
        topic_authorized_operations=NOT_ASKED if row.name is None else OF_TOPIC,
    )


def refuse(body: MetadataRequest, version: int, code: ErrorCode) -> object:
    return MetadataResponse(
        topics=[
            MetadataResponseTopic(error_code=code, name=topic.name or "", topic_id=topic.topic_id)
            for topic in body.topics or ()
        ],
        error_code=code,
    )


API = Api(
    ApiKey.METADATA,
    versions=range(14),
    handle=handle,
    refuse=refuse,
    pauses=True,
    long_lists=(("topics", "partitions"),),
)
