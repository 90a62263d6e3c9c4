"""The admin client's calls about groups: which broker is asked, what is asked again, and what is told.

The brokers are scripted: a good one does not say that it coordinates nothing any more, or that it is old.
"""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client.admin import CommittedOffset, GroupState, GroupType, PartlyRefused
from barnabas.client.admin.coordinators import KEYS_IN_REQUEST_MAX
from barnabas.client.errors import Refused, UnsupportedByBroker
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages import consumer_groups, group_admin
from barnabas.protocol.messages.classic_groups import (
    Coordinator,
    FindCoordinatorResponse,
    LeaveGroupResponse,
    MemberResponse,
)
from barnabas.protocol.messages.consumer_groups import (
    ConsumerGroupDescribeResponse,
    ConsumerGroupDescribeResponseAssignment,
    ConsumerGroupDescribeResponseTopicPartitions,
    Member,
)
from barnabas.protocol.messages.group_admin import (
    DeletableGroupResult,
    DeleteGroupsResponse,
    DescribedGroupMember,
    DescribeGroupsResponse,
    ListedGroup,
    ListGroupsResponse,
)
from barnabas.protocol.messages.group_offsets import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetDeleteResponse,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from barnabas.sim.world import World
from support.our_client.admin_worlds import new_admin
from support.our_client.peers import PORT, in_world
from support.our_client.scripted_brokers import ScriptedBroker, listening_all, metadata_of

ORDERS_0, ORDERS_1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
METADATA, FIND, LIST = ApiKey.METADATA, ApiKey.FIND_COORDINATOR, ApiKey.LIST_GROUPS
NONE, LOADING, MOVED = 0, int(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), int(ErrorCode.NOT_COORDINATOR)
NOT_FOUND = int(ErrorCode.GROUP_ID_NOT_FOUND)


def in_turn(*answers: object) -> Any:
    """One after the other, and the last one for ever; a function is asked."""
    left = list(answers)

    def say(request: Any) -> object:
        answer = left.pop(0) if len(left) > 1 else left[0]
        return answer(request) if callable(answer) else answer

    return say


def found_at(nodes: Callable[[str], int]) -> Callable[[Any], FindCoordinatorResponse]:
    """Who coordinates which group, told as the version asks for it."""

    def say(request: Any) -> FindCoordinatorResponse:
        if not request.coordinator_keys:
            node = nodes(request.key)
            return FindCoordinatorResponse(
                error_code=0, node_id=node, host="127.0.0.1", port=PORT + node - 1, error_message=None
            )
        rows = [
            Coordinator(
                key=key,
                node_id=nodes(key),
                host="127.0.0.1",
                port=PORT + nodes(key) - 1,
                error_code=0,
                error_message="",
            )
            for key in request.coordinator_keys
        ]
        return FindCoordinatorResponse(coordinators=rows)

    return say


def broker(
    says: Mapping[ApiKey, Any],
    *,
    node: int = 1,
    nodes: tuple[int, ...] = (1,),
    finds: Any = None,
    newest: Mapping[ApiKey, int] | None = None,
) -> ScriptedBroker:
    base = {METADATA: metadata_of({"orders": [1, 1]}, brokers=nodes), FIND: finds or found_at(lambda _: 1)}
    return ScriptedBroker(node, says={**base, **says}, newest=newest)


def deleted(codes: Mapping[str, int]) -> Callable[[Any], object]:
    def say(request: Any) -> object:
        return DeleteGroupsResponse(
            results=[
                DeletableGroupResult(group_id=name, error_code=codes.get(name, NONE))
                for name in request.groups_names
            ]
        )

    return say


# Coordinators


@in_world
async def test_each_coordinator_is_asked_for_its_own_groups_in_one_request(world: World) -> None:
    finds = found_at(lambda group: 1 if group < "m" else 2)
    says = {ApiKey.DELETE_GROUPS: deleted({})}
    one = broker(says, nodes=(1, 2), finds=finds)
    two = broker(says, node=2, nodes=(1, 2), finds=finds)

    async with listening_all(one, two), new_admin(world) as admin:
        await admin.delete_groups(["a", "z", "b"])

    asked = [sorted(each.asked_for(ApiKey.DELETE_GROUPS)[0].groups_names) for each in (one, two)]
    assert asked == [["a", "b"], ["z"]]
    assert len(one.asked_for(FIND)) + len(two.asked_for(FIND)) == 1


