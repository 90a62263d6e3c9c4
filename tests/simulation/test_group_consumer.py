"""Group consumers and the broker that ships, in virtual time: sharing, callbacks, coming and going."""

import asyncio
import re
from typing import Any

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client.consumer.consumer import Consumer
from barnabas.client.consumer.errors import NoOffset
from barnabas.client.errors import ClientError
from barnabas.client.group.errors import (
    AssignedOtherwise,
    CallbackFailed,
    CommitFailed,
    FencedInstance,
    GroupFailed,
    InCallback,
    NoGroup,
)
from barnabas.server.broker import Broker
from barnabas.sim.world import World
from support.brokers import running
from support.group.worlds import (
    CONSUMER,
    COOPERATIVE,
    EAGER,
    PROTOCOLS,
    QUICKLY,
    Told,
    committed,
    member,
    member_of,
    numbers,
    write,
)
from support.our_client.consumer_worlds import consumer_of, take, values
from support.our_client.peers import in_world
from support.stories import Client, client_of, until

every_protocol = pytest.mark.parametrize("protocol", PROTOCOLS, ids=["eager", "cooperative", "consumer"])


def story(told: Any) -> Any:
    """A test with a broker, one client of it, and the topic orders of four partitions."""

    async def test(world: World, **given: Any) -> None:
        async with running(world, QUICKLY) as broker, client_of(broker) as client:
            await client.create("orders", partitions=4)
            await told(world, broker, client, **given)

    import inspect

    signature = inspect.signature(told)
    first, *rest = list(signature.parameters.values())
    test.__signature__ = signature.replace(parameters=[first, *rest[2:]])  # type: ignore[attr-defined]
    test.__name__, test.__doc__ = told.__name__, told.__doc__
    return in_world(test)


async def reads(consumer: Consumer, into: list[bytes | None]) -> None:
    async for message in consumer:
        into.append(message.value)


@every_protocol
@story
async def test_two_members_share_partitions_and_the_last_one_gets_all(
    world: World, broker: Broker, client: Client, protocol: dict[str, Any]
) -> None:
    said = Told()
    async with member(world, "first", callbacks=said.callbacks, **protocol) as first:
        await until(lambda: numbers(first) == [0, 1, 2, 3])
        async with member(world, "second", **protocol) as second:
            await until(lambda: len(first.assignment) == len(second.assignment) == 2)

            assert not first.assignment & second.assignment
        await until(lambda: numbers(first) == [0, 1, 2, 3])

    assert said.lines[0] == "+ 0 1 2 3"
    assert said.lines[-1] == "- 0 1 2 3"
    assert not any("!" in line for line in said.lines)


@every_protocol
@story
async def test_a_group_resumes_at_its_committed_offsets(
    world: World, broker: Broker, client: Client, protocol: dict[str, Any]
) -> None:
    await write(client, 10)
    async with member(world, enable_auto_commit=False, **protocol) as consumer:
        assert values(await take(consumer, 4)) == [b"0", b"1", b"2", b"3"]
        await consumer.commit()
        assert await committed(consumer, 0, 1) == [4, 0]
        await take(consumer, 3)

    async with member(world, enable_auto_commit=False, **protocol) as consumer:
        assert values(await take(consumer, 1)) == [b"4"]


@story
async def test_a_commit_is_never_ahead_of_delivered_records(
    world: World, broker: Broker, client: Client
) -> None:
    await write(client, 100)
    async with member(world, enable_auto_commit=False, max_poll_records=50) as consumer:
        for handed in range(1, 6):
            await take(consumer, 1)
            await consumer.commit()
            assert await committed(consumer, 0) == [handed]


@every_protocol
@story
async def test_auto_commit_includes_records_once_the_next_poll_begins(
    world: World, broker: Broker, client: Client, protocol: dict[str, Any]
) -> None:
    await write(client, 10)
    async with member(world, auto_commit_interval_ms=1000, **protocol) as consumer:
        assert len(await consumer.batch(4)) == 4
        await asyncio.sleep(3)
        # Still at work on these four.
        assert await committed(consumer, 0) == [None]

        assert len(await consumer.batch(2)) == 2
        await asyncio.sleep(0.5)
        assert await committed(consumer, 0) == [4]
        waiting = asyncio.create_task(consumer.batch(100))
        assert len(await waiting) == 4
        waiting = asyncio.create_task(consumer.batch(100))
        await asyncio.sleep(2)

        assert await committed(consumer, 0) == [10]
        waiting.cancel()


