"""CreateTopics (19), versions 2-7, DeleteTopics (20), versions 1-6, CreatePartitions (37), versions 0-3.

Supported: forwarded to the controller, which answers when the change is committed and this broker has applied
it. The broker itself refuses deletion if delete.topic.enable is false, and requests whose timeout has
expired.
CreateTopics: v5 partition counts and settings in the response; v7 topic_id. DeleteTopics: v3
TOPIC_DELETION_DISABLED; v5 error_message; v6 topics by id. CreatePartitions is the same in all versions.
"""

from collections.abc import Awaitable
from typing import Any, Final

from barnabas.controller.refusals import refusal
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import Request
from barnabas.protocol.messages.topics import DeleteTopicsRequest
from barnabas.server.requests.api import Answer, Api, Context
from barnabas.server.requests.slices import Slices

_DELETION_DISABLED_FROM: Final = 3


def pass_on(ctx: Context, request: Request) -> object | Awaitable[object]:
    """Forward to the controller, unless the timeout has expired."""
    if request.body.timeout_ms <= 0:
        return refuse(request.body, request.version, ErrorCode.REQUEST_TIMED_OUT)
    return ctx.broker.controller.call(request.body)


def delete_topics(ctx: Context, request: Request) -> Answer:
    body: DeleteTopicsRequest = request.body
    if not ctx.broker.settings.now.delete_topic_enable:
        is_known = request.version >= _DELETION_DISABLED_FROM
        code = ErrorCode.TOPIC_DELETION_DISABLED if is_known else ErrorCode.INVALID_REQUEST
        return refuse(body, request.version, code)
    return pass_on(ctx, request)


def refuse(body: Any, version: int, code: ErrorCode) -> object:
    return refusal(body, code)


APIS = (
    Api(
        ApiKey.CREATE_TOPICS,
        versions=range(2, 8),
        handle=pass_on,
        refuse=refuse,
        slices=(Slices("topics", together=("name",), is_change=True),),
    ),
    Api(
        ApiKey.DELETE_TOPICS,
        versions=range(1, 7),
        handle=delete_topics,
        refuse=refuse,
        slices=(
            Slices("topics", "responses", together=("name", "topic_id"), is_change=True),
            Slices("topic_names", "responses", is_change=True),
        ),
    ),
    Api(
        ApiKey.CREATE_PARTITIONS,
        versions=range(4),
        handle=pass_on,
        refuse=refuse,
        slices=(Slices("topics", "results", together=("name",), is_change=True),),
    ),
)
