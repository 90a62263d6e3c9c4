"""JoinGroup (key 11), versions 0-9; Heartbeat (12), 0-4; LeaveGroup (13), 0-5; SyncGroup (14), 0-5;
ConsumerGroupHeartbeat (68), 0-1.

Supported: membership of groups with the classic and the consumer (KIP-848) protocol. JoinGroup and SyncGroup
are answered when the rebalance reaches the next phase.
Not supported: streams groups, share groups.
The message schemas describe the versions; coordinators/group decides.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from barnabas.base.re2_work import TooManyPatterns
from barnabas.coordinators.decision.outcome import Caller, Now, Outcome, ReplyTo
from barnabas.coordinators.group.shard import GroupShard
from barnabas.coordinators.runtime.host import ShardHost
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import Request
from barnabas.protocol.messages.classic_groups import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from barnabas.protocol.messages.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from barnabas.server.coordination.calls import RefuseWith, ask_shard, caller_of, has_consumer_protocol
from barnabas.server.requests.api import Answer, Api, Context

# From this version of JoinGroup on the protocol may be null.
_NO_PROTOCOL_FROM: Final = 7


def join(ctx: Context, request: Request) -> Answer:
    refused = partial(refuse_join, request.body, request.version)
    fit = None if request.version >= _NO_PROTOCOL_FROM else _with_a_protocol
    return _ask_group(ctx, request, GroupShard.join, refused, fit=fit, may_take_long=True)


def _with_a_protocol(answer: JoinGroupResponse) -> JoinGroupResponse:
    answer.protocol_name = answer.protocol_name or ""
    return answer


def sync(ctx: Context, request: Request) -> Answer:
    return _ask_group(ctx, request, GroupShard.sync, partial(refuse_sync, request.body, request.version))


def heartbeat(ctx: Context, request: Request) -> Answer:
    return _ask_group(ctx, request, GroupShard.heartbeat, _heartbeat_refused)


def _heartbeat_refused(code: ErrorCode) -> HeartbeatResponse:
    # No error while the coordinator loads: the member's session starts again afterwards.
    if code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        return HeartbeatResponse(error_code=ErrorCode.NONE)
    return HeartbeatResponse(error_code=code)


def leave(ctx: Context, request: Request) -> Answer:
    refused = partial(refuse_leave, request.body, request.version)
    return _ask_group(ctx, request, GroupShard.leave, refused, may_take_long=True)


def consumer_heartbeat(ctx: Context, request: Request) -> Answer:
    if not has_consumer_protocol(ctx):
        return _consumer_refused(ErrorCode.UNSUPPORTED_VERSION)
    if not request.body.group_id:
        return ConsumerGroupHeartbeatResponse(
            error_code=ErrorCode.INVALID_REQUEST, error_message="GroupId can't be empty.", assignment=None
        )
    regex = request.body.subscribed_topic_regex
    if regex and not ctx.broker.groups.is_resolved(regex):
        return _when_resolved(ctx, request)
    return _ask_group(ctx, request, GroupShard.consumer_heartbeat, _consumer_refused, may_take_long=True)


async def _when_resolved(ctx: Context, request: Request) -> object:
    """Resolve the topics of a regular expression off the loop before the heartbeat is processed."""
    try:
        await ctx.broker.groups.resolve(request.body.subscribed_topic_regex)
    except TooManyPatterns:
        return _consumer_refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    await ctx.broker.long_requests.pause()
    return _ask_group(ctx, request, GroupShard.consumer_heartbeat, _consumer_refused)


def _consumer_refused(code: ErrorCode) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=code, assignment=None)


def _ask_group(
    ctx: Context,
    request: Request,
    method: Callable[[GroupShard, Any, Caller, ReplyTo, Now], Outcome],
    refused: RefuseWith,
    *,
    fit: Callable[[Any], object] | None = None,
    may_take_long: bool = False,
) -> Answer:
    """The response of a method of the group's shard."""
    body = request.body
    if not body.group_id:
        return refused(ErrorCode.INVALID_GROUP_ID)
    host = ctx.broker.groups.shards.host_of(body.group_id)
    if may_take_long and isinstance(host, ShardHost) and _takes_long(host.shard, body):
        return _ask_group_after_others(ctx, request, method, refused, fit)
    caller = caller_of(ctx, request)
    return ask_shard(host, refused, lambda shard, to, now: method(shard, body, caller, to, now), fit=fit)


async def _ask_group_after_others(
    ctx: Context,
    request: Request,
    method: Callable[[GroupShard, Any, Caller, ReplyTo, Now], Outcome],
    refused: RefuseWith,
    fit: Callable[[Any], object] | None,
) -> Answer:
    """Yield to other requests first, because a large group takes milliseconds to process."""
    await ctx.broker.long_requests.pause()
    return _ask_group(ctx, request, method, refused, fit=fit)


def _takes_long(shard: GroupShard, body: Any) -> bool:
    """Whether a request to this group may take milliseconds, so that others should be served first."""
    if not isinstance(body, ConsumerGroupHeartbeatRequest):
        return shard.takes_long(body.group_id, 0, is_change=True)
    names, regex = body.subscribed_topic_names, body.subscribed_topic_regex
    is_news = names is not None or regex is not None or body.member_epoch <= 0
    return shard.takes_long(body.group_id, len(names or ()), is_change=is_news)


def refuse_join(body: JoinGroupRequest, version: int, code: ErrorCode) -> JoinGroupResponse:
    protocol = None if version >= _NO_PROTOCOL_FROM else ""
    return JoinGroupResponse(
        error_code=code, protocol_name=protocol, leader="", member_id=body.member_id, members=[]
    )


def refuse_sync(body: SyncGroupRequest, version: int, code: ErrorCode) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=code, assignment=b"")


def refuse_heartbeat(body: HeartbeatRequest, version: int, code: ErrorCode) -> object:
    return HeartbeatResponse(error_code=code)


def refuse_leave(body: LeaveGroupRequest, version: int, code: ErrorCode) -> object:
    return LeaveGroupResponse(error_code=code, members=[])


def refuse_consumer_heartbeat(body: ConsumerGroupHeartbeatRequest, version: int, code: ErrorCode) -> object:
    return _consumer_refused(code)


APIS = (
    Api(
        ApiKey.JOIN_GROUP,
        versions=range(10),
        handle=join,
        refuse=refuse_join,
        long_lists=(("members",),),
    ),
    Api(ApiKey.HEARTBEAT, versions=range(5), handle=heartbeat, refuse=refuse_heartbeat),
    Api(ApiKey.LEAVE_GROUP, versions=range(6), handle=leave, refuse=refuse_leave),
    Api(ApiKey.SYNC_GROUP, versions=range(6), handle=sync, refuse=refuse_sync),
)
CONSUMER_API = Api(
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    versions=range(2),
    handle=consumer_heartbeat,
    refuse=refuse_consumer_heartbeat,
)