@story
async def test_a_reader_that_leaves_with_an_error_has_not_dealt_with_its_message(
    world: World, broker: Broker, client: Client
) -> None:
    await write(client, 10)

    async def stumble() -> None:
        async with member(world, "first") as consumer:
            async for message in consumer:
                assert message.offset < 5 or 1 // 0

    with pytest.raises(ZeroDivisionError):
        await stumble()

    async with member(world, "second") as consumer:
        assert await committed(consumer, 0) == [5]
        assert values(await take(consumer, 1)) == [b"5"]


@story
async def test_a_reader_that_leaves_in_peace_has_dealt_with_everything(
    world: World, broker: Broker, client: Client
) -> None:
    await write(client, 10)
    async with member(world, "first") as consumer:
        await take(consumer, 6)

    async with member(world, "second") as consumer:
        assert await committed(consumer, 0) == [6]


@every_protocol
@story
async def test_partitions_do_not_change_hands_while_a_reader_is_at_work(
    world: World, broker: Broker, client: Client, protocol: dict[str, Any]
) -> None:
    for partition in range(4):
        await write(client, 1, partition=partition)
    async with member(world, "first", **protocol) as first, member_of(world, "second", **protocol) as second:
        assert len(await first.batch(1)) == 1
        await second.subscribe(["orders"])
        await asyncio.sleep(20)
        assert (len(first.assignment), len(second.assignment)) == (4, 0)

        into: list[bytes | None] = []
        reading = asyncio.create_task(reads(first, into))

        await until(lambda: len(second.assignment) == 2)
        reading.cancel()


@every_protocol
@story
async def test_processed_records_are_committed_before_revocation(
    world: World, broker: Broker, client: Client, protocol: dict[str, Any]
) -> None:
    for partition in range(4):
        await write(client, 5, partition=partition)
    rarely = {"auto_commit_interval_ms": 3_600_000, **protocol}
    async with member(world, "first", **rarely) as first:
        await take(first, 20)
        reading = asyncio.create_task(first.batch())
        async with member(world, "second", **rarely) as second:
            await until(lambda: len(second.assignment) == 2)

            assert await committed(second, 0, 1, 2, 3) == [5, 5, 5, 5]
        reading.cancel()


@every_protocol
@story
async def test_a_reader_that_stays_away_leaves_and_is_back_with_its_next_read(
    world: World, broker: Broker, client: Client, protocol: dict[str, Any]
) -> None:
    said = Told()
    limits = {"max_poll_interval_ms": 30_000, **protocol}
    async with (
        member(world, "first", callbacks=said.callbacks, **limits) as first,
        member(world, "second", **limits) as second,
    ):
        into: list[bytes | None] = []
        reading = asyncio.create_task(reads(second, into))
        await until(lambda: len(first.assignment) == len(second.assignment) == 2)
        for partition in range(4):
            await write(client, 5, partition=partition)
        (held,) = await first.batch(1)

        await until(lambda: len(second.assignment) == 4)
        assert not any("!" in line for line in said.lines)
        with pytest.raises(CommitFailed) as failed:
            await first.commit({held.tp: held.offset + 1})
        assert failed.value.tps == {held.tp}
        reading_again = asyncio.create_task(reads(first, into))

        await until(lambda: [line[0] for line in said.lines].count("!") == 1)
        await until(lambda: len(first.assignment) == len(second.assignment) == 2)
        reading.cancel()
        reading_again.cancel()


@every_protocol
@story
async def test_a_member_past_max_poll_interval_commits_nothing(
    world: World, broker: Broker, client: Client, protocol: dict[str, Any]
) -> None:
    await write(client, 5)
    async with member(world, max_poll_interval_ms=10_000, **protocol) as consumer:
        assert len(await consumer.batch(3)) == 3
        await asyncio.sleep(60)

        # The group has no members now, and takes offsets from anybody.
        with pytest.raises(CommitFailed, match="not a member"):
            await consumer.commit()
        assert await committed(consumer, 0) == [None]


@every_protocol
@story
async def test_a_commit_right_after_subscribing_waits_for_the_group(
    world: World, broker: Broker, client: Client, protocol: dict[str, Any]
) -> None:
    async with member(world, **protocol) as consumer:
        await consumer.commit({("orders", 2): 7})

        assert await committed(consumer, 2) == [7]


@story
async def test_reading_single_messages_counts_as_polling(
    world: World, broker: Broker, client: Client
) -> None:
    await write(client, 20)
    said = Told()
    slowly = {"max_poll_interval_ms": 10_000, "enable_auto_commit": False}
    async with member(world, callbacks=said.callbacks, **slowly) as consumer:
        for _ in range(20):
            await take(consumer, 1)
            await asyncio.sleep(4)

    assert said.lines == ["+ 0 1 2 3", "- 0 1 2 3"]


