"""A consumer and brokers that do as the test says.

Leaders that change, replicas near by, logs that lose their end, sessions that are forgotten, wrong bytes.
"""

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from barnabas.base.ids import TopicPartition, Uuid
from barnabas.client.consumer.consumer import Consumer
from barnabas.client.consumer.errors import CorruptRecords, LogTruncated, NoOffset, TopicRecreated
from barnabas.client.consumer.message import Message
from barnabas.client.errors import Refused, UnknownTopic
from barnabas.client.ports import ClientPorts
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.sim.world import World
from support.clocks import ManualClock
from support.our_client.consumer_worlds import (
    ORDERS,
    ReadableBrokers,
    answer_of,
    log_of,
    reading,
    take,
    values,
)
from support.our_client.peers import ADDRESS, in_world


def numbers(*ranges: range) -> list[bytes]:
    return [b"%d" % number for each in ranges for number in each]


@in_world
async def test_a_hint_moves_the_consumer_to_the_new_leader_without_asking(world: World) -> None:
    brokers = ReadableBrokers(nodes=2)
    brokers.logs[ORDERS] = log_of(3)

    def script(node: int, tp: TopicPartition, asked: Any) -> Any:
        if node == 2:
            return None
        return answer_of(asked, error=ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=(2, 5))

    brokers.script = script
    async with brokers.running(), reading(world, ORDERS) as consumer:
        asked = brokers.asked.count(ApiKey.METADATA)
        assert values(await take(consumer, 3)) == numbers(range(3))

    assert [node for node, _ in brokers.fetches[:2]] == [1, 2]
    assert brokers.asked.count(ApiKey.METADATA) == asked


@in_world
async def test_without_a_hint_the_leader_is_looked_up(world: World) -> None:
    brokers = ReadableBrokers(nodes=2)
    brokers.logs[ORDERS] = log_of(3)
    refused = []

    def script(node: int, tp: TopicPartition, asked: Any) -> Any:
        if node == 2:
            return None
        brokers.leaders[ORDERS] = (2, 1)
        refused.append(world.loop.time())
        return answer_of(asked, error=ErrorCode.FENCED_LEADER_EPOCH)

    brokers.script = script
    async with brokers.running(), reading(world, ORDERS) as consumer:
        assert values(await take(consumer, 3)) == numbers(range(3))

    assert len(refused) == 1


@pytest.mark.parametrize(
    "code", [ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.UNKNOWN_SERVER_ERROR]
)
@in_world
async def test_retriable_errors_are_retried_with_backoff(world: World, code: ErrorCode) -> None:
    brokers = ReadableBrokers()
    brokers.logs[ORDERS] = log_of(3)
    times: list[float] = []

    def script(node: int, tp: TopicPartition, asked: Any) -> Any:
        times.append(world.loop.time())
        return answer_of(asked, error=code) if len(times) < 6 else None

    brokers.script = script
    async with brokers.running(), reading(world, ORDERS) as consumer:
        assert values(await take(consumer, 3)) == numbers(range(3))

    gaps = [later - earlier for earlier, later in pairwise(times[:6])]
    assert 0.05 < gaps[0] < gaps[2] < gaps[4] < 3


@in_world
async def test_a_fatal_error_stops_one_partition_and_is_reported_once(world: World) -> None:
    brokers = ReadableBrokers(partitions=2)
    other = TopicPartition("orders", 1)
    brokers.logs[other] = log_of(3)

    def script(node: int, tp: TopicPartition, asked: Any) -> Any:
        return answer_of(asked, error=ErrorCode.TOPIC_AUTHORIZATION_FAILED) if tp == ORDERS else None

    brokers.script = script
    async with brokers.running(), reading(world, ORDERS, other) as consumer:
        found: list[Message] = []
        errors: list[Refused] = []
        while len(found) < 3 or not errors:
            try:
                found += await consumer.batch(timeout_ms=10_000)
            except Refused as error:
                errors.append(error)
        assert await consumer.batch(timeout_ms=5_000) == []
        assert [error.code for error in errors] == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
        assert values(found) == numbers(range(3))

        brokers.script = lambda node, tp, asked: None
        brokers.logs[ORDERS] = log_of(2)
        consumer.resume(ORDERS)
        assert values(await take(consumer, 2)) == numbers(range(2))


@in_world
async def test_a_corrupt_batch_is_an_error_after_earlier_records_and_can_be_skipped(world: World) -> None:
    brokers = ReadableBrokers()
    batches = log_of(2, 3, 2)
    brokers.logs[ORDERS] = [batches[0], batches[1][:-1] + b"?", batches[2]]

    async with brokers.running(), reading(world, ORDERS) as consumer:
        assert values(await consumer.batch()) == numbers(range(2))
        with pytest.raises(CorruptRecords, match="CRC") as error:
            await consumer.batch()
        wrong = error.value
        assert (wrong.tp, wrong.offset, wrong.next_offset) == (ORDERS, 2, 5)
        assert await consumer.position(ORDERS) == 2
        assert await consumer.batch(timeout_ms=5_000) == []

        consumer.seek(ORDERS, 5)
        assert values(await take(consumer, 2)) == numbers(range(5, 7))


