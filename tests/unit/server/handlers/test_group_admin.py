"""DescribeGroups, DeleteGroups and ConsumerGroupDescribe of groups that are on several brokers."""

from typing import Any

import pytest

from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.acls import OF_GROUP
from barnabas.protocol.messages.consumer_groups import ConsumerGroupDescribeRequest
from barnabas.protocol.messages.group_admin import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
)
from barnabas.server.coordination.groups import OFFSETS_TOPIC
from barnabas.server.handlers.group_admin import APIS, CONSUMER_API, DELETE_API
from barnabas.server.requests.api import Api
from support.hosted import Hosted, image_of, partition_image
from support.led_partitions import MemoryPartition
from support.log.managers import on_a_loop

DESCRIBE_API, LIST_API = APIS
# The first of the two partitions is led here.
HERE, ALSO_HERE, ELSEWHERE = "b", "d", "a"
NO_OPERATIONS = -(2**31)


def hosted(*groups: str) -> Hosted:
    """With these groups, empty."""
    made = Hosted(image_of({OFFSETS_TOPIC: [partition_image()] * 2}))
    coordinator = made.services.groups
    coordinator.shards.lead(0, MemoryPartition())
    for group in groups:
        coordinator.shards.hosts[0].shard.classic.new(group)
    return made


async def ask(broker: Hosted, api: Api, body: object, version: int) -> Any:
    return await broker.ask(api, body, version)


@on_a_loop
async def test_each_group_is_described_by_its_own_coordinator() -> None:
    asked = DescribeGroupsRequest(groups=[HERE, ELSEWHERE, ALSO_HERE])

    answer = await ask(hosted(HERE), DESCRIBE_API, asked, 6)

    assert [(one.group_id, one.error_code, one.group_state) for one in answer.groups] == [
        (HERE, ErrorCode.NONE, "Empty"),
        (ELSEWHERE, ErrorCode.NOT_COORDINATOR, ""),
        (ALSO_HERE, ErrorCode.GROUP_ID_NOT_FOUND, "Dead"),
    ]


@pytest.mark.parametrize("asked_for", [True, False])
@on_a_loop
async def test_authorized_operations_are_included_for_existing_groups_on_request(asked_for: bool) -> None:
    asked = DescribeGroupsRequest(groups=[HERE, ALSO_HERE], include_authorized_operations=asked_for)

    answer = await ask(hosted(HERE), DESCRIBE_API, asked, 6)

    there, absent = answer.groups
    assert there.authorized_operations == (OF_GROUP if asked_for else NO_OPERATIONS)
    assert absent.authorized_operations == NO_OPERATIONS


@on_a_loop
async def test_an_empty_consumer_group_id_is_refused() -> None:
    answer = await ask(hosted(), CONSUMER_API, ConsumerGroupDescribeRequest(group_ids=["", ELSEWHERE]), 1)

    assert [(one.group_id, one.error_code) for one in answer.groups] == [
        ("", ErrorCode.INVALID_GROUP_ID),
        (ELSEWHERE, ErrorCode.NOT_COORDINATOR),
    ]


@on_a_loop
async def test_a_duplicate_group_is_deleted_and_answered_once() -> None:
    broker = hosted(HERE, ALSO_HERE)
    asked = DeleteGroupsRequest(groups_names=[HERE, ELSEWHERE, HERE])

    answer = await ask(broker, DELETE_API, asked, 2)

    assert [(one.group_id, one.error_code) for one in answer.results] == [
        (HERE, ErrorCode.NONE),
        (ELSEWHERE, ErrorCode.NOT_COORDINATOR),
    ]
    listed = await ask(broker, LIST_API, ListGroupsRequest(), 5)
    assert [one.group_id for one in listed.groups] == [ALSO_HERE]