@in_world
async def test_old_brokers_are_asked_for_one_coordinator_per_request(world: World) -> None:
    old = broker({ApiKey.DELETE_GROUPS: deleted({})}, newest={FIND: 3})

    async with listening_all(old), new_admin(world) as admin:
        await admin.delete_groups(["a", "b"])

    assert [each.key for each in old.asked_for(FIND)] == ["a", "b"]


@in_world
async def test_a_moved_group_is_requested_from_its_new_coordinator(world: World) -> None:
    finds = in_turn(found_at(lambda _: 1), found_at(lambda _: 2))
    one = broker({ApiKey.DELETE_GROUPS: deleted({"g": MOVED})}, nodes=(1, 2), finds=finds)
    two = broker({ApiKey.DELETE_GROUPS: deleted({})}, node=2, nodes=(1, 2), finds=finds)

    async with listening_all(one, two), new_admin(world) as admin:
        await admin.delete_group("g")

    assert len(one.asked_for(ApiKey.DELETE_GROUPS)) == len(two.asked_for(ApiKey.DELETE_GROUPS)) == 1


@in_world
async def test_only_a_loading_coordinator_is_asked_again(world: World) -> None:
    one = broker({ApiKey.DELETE_GROUPS: in_turn(deleted({"a": LOADING}), deleted({}))})

    async with listening_all(one), new_admin(world) as admin:
        await admin.delete_groups(["a", "b"])

    assert [each.groups_names for each in one.asked_for(ApiKey.DELETE_GROUPS)] == [["a", "b"], ["a"]]


@in_world
async def test_a_group_without_a_coordinator_is_given_up_when_the_time_is_over(world: World) -> None:
    unknown = Coordinator(key="g", node_id=-1, host="", port=-1, error_code=15, error_message="wait")
    one = broker(
        {ApiKey.DELETE_GROUPS: deleted({})}, finds=in_turn(FindCoordinatorResponse(coordinators=[unknown]))
    )

    async with listening_all(one), new_admin(world) as admin:
        with pytest.raises(Refused) as caught:
            await admin.delete_group("g", timeout_ms=2000)

    assert caught.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert one.asked_for(ApiKey.DELETE_GROUPS) == []


@in_world
async def test_no_request_names_more_groups_than_the_limit(world: World) -> None:
    one = broker({ApiKey.DELETE_GROUPS: deleted({})})
    groups = [f"g{number}" for number in range(KEYS_IN_REQUEST_MAX + 1)]

    async with listening_all(one), new_admin(world) as admin:
        await admin.delete_groups(groups)

    assert [len(each.groups_names) for each in one.asked_for(ApiKey.DELETE_GROUPS)] == [
        KEYS_IN_REQUEST_MAX,
        1,
    ]
    assert [len(each.coordinator_keys) for each in one.asked_for(FIND)] == [KEYS_IN_REQUEST_MAX, 1]


@in_world
async def test_one_group_that_is_refused_does_not_keep_others_from_being_deleted(world: World) -> None:
    one = broker({ApiKey.DELETE_GROUPS: deleted({"busy": int(ErrorCode.NON_EMPTY_GROUP)})})

    async with listening_all(one), new_admin(world) as admin:
        with pytest.raises(PartlyRefused) as caught:
            await admin.delete_groups(["busy", "idle"])

    assert {name: each.code for name, each in caught.value.refused.items()} == {
        "busy": ErrorCode.NON_EMPTY_GROUP
    }
    assert list(caught.value.done) == ["idle"]


@in_world
async def test_a_group_that_is_gone_after_a_lost_answer_may_be_our_doing(world: World) -> None:
    one = broker({ApiKey.DELETE_GROUPS: in_turn(None, deleted({"g": NOT_FOUND}))})

    async with listening_all(one), new_admin(world) as admin:
        with pytest.raises(Refused) as caught:
            await admin.delete_group("g")

    assert any("may have deleted it" in note for note in caught.value.__notes__)