@every_protocol
@story
async def test_callbacks_may_wait_commit_and_seek(
    world: World, broker: Broker, client: Client, protocol: dict[str, Any]
) -> None:
    await write(client, 10)
    consumer = member_of(world, enable_auto_commit=False, **protocol)

    async def assigned(tps: frozenset[TopicPartition]) -> None:
        await asyncio.sleep(0.1)
        consumer.seek(("orders", 0), 7)

    async def revoked(tps: frozenset[TopicPartition]) -> None:
        await asyncio.sleep(0.1)
        await consumer.commit()

    async with consumer:
        await consumer.subscribe(["orders"], on_assigned=assigned, on_revoked=revoked)
        assert values(await take(consumer, 2)) == [b"7", b"8"]

    async with member(world, **protocol) as consumer:
        assert await committed(consumer, 0) == [9]


@story
async def test_nothing_is_handed_out_while_partitions_change_hands(
    world: World, broker: Broker, client: Client
) -> None:
    for partition in range(4):
        await write(client, 5, partition=partition)
    going: list[frozenset[TopicPartition]] = []

    async def revoked(tps: frozenset[TopicPartition]) -> None:
        going.append(tps)
        await asyncio.sleep(5)

    async with member(world, "first", callbacks={"on_revoked": revoked}, **COOPERATIVE) as first:
        assert len(await first.batch(1)) == 1
        async with member(world, "second", **COOPERATIVE):
            while not going:
                await first.batch(1, timeout_ms=1000)
                first.seek_to_beginning()

            assert await first.batch(100, timeout_ms=1000) == []
            assert {one.tp for one in await first.batch(100)} & going[0] == set()


@story
async def test_an_error_of_a_rebalance_callback_is_raised_once_by_the_reader(
    world: World, broker: Broker, client: Client
) -> None:
    await write(client, 1)

    def broken(tps: frozenset[TopicPartition]) -> None:
        raise KeyError("mine")

    async with member(world, callbacks={"on_assigned": broken}) as consumer:
        with pytest.raises(CallbackFailed, match="on_assigned") as failed:
            await consumer.batch(1)
        assert isinstance(failed.value.__cause__, KeyError)

        assert values(await consumer.batch(1)) == [b"0"]


@story
async def test_reading_and_leaving_are_refused_in_a_callback(
    world: World, broker: Broker, client: Client
) -> None:
    refused: list[str] = []
    consumer = member_of(world)

    async def assigned(tps: frozenset[TopicPartition]) -> None:
        for attempt in (
            consumer.batch(1),
            consumer.unsubscribe(),
            consumer.subscribe(["x"]),
            consumer.close(),
        ):
            try:
                await attempt
            except InCallback as error:
                refused.append(str(error).split()[0])

    async with consumer:
        await consumer.subscribe(["orders"], on_assigned=assigned)
        await until(lambda: len(refused) == 4)

    assert refused == ["reading", "unsubscribe()", "subscribe()", "close()"]


@every_protocol
@story
async def test_a_pattern_subscribes_to_current_and_future_topics(
    world: World, broker: Broker, client: Client, protocol: dict[str, Any]
) -> None:
    await client.create("orders-eu")
    await client.create("border")
    async with member_of(world, metadata_max_age_ms=2000, **protocol) as consumer:
        await consumer.subscribe(pattern=re.compile("ORDERS.*", re.IGNORECASE))
        await until(lambda: {tp.topic for tp in consumer.assignment} == {"orders", "orders-eu"})

        await client.create("orders-us")

        await until(lambda: "orders-us" in {tp.topic for tp in consumer.assignment}, timeout_s=120)
        assert consumer.subscription == {"orders", "orders-eu", "orders-us"}


@story
async def test_a_pattern_excludes_internal_topics_by_default(
    world: World, broker: Broker, client: Client
) -> None:
    async with member(world, "first") as first, member_of(world, "second", group_id="others") as consumer:
        # From now on there is a topic of offsets.
        await until(lambda: len(first.assignment) == 4)
        await consumer.subscribe(pattern=".*")
        await until(lambda: bool(consumer.assignment))
        assert consumer.subscription == {"orders"}

    async with member_of(world, "third", group_id="all", exclude_internal_topics=False) as consumer:
        await consumer.subscribe(pattern=".*")
        await until(lambda: consumer.subscription == {"orders", "__consumer_offsets"})


