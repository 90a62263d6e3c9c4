"""Group consumers whose coordinator is not ready, moves, forgets them, or dies."""

import asyncio
from typing import Any

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client.consumer.errors import NoOffset
from barnabas.client.errors import BrokerUnavailable, ConnectionLost, Refused, UnsupportedByBroker
from barnabas.client.group.errors import CommitFailed, FencedInstance, GroupFailed
from barnabas.client.group.offsets import OffsetAndMetadata
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.sim.world import World
from support.brokers import running
from support.group.mixed_stories import assignment
from support.group.scripts import GroupScript
from support.group.worlds import EAGER, PROTOCOLS, QUICKLY, Told, committed, member, member_of, numbers, write
from support.our_client.consumer_worlds import take, values
from support.our_client.peers import in_world
from support.our_client.scripted_brokers import listening_all
from support.stories import client_of, until

ZERO, ONE = TopicPartition("orders", 0), TopicPartition("orders", 1)
BY_HAND = {"enable_auto_commit": False, **EAGER}
NOT_READY = [
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
]
every_protocol = pytest.mark.parametrize("protocol", PROTOCOLS, ids=["eager", "cooperative", "consumer"])


@pytest.mark.parametrize("key", [ApiKey.FIND_COORDINATOR, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP])
@in_world
async def test_a_coordinator_that_is_not_ready_is_waited_for(world: World, key: ApiKey) -> None:
    script = GroupScript()
    script.no[key] = list(NOT_READY)
    async with listening_all(script.broker()), member(world, **BY_HAND) as consumer:
        await until(lambda: numbers(consumer) == [0, 1])

    assert script.no[key] == []


@in_world
async def test_a_coordinator_that_moves_is_found_where_it_is_now(world: World) -> None:
    script = GroupScript()
    first, second = script.broker(1, of=(1, 2)), script.broker(2, of=(1, 2))
    async with listening_all(first, second), member(world, **BY_HAND) as consumer:
        await until(lambda: numbers(consumer) == [0, 1])
        script.coordinator = 2
        script.no[ApiKey.HEARTBEAT] = [ErrorCode.NOT_COORDINATOR]

        await until(lambda: bool(second.asked_for(ApiKey.HEARTBEAT)))
        await consumer.commit({("orders", 0): 5})

        assert (len(second.asked_for(ApiKey.OFFSET_COMMIT)), len(script.joins)) == (1, 1)


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION])
@in_world
async def test_a_member_that_is_forgotten_has_lost_everything_and_joins_again(
    world: World, code: ErrorCode
) -> None:
    script, said = GroupScript(), Told()
    async with listening_all(script.broker()), member(world, callbacks=said.callbacks, **BY_HAND) as consumer:
        await until(lambda: numbers(consumer) == [0, 1])
        script.no[ApiKey.HEARTBEAT] = [code]

        await until(lambda: len(said.lines) == 3)

    assert said.lines == ["+ 0 1", "! 0 1", "+ 0 1", "- 0 1"]


@in_world
async def test_a_fenced_instance_is_raised_by_reads_and_commits(world: World) -> None:
    script = GroupScript()
    async with (
        listening_all(script.broker()),
        member(world, group_instance_id="s", **BY_HAND) as consumer,
    ):
        await until(lambda: numbers(consumer) == [0, 1])
        script.no[ApiKey.OFFSET_COMMIT] = [ErrorCode.FENCED_INSTANCE_ID]
        with pytest.raises(FencedInstance):
            await consumer.commit({("orders", 0): 5})
        script.no[ApiKey.HEARTBEAT] = [ErrorCode.FENCED_INSTANCE_ID]
        with pytest.raises(FencedInstance):
            await consumer.batch(1)

        assert consumer.assignment == frozenset()
    # What belongs to another one is not given back in its name.
    assert script.leaves == []


@pytest.mark.parametrize("code", NOT_READY)
@in_world
async def test_a_commit_is_tried_again_while_the_coordinator_is_not_ready(
    world: World, code: ErrorCode
) -> None:
    script = GroupScript()
    async with listening_all(script.broker()), member(world, **BY_HAND) as consumer:
        await until(lambda: numbers(consumer) == [0, 1])
        script.no[ApiKey.OFFSET_COMMIT] = [code, code]

        await consumer.commit({ZERO: OffsetAndMetadata(7, "why", 3)})

    assert script.committed[ZERO] == 7
    (one,) = script.commits[-1].topics[0].partitions
    assert (one.committed_metadata, one.committed_leader_epoch) == ("why", 3)


@in_world
async def test_a_commit_during_a_rebalance_is_tried_again_after_it(world: World) -> None:
    script = GroupScript()
    async with listening_all(script.broker()), member(world, **BY_HAND) as consumer:
        await until(lambda: numbers(consumer) == [0, 1])
        script.no[ApiKey.SYNC_GROUP] = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 3
        script.no[ApiKey.OFFSET_COMMIT] = [ErrorCode.REBALANCE_IN_PROGRESS]
        script.no[ApiKey.HEARTBEAT] = [ErrorCode.REBALANCE_IN_PROGRESS]
        await until(lambda: len(script.joins) == 2)

        await consumer.commit({("orders", 1): 9})

        assert script.committed == {ONE: 9}
        assert script.commits[-1].generation_id_or_member_epoch == script.generation