# List


def listed(*rows: tuple[str, str, str]) -> ListGroupsResponse:
    return ListGroupsResponse(
        error_code=0,
        groups=[
            ListedGroup(group_id=name, protocol_type="consumer", group_state=state, group_type=kind)
            for name, state, kind in rows
        ],
    )


@in_world
async def test_the_groups_of_all_brokers_are_listed_by_name(world: World) -> None:
    one = broker(
        {LIST: in_turn(listed(("z", "Stable", "consumer"), ("b", "Empty", "classic")))}, nodes=(1, 2)
    )
    # The first of its answers is that it is loading.
    loading = ListGroupsResponse(error_code=LOADING)
    two = broker({LIST: in_turn(loading, listed(("a", "Sleeping", "Knitting")))}, node=2, nodes=(1, 2))

    async with listening_all(one, two), new_admin(world) as admin:
        found = await admin.list_groups()

    assert [(each.group, each.state, each.type) for each in found.values()] == [
        ("a", GroupState.UNKNOWN, GroupType.UNKNOWN),
        ("b", GroupState.EMPTY, GroupType.CLASSIC),
        ("z", GroupState.STABLE, GroupType.CONSUMER),
    ]
    assert len(one.asked_for(LIST)) == 1


@in_world
async def test_states_and_types_are_for_the_broker_to_choose_by(world: World) -> None:
    one = broker({LIST: in_turn(listed())})

    async with listening_all(one), new_admin(world) as admin:
        await admin.list_groups(states=[GroupState.EMPTY], types=[GroupType.CONSUMER])

    [asked] = one.asked_for(LIST)
    assert (asked.states_filter, asked.types_filter) == (["Empty"], ["Consumer"])


@in_world
async def test_an_old_broker_has_classic_groups_only_and_cannot_choose_by_state(world: World) -> None:
    old = broker({LIST: in_turn(listed(("a", "", "")))}, newest={LIST: 3})

    async with listening_all(old), new_admin(world) as admin:
        found = await admin.list_groups(types=[GroupType.CLASSIC, GroupType.CONSUMER])
        with pytest.raises(UnsupportedByBroker, match="groups by state"):
            await admin.list_groups(states=[GroupState.EMPTY])
        with pytest.raises(UnsupportedByBroker, match="groups by type"):
            await admin.list_groups(types=[GroupType.CONSUMER])

    assert list(found) == ["a"]
    assert found["a"].state is GroupState.UNKNOWN


# Describe


def new_way(group: str, code: int = NONE, message: str | None = None) -> consumer_groups.DescribedGroup:
    topics = [
        ConsumerGroupDescribeResponseTopicPartitions(
            topic_id=b"i" * 16, topic_name="orders", partitions=[1, 0]
        )
    ]
    member = Member(
        member_id="m",
        member_epoch=4,
        client_id="c",
        client_host="/h",
        subscribed_topic_names=["orders"],
        assignment=ConsumerGroupDescribeResponseAssignment(topic_partitions=topics),
        target_assignment=ConsumerGroupDescribeResponseAssignment(topic_partitions=[]),
        member_type=0,
    )
    return consumer_groups.DescribedGroup(
        error_code=code,
        error_message=message,
        group_id=group,
        group_state="Assigning",
        group_epoch=5,
        assignment_epoch=4,
        assignor_name="uniform",
        members=[member],
    )


def old_way(
    group: str, code: int = NONE, *, kind: str = "consumer", assignment: bytes = b""
) -> group_admin.DescribedGroup:
    member = DescribedGroupMember(
        member_id="m", client_id="c", client_host="/h", member_metadata=b"", member_assignment=assignment
    )
    return group_admin.DescribedGroup(
        error_code=code,
        error_message="from the old way" if code else None,
        group_id=group,
        group_state="Stable",
        protocol_type=kind,
        protocol_data="range",
        members=[member],
    )