@every_protocol
@story
async def test_another_subscription_takes_the_place_of_the_one_before(
    world: World, broker: Broker, client: Client, protocol: dict[str, Any]
) -> None:
    await client.create("bills")
    async with member(world, **protocol) as consumer:
        await until(lambda: len(consumer.assignment) == 4)

        await consumer.subscribe(["bills"])

        await until(lambda: consumer.assignment == {("bills", 0)})
        assert consumer.subscription == {"bills"}
        await consumer.unsubscribe()
        assert (consumer.assignment, consumer.subscription) == (frozenset(), frozenset())
        await consumer.assign([("orders", 1)])


@every_protocol
@story
async def test_subscribing_creates_a_topic_if_allowed(
    world: World, broker: Broker, client: Client, protocol: dict[str, Any]
) -> None:
    async with member_of(world, **protocol) as consumer:
        await consumer.subscribe(["fresh"])

        await until(lambda: consumer.assignment == {("fresh", 0)})


@every_protocol
@story
async def test_a_subscribed_topic_is_read_once_it_is_created(
    world: World, broker: Broker, client: Client, protocol: dict[str, Any]
) -> None:
    async with member_of(world, allow_auto_create_topics=False, **protocol) as consumer:
        await consumer.subscribe(["orders", "later"])
        await until(lambda: len(consumer.assignment) == 4)

        await client.create("later", partitions=2)

        await until(lambda: len(consumer.assignment) == 6, timeout_s=30)


@pytest.mark.parametrize("protocol", [COOPERATIVE, CONSUMER], ids=["cooperative", "consumer"])
@story
async def test_pauses_and_positions_outlive_a_rebalance_where_partitions_stay(
    world: World, broker: Broker, client: Client, protocol: dict[str, Any]
) -> None:
    for partition in range(4):
        await write(client, 10, partition=partition)
    async with member(world, "first", enable_auto_commit=False, **protocol) as first:
        await until(lambda: len(first.assignment) == 4)
        first.pause(*first.assignment)
        for tp in first.assignment:
            first.seek(tp, 5)
        async with member(world, "second", enable_auto_commit=False, **protocol) as second:
            await until(lambda: len(first.assignment) == len(second.assignment) == 2)

            assert first.paused == first.assignment
            assert [await first.position(tp) for tp in sorted(first.assignment)] == [5, 5]


@pytest.mark.parametrize("protocol", [EAGER, CONSUMER], ids=["classic", "consumer"])
@story
async def test_a_static_member_that_is_back_soon_moves_nothing(
    world: World, broker: Broker, client: Client, protocol: dict[str, Any]
) -> None:
    said = Told()
    async with member(world, "other", callbacks=said.callbacks, **protocol) as other:
        async with member(world, "static", group_instance_id="s", **protocol) as static:
            await until(lambda: len(other.assignment) == len(static.assignment) == 2)
            had = static.assignment
        lines = list(said.lines)
        async with member(world, "again", group_instance_id="s", **protocol) as static:
            await until(lambda: static.assignment == had)

        assert said.lines == lines


@story
async def test_of_two_members_with_one_instance_id_the_first_is_fenced(
    world: World, broker: Broker, client: Client
) -> None:
    said = Told()
    async with member(world, "first", callbacks=said.callbacks, group_instance_id="s", **EAGER) as first:
        await until(lambda: len(first.assignment) == 4)
        async with member(world, "second", group_instance_id="s", **EAGER) as second:
            with pytest.raises(FencedInstance) as fenced:
                await first.batch(1)
            assert fenced.value.group == "readers"
            with pytest.raises(FencedInstance):
                await first.commit({("orders", 0): 1})
            assert said.lines == ["+ 0 1 2 3", "! 0 1 2 3"]
            await until(lambda: len(second.assignment) == 4)


@story
async def test_a_group_that_does_not_share_a_protocol_says_so(
    world: World, broker: Broker, client: Client
) -> None:
    async with member(world, "first", **EAGER) as first:
        await until(lambda: len(first.assignment) == 4)
        async with member(world, "second", partition_assignment_strategy="roundrobin") as second:
            with pytest.raises(GroupFailed, match="INCONSISTENT_GROUP_PROTOCOL"):
                await second.batch(1)


@story
async def test_a_bad_pattern_is_refused_by_the_broker(world: World, broker: Broker, client: Client) -> None:
    async with member_of(world, **CONSUMER) as consumer:
        await consumer.subscribe(pattern=re.compile(r"(?=orders)"))
        with pytest.raises(GroupFailed, match="INVALID_REGULAR_EXPRESSION"):
            await consumer.batch(1)

        await consumer.subscribe(["orders"])

        await until(lambda: len(consumer.assignment) == 4)