@pytest.mark.parametrize("size", [0, 11, 40, 100])
@in_world
async def test_a_batch_that_is_cut_off_is_left_for_the_next_fetch(world: World, size: int) -> None:
    brokers = ReadableBrokers()
    first, second = log_of(2, 3)
    brokers.logs[ORDERS] = [first, second]

    def script(node: int, tp: TopicPartition, asked: Any) -> Any:
        if asked.fetch_offset < 2:
            return answer_of(asked, first + second[: min(size, len(second) - 1)], end=5)
        return None

    brokers.script = script
    async with brokers.running(), reading(world, ORDERS) as consumer:
        assert values(await take(consumer, 5)) == numbers(range(5))


@pytest.mark.parametrize(
    "records", [log_of(2)[0][:50], log_of(2)[0], b"\0" * 100], ids=["cut", "old", "zeros"]
)
@in_world
async def test_an_answer_that_leads_nowhere_is_an_error(world: World, records: bytes) -> None:
    brokers = ReadableBrokers()
    brokers.logs[ORDERS] = log_of(2, 3)
    brokers.script = lambda node, tp, asked: answer_of(asked, records, end=5)

    async with brokers.running(), reading(world, ORDERS) as consumer:
        consumer.seek(ORDERS, 2)
        with pytest.raises(CorruptRecords) as error:
            await consumer.batch()
        assert error.value.offset == 2


@in_world
async def test_a_replica_that_the_leader_names_is_read_until_it_lags(world: World) -> None:
    brokers = ReadableBrokers(nodes=2)
    brokers.logs[ORDERS] = log_of(3)
    lags: list[bool] = []

    def script(node: int, tp: TopicPartition, asked: Any) -> Any:
        if node == 1 and not lags:
            return answer_of(asked, end=3, replica=2)
        if node == 2 and lags:
            return answer_of(asked, error=ErrorCode.OFFSET_OUT_OF_RANGE)
        return None

    brokers.script = script
    async with brokers.running(), reading(world, ORDERS, client_rack="b") as consumer:
        assert values(await take(consumer, 3)) == numbers(range(3))
        assert {node for node, _ in brokers.fetches[1:]} == {2}
        assert brokers.fetches[0][1].rack_id == "b"

        lags.append(True)
        brokers.logs[ORDERS] += log_of(2, first=3)
        # From the leader, at the offset where it was, and not reset.
        assert values(await take(consumer, 2)) == numbers(range(3, 5))
        assert brokers.fetches[-1][0] == 1


class StoppedClock(ManualClock):
    """A clock that cannot be read for waiting."""

    def monotonic_ms(self) -> int:
        raise OSError("the clock is gone")


@in_world
async def test_a_crash_of_a_task_reaches_every_reader(world: World) -> None:
    brokers = ReadableBrokers(nodes=2)
    brokers.script = lambda node, tp, asked: answer_of(asked, end=3, replica=2)
    ports = ClientPorts(clock=StoppedClock(), rng=world.dice("consumer"))

    async with brokers.running(), Consumer(bootstrap_servers=ADDRESS, ports=ports) as consumer:
        await consumer.assign([ORDERS])
        for _ in range(2):
            with pytest.raises(OSError, match="the clock is gone"):
                await consumer.batch()


@in_world
async def test_a_position_is_compared_with_the_log_of_a_new_leader(world: World) -> None:
    brokers = ReadableBrokers(nodes=2)
    brokers.logs[ORDERS] = log_of(5, epoch=0)

    async with brokers.running(), reading(world, ORDERS, auto_offset_reset="none") as consumer:
        consumer.seek(ORDERS, 0)
        await take(consumer, 5)
        # The new leader has them all, and goes on.
        brokers.logs[ORDERS] += log_of(2, epoch=3, first=5)
        brokers.leaders[ORDERS] = (2, 3)
        brokers.script = lambda node, tp, asked: (
            answer_of(asked, error=ErrorCode.NOT_LEADER_OR_FOLLOWER) if node == 1 else None
        )
        brokers.epoch_ends[ORDERS] = (0, 5)
        assert values(await take(consumer, 2)) == numbers(range(5, 7))
        assert brokers.asked.count(ApiKey.OFFSET_FOR_LEADER_EPOCH) == 1