@in_world
async def test_a_commit_for_a_partition_that_went_in_the_rebalance_says_so(world: World) -> None:
    script = GroupScript()
    async with listening_all(script.broker()), member(world, **BY_HAND) as consumer:
        await until(lambda: numbers(consumer) == [0, 1])
        await consumer.subscribe(["nothing"])
        script.no[ApiKey.OFFSET_COMMIT] = [ErrorCode.REBALANCE_IN_PROGRESS]

        with pytest.raises(CommitFailed, match="another member") as failed:
            await consumer.commit({("orders", 1): 9})

        assert (failed.value.tps, script.committed) == ({ONE}, {})


@pytest.mark.parametrize("code", [ErrorCode.ILLEGAL_GENERATION, ErrorCode.REBALANCE_IN_PROGRESS])
@in_world
async def test_a_commit_that_is_refused_without_a_rebalance_fails_at_once(
    world: World, code: ErrorCode
) -> None:
    script = GroupScript()
    async with listening_all(script.broker()), member(world, **BY_HAND) as consumer:
        await until(lambda: numbers(consumer) == [0, 1])
        script.no[ApiKey.OFFSET_COMMIT] = [code]

        with pytest.raises(CommitFailed, match=code.name):
            await consumer.commit({("orders", 1): 9})

    assert len([each for each in script.commits if each.topics]) == 1


@in_world
async def test_a_commit_begun_before_partitions_were_lost_is_dropped(world: World) -> None:
    script, said = GroupScript(), Told()
    async with (
        listening_all(script.broker()),
        member(world, callbacks=said.callbacks, **BY_HAND) as consumer,
    ):
        await until(lambda: numbers(consumer) == [0, 1])
        script.no[ApiKey.OFFSET_COMMIT] = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 10
        script.no[ApiKey.HEARTBEAT] = [ErrorCode.UNKNOWN_MEMBER_ID]

        # Somebody else may have read on from the old commit and committed more.
        with pytest.raises(CommitFailed, match="removed from the group"):
            await consumer.commit({("orders", 0): 5})

        assert said.lines[:3] == ["+ 0 1", "! 0 1", "+ 0 1"]
    assert script.committed == {}


@in_world
async def test_a_commit_that_can_never_be_is_refused_with_the_brokers_code(world: World) -> None:
    script = GroupScript()
    async with listening_all(script.broker()), member_of(world, default_api_timeout_ms=3000) as consumer:
        script.no[ApiKey.OFFSET_COMMIT] = [ErrorCode.OFFSET_METADATA_TOO_LARGE]
        with pytest.raises(Refused, match="OFFSET_METADATA_TOO_LARGE"):
            await consumer.commit({ZERO: OffsetAndMetadata(1, "x" * 5000)})
        script.no[ApiKey.OFFSET_COMMIT] = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 100
        with pytest.raises(Refused, match="COORDINATOR_LOAD_IN_PROGRESS"):
            await consumer.commit({ZERO: 1})
        for offset in (-1, 1 << 63):
            with pytest.raises(ValueError, match=rf"offset {offset} of orders-0 is not between 0 and"):
                await consumer.commit({ZERO: offset})


@in_world
async def test_an_older_commit_that_is_tried_again_does_not_undo_a_newer_one(world: World) -> None:
    script = GroupScript()
    async with listening_all(script.broker()), member_of(world, **BY_HAND) as consumer:
        script.no[ApiKey.OFFSET_COMMIT] = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
        older = asyncio.create_task(consumer.commit({ZERO: 5}))
        await until(lambda: len(script.commits) == 1)

        await consumer.commit({ZERO: 6})
        await older

    assert script.committed == {ZERO: 6}


@in_world
async def test_a_commit_is_not_retried_for_reassigned_partitions(world: World) -> None:
    script = GroupScript()
    async with listening_all(script.broker()), member(world, **BY_HAND) as consumer:
        await until(lambda: numbers(consumer) == [0, 1])
        script.no[ApiKey.OFFSET_COMMIT] = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 1_000
        older = asyncio.create_task(consumer.commit({ZERO: 5, ONE: 6}))
        await until(lambda: bool(script.commits))
        script.given = assignment({"orders": [1]})
        script.no[ApiKey.HEARTBEAT] = [ErrorCode.REBALANCE_IN_PROGRESS]
        await until(lambda: numbers(consumer) == [1])
        script.no[ApiKey.OFFSET_COMMIT].clear()

        with pytest.raises(CommitFailed, match="to another member") as failed:
            await older

    assert (failed.value.tps, script.committed) == ({ZERO}, {})


