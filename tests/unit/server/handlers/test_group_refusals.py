"""Refusals by a broker that is not the group's coordinator, or still loading, in every version."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.classic_groups import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from barnabas.protocol.messages.consumer_groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
)
from barnabas.protocol.messages.group_admin import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
)
from barnabas.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
)
from barnabas.protocol.schema.json import to_json
from barnabas.server.coordination.groups import OFFSETS_TOPIC
from barnabas.server.handlers.table import APIS
from support.hosted import Hosted, image_of, partition_image, topic_id
from support.led_partitions import MemoryPartition

IMAGE = image_of({OFFSETS_TOPIC: [partition_image()], "orders": [partition_image()]})
ROWS = {row.key: row for row in APIS}


def commit(version: int) -> OffsetCommitRequest:
    one = OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")
    topic = OffsetCommitRequestTopic(name="orders", topic_id=topic_id("orders"), partitions=[one])
    return OffsetCommitRequest(group_id="g", topics=[topic])


def fetch(version: int) -> OffsetFetchRequest:
    if version >= 8:
        return OffsetFetchRequest(topics=[], groups=[OffsetFetchRequestGroup(group_id="g", topics=None)])
    topic = OffsetFetchRequestTopic(name="orders", partition_indexes=[0])
    return OffsetFetchRequest(group_id="g", topics=[topic])


OF_ONE_GROUP: dict[ApiKey, Callable[[int], object]] = {
    ApiKey.OFFSET_COMMIT: commit,
    ApiKey.OFFSET_FETCH: fetch,
    ApiKey.JOIN_GROUP: lambda _: JoinGroupRequest(group_id="g", session_timeout_ms=10_000, protocols=[]),
    ApiKey.HEARTBEAT: lambda _: HeartbeatRequest(group_id="g"),
    ApiKey.LEAVE_GROUP: lambda _: LeaveGroupRequest(group_id="g"),
    ApiKey.SYNC_GROUP: lambda _: SyncGroupRequest(group_id="g", assignments=[]),
    ApiKey.DESCRIBE_GROUPS: lambda _: DescribeGroupsRequest(groups=["g"]),
    ApiKey.DELETE_GROUPS: lambda _: DeleteGroupsRequest(groups_names=["g"]),
    ApiKey.OFFSET_DELETE: lambda _: OffsetDeleteRequest(group_id="g", topics=[]),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: lambda _: ConsumerGroupHeartbeatRequest(group_id="g", member_id="m"),
    ApiKey.CONSUMER_GROUP_DESCRIBE: lambda _: ConsumerGroupDescribeRequest(group_ids=["g"]),
}
EVERY_VERSION = [(key, version) for key in OF_ONE_GROUP for version in ROWS[key].versions]
IDS = [f"{key.name}-v{version}" for key, version in EVERY_VERSION]


def ask(key: ApiKey, version: int, body: object, prepare: Callable[[Hosted], None]) -> Any:
    async def told() -> Any:
        hosted = Hosted(IMAGE)
        prepare(hosted)
        return await hosted.ask(ROWS[key], body, version)

    return asyncio.run(told())


def elsewhere(hosted: Hosted) -> None:
    """The metadata says that there is a partition, and it is not led here."""


def loading(hosted: Hosted) -> None:
    partition = MemoryPartition()
    partition.end_offset = 1
    hosted.services.groups.shards.lead(0, partition)


def stopping(hosted: Hosted) -> None:
    hosted.services.groups.close()


def codes(answer: object, version: int) -> set[int]:
    """Every error code in it, but for those that say that all is well."""
    return set(_codes(to_json(answer, version))) - {ErrorCode.NONE}


def _codes(plain: Any) -> Iterator[int]:
    if isinstance(plain, dict):
        for name, value in plain.items():
            if name == "errorCode":
                yield value
            else:
                yield from _codes(value)
    elif isinstance(plain, list):
        for item in plain:
            yield from _codes(item)


@pytest.mark.parametrize(("key", "version"), EVERY_VERSION, ids=IDS)
def test_the_wrong_broker_answers_not_coordinator(key: ApiKey, version: int) -> None:
    answer = ask(key, version, OF_ONE_GROUP[key](version), elsewhere)

    assert codes(answer, version) == {ErrorCode.NOT_COORDINATOR}


@pytest.mark.parametrize(("key", "version"), EVERY_VERSION, ids=IDS)
def test_requests_during_loading_get_load_in_progress(key: ApiKey, version: int) -> None:
    answer = ask(key, version, OF_ONE_GROUP[key](version), loading)

    # A member's session begins when its group is loaded, so its heartbeat is as good as heard.
    expected = set() if key is ApiKey.HEARTBEAT else {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
    assert codes(answer, version) == expected


@pytest.mark.parametrize(("key", "version"), EVERY_VERSION, ids=IDS)
def test_a_broker_that_stops_coordinates_nothing(key: ApiKey, version: int) -> None:
    answer = ask(key, version, OF_ONE_GROUP[key](version), stopping)

    assert codes(answer, version) == {ErrorCode.COORDINATOR_NOT_AVAILABLE}


@pytest.mark.parametrize("version", ROWS[ApiKey.LIST_GROUPS].versions)
def test_groups_are_listed_when_all_that_are_here_are_loaded(version: int) -> None:
    assert codes(ask(ApiKey.LIST_GROUPS, version, ListGroupsRequest(), elsewhere), version) == set()
    assert codes(ask(ApiKey.LIST_GROUPS, version, ListGroupsRequest(), loading), version) == {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    }


@pytest.mark.parametrize(("version", "expected"), [(0, ""), (6, ""), (7, None), (9, None)])
def test_a_refused_join_has_no_protocol_where_it_may_have_none(version: int, expected: str | None) -> None:
    answer = ask(ApiKey.JOIN_GROUP, version, JoinGroupRequest(member_id="m", protocols=[]), elsewhere)

    assert (answer.error_code, answer.protocol_name, answer.member_id) == (
        ErrorCode.INVALID_GROUP_ID,
        expected,
        "m",
    )


def test_old_versions_report_a_group_error_per_partition() -> None:
    by_partition = ask(ApiKey.OFFSET_FETCH, 1, fetch(1), elsewhere)
    of_all = ask(ApiKey.OFFSET_FETCH, 7, fetch(7), elsewhere)
    of_group = ask(ApiKey.OFFSET_FETCH, 8, fetch(8), elsewhere)

    (partition,) = by_partition.topics[0].partitions
    assert (partition.error_code, partition.committed_offset) == (ErrorCode.NOT_COORDINATOR, -1)
    assert (of_all.error_code, of_all.topics) == (ErrorCode.NOT_COORDINATOR, [])
    assert [(one.error_code, one.topics) for one in of_group.groups] == [(ErrorCode.NOT_COORDINATOR, [])]