def describing(
    new: Mapping[str, consumer_groups.DescribedGroup], old: Mapping[str, group_admin.DescribedGroup]
) -> dict[ApiKey, Any]:
    return {
        ApiKey.CONSUMER_GROUP_DESCRIBE: lambda request: ConsumerGroupDescribeResponse(
            groups=[new[group] for group in request.group_ids]
        ),
        ApiKey.DESCRIBE_GROUPS: lambda request: DescribeGroupsResponse(
            groups=[old[group] for group in request.groups]
        ),
    }


ASSIGNED = bytes.fromhex("0000 00000001 0006") + b"orders" + bytes.fromhex("00000001 00000001 ffffffff")


@in_world
async def test_a_group_unknown_to_consumer_group_describe_uses_describe_groups(world: World) -> None:
    new = {"new": new_way("new"), "old": new_way("old", NOT_FOUND, "Group old is not a consumer group.")}
    one = broker(describing(new, {"old": old_way("old", assignment=ASSIGNED)}))

    async with listening_all(one), new_admin(world) as admin:
        found = await admin.describe_groups(["new", "old"])

    [asked_old] = one.asked_for(ApiKey.DESCRIBE_GROUPS)
    assert asked_old.groups == ["old"]
    fresh, classic = found["new"], found["old"]
    assert (fresh.type, fresh.state, fresh.epoch, fresh.assignment_epoch, fresh.assignor) == (
        GroupType.CONSUMER,
        GroupState.ASSIGNING,
        5,
        4,
        "uniform",
    )
    assert fresh.coordinator.id == 1
    [member] = fresh.members
    assert (member.assignment, member.target, member.upgraded) == ((ORDERS_0, ORDERS_1), (), False)
    assert (classic.type, classic.state, classic.epoch, classic.assignor) == (
        GroupType.CLASSIC,
        GroupState.STABLE,
        None,
        "range",
    )
    assert classic.members[0].assignment == (ORDERS_1,)


@in_world
async def test_a_group_unknown_to_both_apis_fails_with_the_newer_error(
    world: World,
) -> None:
    new = {"g": new_way("g", NOT_FOUND, "Group g not found.")}
    one = broker(describing(new, {"g": old_way("g", NOT_FOUND)}))

    async with listening_all(one), new_admin(world) as admin:
        with pytest.raises(Refused) as caught:
            await admin.describe_group("g")

    assert (caught.value.code, caught.value.message) == (ErrorCode.GROUP_ID_NOT_FOUND, "Group g not found.")


@in_world
async def test_a_broker_without_the_new_way_is_asked_in_the_old_one(world: World) -> None:
    says = {
        key: say for key, say in describing({}, {"g": old_way("g")}).items() if key is ApiKey.DESCRIBE_GROUPS
    }
    old = broker(says, newest={ApiKey.DESCRIBE_GROUPS: 2})

    async with listening_all(old), new_admin(world) as admin:
        found = await admin.describe_group("g")
        with pytest.raises(UnsupportedByBroker, match="operations of a group"):
            await admin.describe_group("g", operations=True)

    assert (found.state, found.members[0].id, found.operations) == (GroupState.STABLE, "m", None)


@pytest.mark.parametrize(
    ("kind", "assignment", "is_of_consumers"),
    [("connect", ASSIGNED, False), ("consumer", b"\x00\x00\x00", True), ("consumer", b"", True)],
)
@in_world
async def test_an_undecodable_assignment_is_none(
    world: World, kind: str, assignment: bytes, is_of_consumers: bool
) -> None:
    one = broker(
        describing({"g": new_way("g", NOT_FOUND)}, {"g": old_way("g", kind=kind, assignment=assignment)})
    )

    async with listening_all(one), new_admin(world) as admin:
        found = await admin.describe_group("g")

    assert found.members[0].assignment == ()
    assert found.is_of_consumers is is_of_consumers


@in_world
async def test_a_group_is_described_after_its_coordinator_has_loaded_it(world: World) -> None:
    new = {"g": new_way("g", NOT_FOUND)}
    says = describing(new, {})
    says[ApiKey.DESCRIBE_GROUPS] = in_turn(
        DescribeGroupsResponse(groups=[old_way("g", LOADING)]), DescribeGroupsResponse(groups=[old_way("g")])
    )

    async with listening_all(broker(says)), new_admin(world) as admin:
        found = await admin.describe_group("g")

    assert found.state is GroupState.STABLE