@pytest.mark.parametrize("reset", ["none", "latest"])
@in_world
async def test_a_log_that_lost_its_end_is_noticed(world: World, reset: str) -> None:
    brokers = ReadableBrokers(nodes=2)
    brokers.logs[ORDERS] = log_of(5, epoch=0)

    async with brokers.running(), reading(world, ORDERS, auto_offset_reset=reset) as consumer:
        consumer.seek(ORDERS, 0)
        await take(consumer, 5)
        # The new leader never had the last two, and has others in their place.
        brokers.logs[ORDERS] = [*log_of(3, epoch=0), *log_of(4, epoch=3, first=3)]
        brokers.leaders[ORDERS] = (2, 3)
        brokers.script = lambda node, tp, asked: (
            answer_of(asked, error=ErrorCode.NOT_LEADER_OR_FOLLOWER) if node == 1 else None
        )
        brokers.epoch_ends[ORDERS] = (0, 3)
        if reset == "none":
            with pytest.raises(LogTruncated) as error:
                await consumer.batch()
            assert (error.value.offset, error.value.diverged_at) == (5, 3)
            assert await consumer.batch(timeout_ms=2_000) == []
            consumer.seek(ORDERS, 3)
        assert values(await take(consumer, 4)) == numbers(range(3, 7))


@in_world
async def test_unread_data_of_an_old_leader_is_refetched_after_validation(world: World) -> None:
    brokers = ReadableBrokers(nodes=2)
    brokers.logs[ORDERS] = log_of(5, 5, epoch=0)

    async with brokers.running(), reading(world, ORDERS, max_poll_records=1) as consumer:
        assert values(await take(consumer, 4)) == numbers(range(4))
        # Nothing is lost but what comes after the position: that must not be read any more.
        brokers.logs[ORDERS] = [*log_of(5, epoch=0), *log_of(1, epoch=3, first=5)]
        brokers.leaders[ORDERS] = (2, 3)
        brokers.epoch_ends[ORDERS] = (0, 5)
        brokers.script = lambda node, tp, asked: (
            answer_of(asked, error=ErrorCode.NOT_LEADER_OR_FOLLOWER) if node == 1 else None
        )
        await asyncio.sleep(3)
        found = await take(consumer, 2)
        assert [(each.offset, each.leader_epoch) for each in found] == [(4, 0), (5, 3)]
        assert await consumer.batch(timeout_ms=2_000) == []


@in_world
async def test_a_forgotten_session_is_begun_anew_and_nothing_is_lost(world: World) -> None:
    brokers = ReadableBrokers()
    brokers.logs[ORDERS] = log_of(3)

    async with brokers.running(), reading(world, ORDERS) as consumer:
        await take(consumer, 3)
        await asyncio.sleep(2)
        session = brokers.fetches[-1][1].session_id
        assert session > 0
        assert brokers.fetches[-1][1].topics == []
        brokers.restart_sessions()
        brokers.logs[ORDERS] += log_of(2, first=3)
        assert values(await take(consumer, 2)) == numbers(range(3, 5))
        epochs = [(each.session_id, each.session_epoch) for _, each in brokers.fetches]
        assert (0, 0) in epochs[1:]


@pytest.mark.parametrize(
    "code", [ErrorCode.INVALID_FETCH_SESSION_EPOCH, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR]
)
@in_world
async def test_a_session_that_is_refused_is_ended_by_a_full_fetch(world: World, code: ErrorCode) -> None:
    brokers = ReadableBrokers()
    brokers.logs[ORDERS] = log_of(3)

    async with brokers.running(), reading(world, ORDERS) as consumer:
        await take(consumer, 3)
        await asyncio.sleep(2)
        old = brokers.fetches[-1][1].session_id
        brokers.fetch_errors = [code]
        brokers.logs[ORDERS] += log_of(2, first=3)
        count = len(brokers.fetches)
        assert values(await take(consumer, 2)) == numbers(range(3, 5))
        # It names the old session, so that the broker need not keep it.
        full = [each for _, each in brokers.fetches[count:] if each.session_epoch == 0]
        assert [each.session_id for each in full] == [old]


@in_world
async def test_a_broker_that_refuses_every_session_is_not_asked_all_the_time(world: World) -> None:
    brokers = ReadableBrokers()
    brokers.fetch_errors = [ErrorCode.FETCH_SESSION_ID_NOT_FOUND] * 1000

    async with brokers.running(), reading(world, ORDERS) as consumer:
        assert await consumer.batch(timeout_ms=20_000) == []

    assert len(brokers.fetches) < 100


@in_world
async def test_brokers_without_topic_ids_are_asked_by_name(world: World) -> None:
    brokers = ReadableBrokers()
    brokers.fetch_version = 11
    brokers.logs[ORDERS] = log_of(3)

    async with brokers.running(), reading(world, ORDERS) as consumer:
        assert values(await take(consumer, 3)) == numbers(range(3))

    assert brokers.fetches[0][1].topics[0].topic == "orders"