@story
async def test_offsets_of_a_group_without_members(world: World, broker: Broker, client: Client) -> None:
    await write(client, 10)
    async with member_of(world) as consumer:
        await consumer.commit({("orders", 0): 6})
        await consumer.assign([("orders", 0)])
        assert values(await take(consumer, 2)) == [b"6", b"7"]

    async with member_of(world) as consumer:
        assert await committed(consumer, 0, 1) == [8, None]


@story
async def test_nothing_committed_and_no_reset_is_an_error_that_names_the_range(
    world: World, broker: Broker, client: Client
) -> None:
    await write(client, 3)
    async with member(world, auto_offset_reset="none") as consumer:
        with pytest.raises(NoOffset, match="from 0 to"):
            await consumer.batch(1)


@story
async def test_streams_share_the_partitions_and_keep_their_order(
    world: World, broker: Broker, client: Client
) -> None:
    for partition in range(4):
        await write(client, 50, partition=partition)
    async with member(world, max_poll_records=7) as consumer:
        streams = consumer.streams(3)
        got: list[list[tuple[int, int]]] = [[] for _ in streams]

        async def read(index: int) -> None:
            async for message in streams[index]:
                got[index].append((message.partition, message.offset))
                await asyncio.sleep(0.001)

        reading = [asyncio.create_task(read(index)) for index in range(3)]
        await until(lambda: sum(map(len, got)) == 200)

        owners = [{partition for partition, _ in each} for each in got]
        assert sorted(map(len, owners)) == [1, 1, 2]
        for each in got:
            for partition in range(4):
                offsets = [offset for number, offset in each if number == partition]
                assert offsets in ([], list(range(50)))
        await consumer.commit()
        assert await committed(consumer, 0, 1, 2, 3) == [50] * 4
        with pytest.raises(AssignedOtherwise):
            await consumer.batch(1)
    await asyncio.gather(*reading)


@story
async def test_a_stream_that_is_at_work_keeps_its_message_uncommitted(
    world: World, broker: Broker, client: Client
) -> None:
    for partition in range(2):
        await write(client, 10, partition=partition)
    async with member(world, auto_commit_interval_ms=500) as consumer:
        slow, fast = consumer.streams(2)
        (held,) = await slow.batch(1)
        into: list[Any] = []

        async def read() -> None:
            async for message in fast:
                into.append(message)

        reading = asyncio.create_task(read())
        await until(lambda: len(into) == 10)
        await asyncio.sleep(2)

        assert await committed(consumer, held.partition, 1 - held.partition) == [None, 10]
        reading.cancel()


@in_world
async def test_subscribe_and_commit_need_a_group_id(world: World) -> None:
    async with running(world, QUICKLY), consumer_of(world) as consumer:
        for attempt in (consumer.subscribe(["orders"]), consumer.commit(), consumer.committed([("a", 0)])):
            with pytest.raises(NoGroup, match=r"set group\.id"):
                await attempt


@story
async def test_manual_and_group_assignment_are_exclusive(
    world: World, broker: Broker, client: Client
) -> None:
    async with member(world) as consumer:
        with pytest.raises(AssignedOtherwise):
            await consumer.assign([("orders", 0)])
        with pytest.raises(AssignedOtherwise):
            consumer.unassign()
        with pytest.raises(ValueError, match="either topic names or a pattern"):
            await consumer.subscribe([])
        await consumer.unsubscribe()
        await consumer.assign([("orders", 0)])
        with pytest.raises(AssignedOtherwise):
            await consumer.subscribe(["orders"])


@every_protocol
@pytest.mark.parametrize("seed", range(12))
@in_world
async def test_a_member_that_is_cancelled_anywhere_leaks_nothing(
    world: World, seed: int, protocol: dict[str, Any]
) -> None:
    async with running(world, QUICKLY) as broker, client_of(broker) as client:
        await client.create("orders", partitions=4)
        await write(client, 50)
        before = set(asyncio.all_tasks())

        async def live() -> None:
            async with member(world, f"one {seed}", **protocol) as consumer:
                await take(consumer, 10)
                await consumer.commit()
                await consumer.unsubscribe()
                await consumer.subscribe(["orders"])
                await take(consumer, 10)

        task = asyncio.create_task(live())
        await asyncio.sleep(world.rng.random() * 0.02 * (seed + 1))
        task.cancel()
        await asyncio.wait([task])

        assert task.cancelled() or task.exception() is None or isinstance(task.exception(), ClientError)
        left = [each for each in asyncio.all_tasks() - before if "barnabas/client" in str(each.get_coro())]
        assert left == []
