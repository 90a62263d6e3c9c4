"""ElectLeaders (key 43), versions 0-2.

Supported: forwarded to the controller, unless the timeout has already expired.
v1 election_type, error_code; v0 only elects preferred leaders and only has errors of partitions.
"""

from barnabas.controller.refusals import refusal
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import Request
from barnabas.protocol.messages.replicas import ElectLeadersRequest, ElectLeadersResponse
from barnabas.server.requests.api import Answer, Api, Context
from barnabas.server.requests.slices import Slices


def handle(ctx: Context, request: Request) -> Answer:
    body: ElectLeadersRequest = request.body
    if body.topic_partitions == []:
        return ElectLeadersResponse()
    if body.timeout_ms <= 0:
        return refuse(body, request.version, ErrorCode.REQUEST_TIMED_OUT)
    return _elect(ctx, body, request.version)


async def _elect(ctx: Context, body: ElectLeadersRequest, version: int) -> object:
    return _spoken(await ctx.broker.controller.call(body), version)


def _spoken(answer: object, version: int) -> ElectLeadersResponse:
    """Drop the fields of the response that the version does not have."""
    assert isinstance(answer, ElectLeadersResponse), f"unexpected response: {answer!r}"
    if version == 0:
        answer.error_code = ErrorCode.NONE
    return answer


def refuse(body: ElectLeadersRequest, version: int, code: ErrorCode) -> object:
    return _spoken(refusal(body, code), version)


API = Api(
    ApiKey.ELECT_LEADERS,
    versions=range(3),
    handle=handle,
    refuse=refuse,
    slices=(
        Slices(
            ("topic_partitions", "partitions"),
            ("replica_election_results", "partition_result"),
            same=("topic",),
            is_change=True,
        ),
    ),
)