# Offsets


def fetched(group: str, *rows: tuple[int, int, int], code: int = NONE) -> OffsetFetchResponseGroup:
    """(partition, offset, error) of the topic orders."""
    partitions = [
        OffsetFetchResponsePartitions(
            partition_index=number,
            committed_offset=offset,
            committed_leader_epoch=3,
            metadata="m",
            error_code=error,
        )
        for number, offset, error in rows
    ]
    topics = [OffsetFetchResponseTopics(name="orders", partitions=partitions)]
    return OffsetFetchResponseGroup(group_id=group, topics=topics, error_code=code)


@in_world
async def test_offsets_of_several_groups_are_fetched_at_once_by_topic_name(world: World) -> None:
    answer = OffsetFetchResponse(groups=[fetched("a", (0, 5, 0)), fetched("b", (1, -1, 0))])
    one = broker({ApiKey.OFFSET_FETCH: in_turn(answer)})

    async with listening_all(one), new_admin(world) as admin:
        found = await admin.list_group_offsets_of({"a": None, "b": [("orders", 1)]})

    [asked] = [each for each in one.asked if each.api.key is ApiKey.OFFSET_FETCH]
    assert asked.version == 9
    assert [(each.group_id, each.topics is None) for each in asked.body.groups] == [("a", True), ("b", False)]
    assert found == {
        "a": {ORDERS_0: CommittedOffset(offset=5, leader_epoch=3, metadata="m")},
        "b": {ORDERS_1: None},
    }


@in_world
async def test_offsets_are_fetched_per_group_from_an_older_broker(world: World) -> None:
    row = OffsetFetchResponsePartition(
        partition_index=0, committed_offset=5, committed_leader_epoch=-1, metadata=None, error_code=0
    )
    answer = OffsetFetchResponse(
        topics=[OffsetFetchResponseTopic(name="orders", partitions=[row])], error_code=0
    )
    old = broker({ApiKey.OFFSET_FETCH: in_turn(answer)}, newest={ApiKey.OFFSET_FETCH: 6})

    async with listening_all(old), new_admin(world) as admin:
        found = await admin.list_group_offsets_of(["a", "b"])
        with pytest.raises(UnsupportedByBroker, match="require_stable"):
            await admin.list_group_offsets("a", require_stable=True)

    assert [each.group_id for each in old.asked_for(ApiKey.OFFSET_FETCH)] == ["a", "b"]
    assert found["a"] == found["b"] == {ORDERS_0: CommittedOffset(offset=5)}


@in_world
async def test_offsets_that_a_transaction_may_change_are_waited_for(world: World) -> None:
    unstable = OffsetFetchResponse(groups=[fetched("g", (0, -1, int(ErrorCode.UNSTABLE_OFFSET_COMMIT)))])
    one = broker(
        {ApiKey.OFFSET_FETCH: in_turn(unstable, OffsetFetchResponse(groups=[fetched("g", (0, 5, 0))]))}
    )

    async with listening_all(one), new_admin(world) as admin:
        found = await admin.list_group_offsets("g", [ORDERS_0], require_stable=True)

    assert [each.require_stable for each in one.asked_for(ApiKey.OFFSET_FETCH)] == [True, True]
    assert found[ORDERS_0] == CommittedOffset(offset=5, leader_epoch=3, metadata="m")


def committed(*rows: tuple[int, int]) -> OffsetCommitResponse:
    partitions = [
        OffsetCommitResponsePartition(partition_index=number, error_code=code) for number, code in rows
    ]
    return OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name="orders", partitions=partitions)])