@in_world
async def test_pending_transactions_are_waited_for_before_a_position_is_known(world: World) -> None:
    script = GroupScript()
    script.committed[ZERO] = 4
    script.no[ApiKey.OFFSET_FETCH] = [ErrorCode.UNSTABLE_OFFSET_COMMIT] * 3
    broker = script.broker()
    async with listening_all(broker), member(world, isolation_level="read_committed", **BY_HAND) as consumer:
        await until(lambda: numbers(consumer) == [0, 1])

        assert [await consumer.position(ZERO), await consumer.position(ONE)] == [4, 0]

    asked = broker.asked_for(ApiKey.OFFSET_FETCH)
    assert [each.require_stable for each in asked] == [True] * 4


@in_world
async def test_an_old_broker_is_spoken_to_in_its_own_words(world: World) -> None:
    script = GroupScript(
        newest={
            ApiKey.FIND_COORDINATOR: 1,
            ApiKey.JOIN_GROUP: 2,
            ApiKey.SYNC_GROUP: 1,
            ApiKey.HEARTBEAT: 1,
            ApiKey.LEAVE_GROUP: 1,
            ApiKey.OFFSET_COMMIT: 3,
            ApiKey.OFFSET_FETCH: 3,
        }
    )
    script.committed[ONE] = 8
    async with listening_all(script.broker()), member(world, **BY_HAND) as consumer:
        await until(lambda: numbers(consumer) == [0, 1])
        assert await consumer.position(ONE) == 8
        await consumer.commit({("orders", 0): 3})

    assert script.committed[ZERO] == 3
    assert [each.member_id for each in script.leaves] == ["me"]


@in_world
async def test_a_broker_without_the_consumer_protocol_is_reported_to_the_reader(world: World) -> None:
    async with listening_all(GroupScript().broker()), member(world, group_protocol="consumer") as consumer:
        with pytest.raises(UnsupportedByBroker, match="CONSUMER_GROUP_HEARTBEAT"):
            await consumer.batch(1)


@in_world
async def test_a_full_group_is_reported_by_every_read(world: World) -> None:
    script = GroupScript()
    script.no[ApiKey.JOIN_GROUP] = [ErrorCode.GROUP_MAX_SIZE_REACHED]
    async with listening_all(script.broker()), member(world, **BY_HAND) as consumer:
        for _ in range(2):
            with pytest.raises(GroupFailed, match="group readers: GROUP_MAX_SIZE_REACHED"):
                await consumer.batch(1)

        await consumer.subscribe(["orders"])

        await until(lambda: numbers(consumer) == [0, 1])


@in_world
async def test_the_error_is_raised_again_after_another_subscribe(world: World) -> None:
    async with listening_all(GroupScript().broker()), member(world, group_protocol="consumer") as consumer:
        for _ in range(2):
            with pytest.raises(UnsupportedByBroker):
                await consumer.batch(1)

            await consumer.subscribe(["orders"])


@in_world
async def test_closing_does_not_wait_long_for_a_coordinator_that_is_not_ready(world: World) -> None:
    script = GroupScript()
    async with listening_all(script.broker()):
        async with member(world, request_timeout_ms=5000, **EAGER) as consumer:
            await until(lambda: numbers(consumer) == [0, 1])
            script.no[ApiKey.OFFSET_COMMIT] = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 1000
            began_s = world.loop.time()

        assert world.loop.time() - began_s < 6


@every_protocol
@in_world
async def test_a_group_continues_after_a_broker_restart(world: World, protocol: dict[str, Any]) -> None:
    said = Told()
    consumer = member_of(world, enable_auto_commit=False, **protocol)
    async with running(world, QUICKLY) as broker, client_of(broker) as client:
        await client.create("orders", partitions=2)
        await write(client, 5)
        await consumer.start()
        await consumer.subscribe(["orders"], **said.callbacks)
        assert len(await take(consumer, 5)) == 5
        await consumer.commit()
    await asyncio.sleep(5)

    async with running(world, QUICKLY) as broker, client_of(broker) as client:
        await write(client, 3, first=5)
        assert values(await take(consumer, 3)) == [b"5", b"6", b"7"]
        await consumer.commit()
        assert await committed(consumer, 0) == [8]
        await consumer.close()


@in_world
async def test_an_unanswered_commit_fails_at_its_deadline(world: World) -> None:
    script = GroupScript()
    consumer = member_of(
        world, default_api_timeout_ms=2000, request_timeout_ms=1000, enable_auto_commit=False
    )
    async with listening_all(script.broker()):
        await consumer.start()
        await consumer.commit({ZERO: 1})
    began_s = world.loop.time()

    with pytest.raises((ConnectionLost, BrokerUnavailable)):
        await consumer.commit({ZERO: 2})

    assert 2 <= world.loop.time() - began_s < 4
    await consumer.close()


@in_world
async def test_without_a_commit_and_a_reset_each_partition_says_so_once(world: World) -> None:
    script = GroupScript()
    async with (
        listening_all(script.broker()),
        member(world, auto_offset_reset="none", **BY_HAND) as consumer,
    ):
        found = set()
        for _ in range(2):
            with pytest.raises(NoOffset) as missing:
                await consumer.batch(1)
            found.add(missing.value.tp)

    assert found == {ZERO, ONE}