@in_world
async def test_an_unknown_topic_id_is_looked_up_before_it_is_believed(world: World) -> None:
    brokers = ReadableBrokers()
    brokers.logs[ORDERS] = log_of(3)
    told: list[int] = []

    def script(node: int, tp: TopicPartition, asked: Any) -> Any:
        told.append(node)
        return answer_of(asked, error=ErrorCode.UNKNOWN_TOPIC_ID) if len(told) < 4 else None

    brokers.script = script
    async with brokers.running(), reading(world, ORDERS) as consumer:
        assert values(await take(consumer, 3)) == numbers(range(3))


@in_world
async def test_a_topic_with_another_id_is_reported_as_recreated(world: World) -> None:
    brokers = ReadableBrokers()
    brokers.logs[ORDERS] = log_of(3)

    async with brokers.running(), reading(world, ORDERS) as consumer:
        await take(consumer, 3)
        brokers.topic_ids["orders"] = Uuid(b"p" * 16)
        with pytest.raises(TopicRecreated) as error:
            await consumer.batch(timeout_ms=30_000)
        assert (error.value.was, error.value.now) == (b"o" * 16, b"p" * 16)


@in_world
async def test_a_topic_with_an_unexpected_id_is_not_assigned(world: World) -> None:
    brokers = ReadableBrokers()
    brokers.logs[ORDERS] = log_of(3)

    async with brokers.running(), reading(world, ORDERS) as consumer:
        await take(consumer, 1)
        with pytest.raises(TopicRecreated) as error:
            await consumer.assign([ORDERS], topic_ids={"orders": Uuid(b"p" * 16)})
        assert (error.value.was, error.value.now) == (b"p" * 16, b"o" * 16)
        # What was assigned is read on.
        assert values(await take(consumer, 2)) == [b"1", b"2"]
        await consumer.assign([ORDERS], topic_ids={"orders": Uuid(b"o" * 16), "visits": Uuid(b"p" * 16)})


@in_world
async def test_a_topic_that_is_missing_for_a_moment_is_not_gone(world: World) -> None:
    brokers = ReadableBrokers()
    brokers.logs[ORDERS] = log_of(3)

    async with brokers.running(), reading(world, ORDERS) as consumer:
        await take(consumer, 3)
        ids, brokers.topic_ids = brokers.topic_ids, {}
        # One is behind: the refresh that the failed fetch asked for and upkeep's first look both meet it.
        asked = brokers.asked.count(ApiKey.METADATA)
        while brokers.asked.count(ApiKey.METADATA) < asked + 2:
            await asyncio.sleep(0.0001)
        brokers.topic_ids = ids
        brokers.logs[ORDERS] += log_of(1, first=3)
        assert values(await take(consumer, 1)) == [b"3"]


@in_world
async def test_a_topic_is_gone_when_the_metadata_says_so_twice(world: World) -> None:
    brokers = ReadableBrokers()

    async with brokers.running(), reading(world, ORDERS) as consumer:
        await asyncio.sleep(1)
        ids, brokers.topic_ids = brokers.topic_ids, {}
        asked = brokers.asked.count(ApiKey.METADATA)
        waiting = asyncio.ensure_future(consumer.batch(timeout_ms=30_000))
        while brokers.asked.count(ApiKey.METADATA) == asked:
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.01)
        assert not waiting.done()
        with pytest.raises(UnknownTopic, match="orders-0"):
            await waiting
        assert brokers.asked.count(ApiKey.METADATA) - asked >= 2

        brokers.topic_ids = ids
        brokers.logs[ORDERS] = log_of(1)
        await consumer.assign([ORDERS])
        assert values(await take(consumer, 1)) == [b"0"]


@in_world
async def test_an_out_of_range_error_waits_until_earlier_records_are_read(world: World) -> None:
    brokers = ReadableBrokers()
    brokers.logs[ORDERS] = log_of(5, 5)
    lost: list[bool] = []

    def script(node: int, tp: TopicPartition, asked: Any) -> Any:
        if asked.fetch_offset < 5:
            return answer_of(asked, brokers.logs[tp][0], end=10)
        lost.append(True)
        return answer_of(asked, error=ErrorCode.OFFSET_OUT_OF_RANGE)

    brokers.script = script
    async with brokers.running(), reading(world, ORDERS, auto_offset_reset="none", max_poll_records=1) as one:
        one.seek(ORDERS, 0)
        assert values(await take(one, 1)) == [b"0"]
        await asyncio.sleep(1)
        assert lost
        assert values(await take(one, 4)) == numbers(range(1, 5))
        with pytest.raises(NoOffset) as error:
            await one.batch()
        assert (error.value.offset, error.value.start, error.value.end) == (5, 0, 10)
