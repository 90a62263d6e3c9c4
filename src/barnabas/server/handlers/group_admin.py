"""DescribeGroups (key 15), versions 0-6; ListGroups (16), 0-5; DeleteGroups (42), 0-2;
ConsumerGroupDescribe (69), 0-1.

Supported: groups of both protocols in all shards that this broker leads. Each named group is looked up in its
shard.
DescribeGroups v3 authorized_operations; v4 group_instance_id; v6 GROUP_ID_NOT_FOUND. ListGroups v4 states; v5
types. ConsumerGroupDescribe v1 member_type.
"""

from collections.abc import Iterable
from functools import partial
from typing import Final

from barnabas.coordinators.decision.outcome import Now, Outcome, ReplyTo, answered
from barnabas.coordinators.group.shard import GroupShard, groups_of
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import Request
from barnabas.protocol.messages.acls import OF_GROUP
from barnabas.protocol.messages.consumer_groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from barnabas.protocol.messages.consumer_groups import DescribedGroup as DescribedConsumerGroup
from barnabas.protocol.messages.group_admin import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from barnabas.server.coordination.calls import ask_shard, has_consumer_protocol
from barnabas.server.requests.api import Answer, Api, Context
from barnabas.server.requests.combining import gathered
from barnabas.server.requests.slices import AT_ONCE, Slices

# Small slices, because groups may have many members.
_DESCRIBED_AT_ONCE: Final = 50


def describe(ctx: Context, request: Request) -> Answer:
    body: DescribeGroupsRequest = request.body
    shards = ctx.broker.groups.shards

    def one(group_id: str) -> Answer:
        def act(shard: GroupShard, to: ReplyTo, now: Now) -> Outcome:
            described = shard.describe_classic(group_id, request.version)
            if body.include_authorized_operations and described.error_code == ErrorCode.NONE:
                described.authorized_operations = OF_GROUP
            return answered(to, described)

        return ask_shard(shards.host_of(group_id), partial(_not_described, group_id), act)

    return gathered(
        [one(group_id) for group_id in body.groups], lambda groups: DescribeGroupsResponse(groups=groups)
    )


def _not_described(group_id: str, code: ErrorCode) -> DescribedGroup:
    return DescribedGroup(
        error_code=code, group_id=group_id, group_state="", protocol_type="", protocol_data="", members=[]
    )


def describe_consumer(ctx: Context, request: Request) -> Answer:
    body: ConsumerGroupDescribeRequest = request.body
    if not has_consumer_protocol(ctx):
        return refuse_describe_consumer(body, request.version, ErrorCode.UNSUPPORTED_VERSION)
    shards = ctx.broker.groups.shards

    def one(group_id: str) -> Answer:
        refused = partial(_consumer_not_described, group_id)
        if not group_id:
            return refused(ErrorCode.INVALID_GROUP_ID)

        def act(shard: GroupShard, to: ReplyTo, now: Now) -> Outcome:
            described = shard.describe_consumer(group_id)
            if body.include_authorized_operations and described.error_code == ErrorCode.NONE:
                described.authorized_operations = OF_GROUP
            return answered(to, described)

        return ask_shard(shards.host_of(group_id), refused, act)

    return gathered(
        [one(group_id) for group_id in body.group_ids],
        lambda groups: ConsumerGroupDescribeResponse(groups=groups),
    )


def _consumer_not_described(group_id: str, code: ErrorCode) -> DescribedConsumerGroup:
    return DescribedConsumerGroup(
        error_code=code,
        group_id=group_id,
        group_state="",
        group_epoch=0,
        assignment_epoch=0,
        assignor_name="",
        members=[],
    )


def list_groups(ctx: Context, request: Request) -> Answer:
    body: ListGroupsRequest = request.body
    hosts = ctx.broker.groups.shards.active_hosts()
    if isinstance(hosts, ErrorCode):
        return refuse_list(body, request.version, hosts)
    shards = [host.shard for host in hosts]
    listed = groups_of(shards, body.states_filter, body.types_filter)
    if sum(map(len, shards)) <= AT_ONCE:
        return ListGroupsResponse(groups=[one for one in listed if one is not None])
    return _list_many(ctx, listed)


async def _list_many(ctx: Context, listed: Iterable[ListedGroup | None]) -> ListGroupsResponse:
    found = await ctx.broker.long_requests.collect(listed)
    return ListGroupsResponse(groups=[one for one in found if one is not None])


def delete(ctx: Context, request: Request) -> Answer:
    body: DeleteGroupsRequest = request.body
    shards = ctx.broker.groups.shards

    def one(group_id: str) -> Answer:
        def act(shard: GroupShard, to: ReplyTo, now: Now) -> Outcome:
            return shard.delete([group_id], to)

        def refused(code: ErrorCode) -> list[DeletableGroupResult]:
            return [DeletableGroupResult(group_id=group_id, error_code=code)]

        return ask_shard(shards.host_of(group_id), refused, act)

    # A duplicate name is deleted once and has one result.
    names = list(dict.fromkeys(body.groups_names))
    return gathered(
        [one(group_id) for group_id in names],
        lambda results: DeleteGroupsResponse(results=[one for some in results for one in some]),
    )


def refuse_describe(body: DescribeGroupsRequest, version: int, code: ErrorCode) -> object:
    return DescribeGroupsResponse(groups=[_not_described(group_id, code) for group_id in body.groups])


def refuse_list(body: ListGroupsRequest, version: int, code: ErrorCode) -> object:
    return ListGroupsResponse(error_code=code, groups=[])


def refuse_delete(body: DeleteGroupsRequest, version: int, code: ErrorCode) -> object:
    return DeleteGroupsResponse(
        results=[DeletableGroupResult(group_id=group_id, error_code=code) for group_id in body.groups_names]
    )


def refuse_describe_consumer(body: ConsumerGroupDescribeRequest, version: int, code: ErrorCode) -> object:
    return ConsumerGroupDescribeResponse(
        groups=[_consumer_not_described(group_id, code) for group_id in body.group_ids]
    )


APIS = (
    Api(
        ApiKey.DESCRIBE_GROUPS,
        versions=range(7),
        handle=describe,
        refuse=refuse_describe,
        slices=(Slices("groups", at_once=_DESCRIBED_AT_ONCE),),
        long_lists=(("groups", "members"),),
    ),
    Api(
        ApiKey.LIST_GROUPS,
        versions=range(6),
        handle=list_groups,
        refuse=refuse_list,
        long_lists=(("groups",),),
    ),
)
DELETE_API = Api(
    ApiKey.DELETE_GROUPS,
    versions=range(3),
    handle=delete,
    refuse=refuse_delete,
    slices=(Slices("groups_names", "results", is_set=True, is_change=True),),
)
CONSUMER_API = Api(
    ApiKey.CONSUMER_GROUP_DESCRIBE,
    versions=range(2),
    handle=describe_consumer,
    refuse=refuse_describe_consumer,
    slices=(Slices("group_ids", "groups", at_once=_DESCRIBED_AT_ONCE),),
    long_lists=(("groups", "members"),),
)