@in_world
async def test_offsets_are_committed_without_a_member_and_failed_ones_are_retried(world: World) -> None:
    rebalancing = int(ErrorCode.REBALANCE_IN_PROGRESS)
    one = broker(
        {ApiKey.OFFSET_COMMIT: in_turn(committed((0, NONE), (1, rebalancing)), committed((1, NONE)))}
    )

    async with listening_all(one), new_admin(world) as admin:
        await admin.alter_group_offsets(
            "g", {ORDERS_0: 7, ORDERS_1: CommittedOffset(offset=8, leader_epoch=2, metadata="why")}
        )

    first, second = one.asked_for(ApiKey.OFFSET_COMMIT)
    assert (first.group_id, first.member_id, first.generation_id_or_member_epoch) == ("g", "", -1)
    rows = [
        (row.committed_offset, row.committed_leader_epoch, row.committed_metadata)
        for row in first.topics[0].partitions
    ]
    assert rows == [(7, -1, ""), (8, 2, "why")]
    assert [row.partition_index for row in second.topics[0].partitions] == [1]


@in_world
async def test_an_invalid_offset_is_not_sent(world: World) -> None:
    one = broker({})

    async with listening_all(one), new_admin(world) as admin:
        for offset in (-1, 1 << 63):
            with pytest.raises(ValueError, match=f"offset {offset} of orders-1"):
                await admin.alter_group_offsets("g", {ORDERS_0: 7, ORDERS_1: offset})

    assert one.asked_for(ApiKey.OFFSET_COMMIT) == []


@in_world
async def test_missing_partitions_are_rejected_by_name_at_once(world: World) -> None:
    unknown = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    one = broker({ApiKey.OFFSET_COMMIT: in_turn(committed((0, NONE), (1, unknown)))})

    async with listening_all(one), new_admin(world) as admin:
        with pytest.raises(PartlyRefused) as caught:
            await admin.alter_group_offsets("g", {ORDERS_0: 7, ORDERS_1: 8})

    assert list(caught.value.refused) == ["orders-1"]
    assert list(caught.value.done) == [ORDERS_0]
    assert len(one.asked_for(ApiKey.OFFSET_COMMIT)) == 1


@in_world
async def test_an_error_of_the_whole_group_is_reported_once(world: World) -> None:
    one = broker({ApiKey.OFFSET_DELETE: in_turn(OffsetDeleteResponse(error_code=NOT_FOUND))})

    async with listening_all(one), new_admin(world) as admin:
        with pytest.raises(Refused) as caught:
            await admin.delete_group_offsets("g", [ORDERS_0, ORDERS_1])

    assert (caught.value.code, caught.value.about) == (ErrorCode.GROUP_ID_NOT_FOUND, "group g")


# Members


@in_world
async def test_members_are_removed_by_member_id_or_instance_id(world: World) -> None:
    unknown = int(ErrorCode.UNKNOWN_MEMBER_ID)
    rows = [
        MemberResponse(member_id="m-1", group_instance_id=None, error_code=NONE),
        MemberResponse(member_id="m-2", group_instance_id="i-2", error_code=unknown),
    ]
    one = broker({ApiKey.LEAVE_GROUP: in_turn(LeaveGroupResponse(error_code=0, members=rows))})

    async with listening_all(one), new_admin(world) as admin:
        with pytest.raises(PartlyRefused) as caught:
            await admin.remove_group_members("g", members=["m-1"], instances=["i-2"], reason="moved")

    [asked] = one.asked_for(ApiKey.LEAVE_GROUP)
    assert [(each.member_id, each.group_instance_id, each.reason) for each in asked.members] == [
        ("m-1", None, "moved"),
        ("", "i-2", "moved"),
    ]
    codes = {name: each.code for name, each in caught.value.refused.items()}
    assert codes == {"i-2": ErrorCode.UNKNOWN_MEMBER_ID}


@in_world
async def test_an_old_broker_removes_one_member_at_a_time_and_no_instances(world: World) -> None:
    old = broker(
        {ApiKey.LEAVE_GROUP: in_turn(LeaveGroupResponse(error_code=0))}, newest={ApiKey.LEAVE_GROUP: 2}
    )

    async with listening_all(old), new_admin(world) as admin:
        await admin.remove_group_members("g", members=["m-1", "m-2"])
        with pytest.raises(UnsupportedByBroker, match="static members"):
            await admin.remove_group_members("g", instances=["i"])

    assert [each.member_id for each in old.asked_for(ApiKey.LEAVE_GROUP)] == ["m-1", "m-2"]
