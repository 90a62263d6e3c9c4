"""What our producer does with what brokers answer, and with what they do not."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from barnabas.base.ids import TopicPartition, Uuid
from barnabas.client.errors import Refused, UnknownTopic
from barnabas.client.producer.errors import DeliveryInDoubt, DeliveryTimedOut
from barnabas.client.producer.producer import Delivery, Producer
from barnabas.protocol.error_codes import ErrorCode
from barnabas.sim.world import World
from support.our_client.worlds import (
    ORDERS,
    Arrival,
    Break,
    Reaction,
    Refuse,
    ScriptedBrokers,
    Take,
    TakeSilently,
    Wait,
    producing,
)
from support.stories import Stopwatch

Story = Callable[[World, ScriptedBrokers], Coroutine[Any, Any, None]]


def scripted(**options: Any) -> Callable[[Story], Callable[[], None]]:
    """Make a test of a story: a world, and brokers that do as they are told in it."""

    def as_test(story: Story) -> Callable[[], None]:
        def test() -> None:
            with World(1) as world:

                async def run() -> None:
                    async with ScriptedBrokers(**options).running() as brokers:
                        await story(world, brokers)

                world.run(run())

        test.__name__, test.__doc__ = story.__name__, story.__doc__
        return test

    return as_test


def first_time(reaction: Reaction, times: int = 1) -> Callable[[Arrival], Reaction]:
    """React so to the first arrivals, and take the others."""
    left = [times]

    def script(arrival: Arrival) -> Reaction:
        left[0] -= 1
        return reaction if left[0] >= 0 else Take()

    return script


def by_value(**reactions: list[Reaction]) -> Callable[[Arrival], Reaction]:
    """React to the batch that begins with a value so, one after the other; take the rest."""

    def script(arrival: Arrival) -> Reaction:
        value = (arrival.values[0] or b"").decode()
        waiting = reactions.get(value)
        return waiting.pop(0) if waiting else Take()

    return script


async def one_by_one(producer: Producer, *values: bytes) -> list[Delivery]:
    """Each in a batch of its own, sent at once, without waiting for the answer."""
    sent = []
    for value in values:
        sent.append(await producer.send("orders", value, partition=0))
        producer._sender.accumulator.close_open()  # type: ignore[union-attr]
        await asyncio.sleep(0)
    return sent


def numbers(brokers: ScriptedBrokers) -> list[tuple[bytes | None, int, int]]:
    """First value, producer id and sequence of each batch that arrived."""
    return [(each.values[0], each.header.producer_id, each.header.base_sequence) for each in brokers.arrivals]


# Retries and hints


@pytest.mark.parametrize(
    "code", [ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.KAFKA_STORAGE_ERROR]
)
def test_retriable_errors_are_retried_with_the_same_sequences(code: ErrorCode) -> None:
    @scripted()
    async def story(world: World, brokers: ScriptedBrokers) -> None:
        brokers.script = first_time(Refuse(code), times=2)
        async with producing(world) as producer:
            placed = await (await producer.send("orders", b"a"))
        assert placed.offset == 0
        assert numbers(brokers) == [(b"a", 1001, 0)] * 3

    story()


@scripted()
async def test_fatal_errors_fail_the_delivery_at_once(world: World, brokers: ScriptedBrokers) -> None:
    brokers.script = first_time(Refuse(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    async with producing(world) as producer:
        with pytest.raises(Refused) as refused:
            await (await producer.send("orders", b"a"))
        assert refused.value.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert (await (await producer.send("orders", b"b"))).offset == 0
    assert len(brokers.arrivals) == 2


@scripted(nodes=2)
async def test_a_hint_sends_it_to_the_new_leader_without_a_metadata_request(
    world: World, brokers: ScriptedBrokers
) -> None:
    async with producing(world) as producer:
        await (await producer.send("orders", b"a"))
        asked = brokers.metadata_requests
        brokers.script = lambda arrival: (
            Take() if arrival.node == 2 else Refuse(ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=(2, 7))
        )
        watch = Stopwatch(world)
        await (await producer.send("orders", b"b"))
        assert watch.ms < 20, "it is no failure to wait after"
        assert brokers.metadata_requests == asked
    assert [each.node for each in brokers.arrivals] == [1, 1, 2]


@scripted(nodes=2)
async def test_without_a_leader_hint_metadata_is_refreshed(world: World, brokers: ScriptedBrokers) -> None:
    async with producing(world) as producer:
        await (await producer.send("orders", b"a"))
        brokers.leaders[ORDERS] = (2, 1)
        brokers.script = lambda arrival: (
            Take() if arrival.node == 2 else Refuse(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        )
        await (await producer.send("orders", b"b"))
    assert [each.node for each in brokers.arrivals] == [1, 1, 2]


@scripted(produce_version=9)
async def test_an_older_broker_gets_names_and_not_ids(world: World, brokers: ScriptedBrokers) -> None:
    async with producing(world) as producer:
        await (await producer.send("orders", b"a"))
    assert [each.version for each in brokers.arrivals] == [9]
    assert brokers.log[ORDERS] == [b"a"]


@scripted()
async def test_after_so_many_retries_it_fails(world: World, brokers: ScriptedBrokers) -> None:
    brokers.script = lambda arrival: Refuse(ErrorCode.NOT_ENOUGH_REPLICAS)
    async with producing(world, retries=2) as producer:
        with pytest.raises(Refused) as refused:
            await (await producer.send("orders", b"a"))
    assert refused.value.code is ErrorCode.NOT_ENOUGH_REPLICAS
    assert len(brokers.arrivals) == 3


# Too large


@scripted()
async def test_a_batch_that_is_too_large_is_split_until_it_fits(
    world: World, brokers: ScriptedBrokers
) -> None:
    brokers.script = lambda arrival: (
        Refuse(ErrorCode.MESSAGE_TOO_LARGE) if len(arrival.values) > 3 else Take()
    )
    async with producing(world) as producer:
        sent = [await producer.send("orders", b"%d" % number) for number in range(10)]
        offsets = [(await each).offset for each in sent]
    assert offsets == list(range(10))
    assert brokers.log[ORDERS] == [b"%d" % number for number in range(10)]
    assert brokers.identities == 1


@scripted()
async def test_a_single_record_that_is_too_large_fails_and_the_others_do_not(
    world: World, brokers: ScriptedBrokers
) -> None:
    brokers.script = lambda arrival: (
        Refuse(ErrorCode.MESSAGE_TOO_LARGE) if b"huge" in arrival.values else Take()
    )
    async with producing(world) as producer:
        sent = [await producer.send("orders", value) for value in (b"0", b"1", b"huge", b"3", b"4")]
        results = await asyncio.gather(*sent, return_exceptions=True)
    assert [isinstance(each, Refused) for each in results] == [False, False, True, False, False]
    assert brokers.log[ORDERS] == [b"0", b"1", b"3", b"4"]


@scripted()
async def test_a_callback_of_a_split_batch_is_called_when_its_part_is_done(
    world: World, brokers: ScriptedBrokers
) -> None:
    brokers.script = first_time(Refuse(ErrorCode.MESSAGE_TOO_LARGE))
    called: list[int] = []
    async with producing(world) as producer:
        for number in range(4):
            delivery = await producer.send("orders", b"%d" % number)
            delivery.add_done_callback(lambda done: called.append(done.result().offset))
        await producer.flush()
        await asyncio.sleep(0)
    assert called == [0, 1, 2, 3]


# Each once, and in order


@scripted()
async def test_a_lost_response_is_retried_without_duplicates(world: World, brokers: ScriptedBrokers) -> None:
    brokers.script = first_time(TakeSilently(breaks=True))
    async with producing(world) as producer:
        assert (await (await producer.send("orders", b"a"))).offset == 0
    assert brokers.log[ORDERS] == [b"a"]
    assert numbers(brokers) == [(b"a", 1001, 0)] * 2


@scripted()
async def test_a_duplicate_sequence_is_a_success_without_an_offset(
    world: World, brokers: ScriptedBrokers
) -> None:
    brokers.script = first_time(Refuse(ErrorCode.DUPLICATE_SEQUENCE_NUMBER))
    async with producing(world) as producer:
        assert (await (await producer.send("orders", b"a"))).offset == -1


@scripted()
async def test_those_behind_a_batch_that_goes_again_keep_their_order(
    world: World, brokers: ScriptedBrokers
) -> None:
    # The others are out of order while the first is missing, and are sent again after it.
    brokers.script = by_value(a=[Refuse(ErrorCode.NOT_ENOUGH_REPLICAS)])
    async with producing(world) as producer:
        await (await producer.send("orders", b"first"))
        sent = await one_by_one(producer, b"a", b"b", b"c", b"d")
        assert [(await each).offset for each in sent] == [1, 2, 3, 4]
    assert [each.values[0] for each in brokers.arrivals][:5] == [b"first", b"a", b"b", b"c", b"d"]
    assert brokers.log[ORDERS] == [b"first", b"a", b"b", b"c", b"d"]
    assert brokers.identities == 1


@scripted()
async def test_the_first_batch_of_a_producer_goes_alone(world: World, brokers: ScriptedBrokers) -> None:
    """A broker takes any sequence from a producer that it does not know: also that of the second batch."""
    brokers.script = by_value(a=[Refuse(ErrorCode.NOT_ENOUGH_REPLICAS)])
    async with producing(world) as producer:
        sent = await one_by_one(producer, b"a", b"b", b"c")
        assert [(await each).offset for each in sent] == [0, 1, 2]
    assert brokers.log[ORDERS] == [b"a", b"b", b"c"]


@scripted()
async def test_batches_after_a_failed_one_use_a_new_producer_id(
    world: World, brokers: ScriptedBrokers
) -> None:
    brokers.script = by_value(a=[Refuse(ErrorCode.INVALID_RECORD)])
    async with producing(world) as producer:
        await (await producer.send("orders", b"before"))
        sent = await one_by_one(producer, b"a", b"b", b"c")
        results = await asyncio.gather(*sent, return_exceptions=True)
        assert isinstance(results[0], Refused)
        await (await producer.send("orders", b"d"))
    assert brokers.log[ORDERS] == [b"before", b"b", b"c", b"d"]
    assert brokers.identities == 2


def unanswered(brokers: ScriptedBrokers, last: bytes, after: Callable[[], None]) -> None:
    """All are written and not answered, until the connection breaks at the last one; then comes `after`."""

    def script(arrival: Arrival) -> Reaction:
        if arrival.values != [last]:
            return TakeSilently()
        brokers.script = then
        return TakeSilently(breaks=True)

    def then(arrival: Arrival) -> Reaction:
        after()
        brokers.script = lambda arrival: Take()
        return Take()

    brokers.script = script


@scripted()
async def test_a_restarted_broker_that_knows_only_the_last_batch_has_them_all(
    world: World, brokers: ScriptedBrokers
) -> None:
    """The broker calls the first two out of order, though it has them; the third proves it."""
    async with producing(world) as producer:
        await (await producer.send("orders", b"before"))
        unanswered(brokers, b"c", brokers.forget_all_but_the_last_batch)
        sent = await one_by_one(producer, b"a", b"b", b"c")
        assert [(await each).offset for each in sent] == [-1, -1, 3]
        await (await producer.send("orders", b"d"))
    assert brokers.log[ORDERS] == [b"before", b"a", b"b", b"c", b"d"]
    assert brokers.identities == 1


@scripted()
async def test_a_possibly_written_batch_is_never_resent_with_new_sequences(
    world: World, brokers: ScriptedBrokers
) -> None:
    """The log was cut, so the broker calls everything out of order: nobody knows what is in it."""
    async with producing(world) as producer:
        await (await producer.send("orders", b"before"))
        brokers.script = by_value(
            a=[TakeSilently(), Refuse(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)],
            b=[TakeSilently(breaks=True), Refuse(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)],
        )
        sent = await one_by_one(producer, b"a", b"b")
        results = await asyncio.gather(*sent, return_exceptions=True)
        await (await producer.send("orders", b"c"))
    assert [type(each) for each in results] == [DeliveryInDoubt, DeliveryInDoubt]
    assert brokers.log[ORDERS] == [b"before", b"a", b"b", b"c"]
    assert brokers.identities == 2


@scripted()
async def test_an_unknown_producer_continues_with_a_new_id(world: World, brokers: ScriptedBrokers) -> None:
    brokers.script = by_value(b=[Refuse(ErrorCode.UNKNOWN_PRODUCER_ID)])
    async with producing(world) as producer:
        sent = await one_by_one(producer, b"a", b"b", b"c")
        assert [(await each).offset for each in sent] == [0, 1, 2]
    assert brokers.log[ORDERS] == [b"a", b"b", b"c"]
    assert brokers.identities == 2


@scripted()
async def test_a_fenced_epoch_fails_the_batch_and_the_next_goes_under_a_new_id(
    world: World, brokers: ScriptedBrokers
) -> None:
    brokers.script = by_value(a=[Refuse(ErrorCode.INVALID_PRODUCER_EPOCH)])
    async with producing(world) as producer:
        with pytest.raises(Refused) as refused:
            await (await producer.send("orders", b"a"))
        assert refused.value.code is ErrorCode.INVALID_PRODUCER_EPOCH
        await (await producer.send("orders", b"b"))
    assert brokers.log[ORDERS] == [b"b"]
    assert brokers.identities == 2


@scripted()
async def test_a_producer_id_is_requested_until_one_is_assigned(
    world: World, brokers: ScriptedBrokers
) -> None:
    brokers.identity_errors = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 3
    async with producing(world) as producer:
        assert (await (await producer.send("orders", b"a"))).offset == 0


@scripted()
async def test_an_unauthorized_producer_id_fails_deliveries_until_it_is_granted(
    world: World, brokers: ScriptedBrokers
) -> None:
    brokers.identity_errors = [ErrorCode.CLUSTER_AUTHORIZATION_FAILED]
    async with producing(world) as producer:
        with pytest.raises(Refused):
            await (await producer.send("orders", b"a"))
        assert (await (await producer.send("orders", b"b"))).offset == 0


@scripted()
async def test_without_idempotence_no_producer_id_is_requested(
    world: World, brokers: ScriptedBrokers
) -> None:
    async with producing(world, enable_idempotence=False) as producer:
        await (await producer.send("orders", b"a"))
    assert brokers.identities == 0
    assert numbers(brokers) == [(b"a", -1, -1)]


@scripted()
async def test_one_request_at_a_time_keeps_the_order_without_idempotence(
    world: World, brokers: ScriptedBrokers
) -> None:
    brokers.script = by_value(a=[Refuse(ErrorCode.NOT_ENOUGH_REPLICAS)] * 2, c=[Break()])
    settings = {"enable_idempotence": False, "max_in_flight_requests_per_connection": 1}
    async with producing(world, **settings) as producer:
        sent = await one_by_one(producer, b"a", b"b", b"c", b"d")
        await asyncio.gather(*sent)
    assert brokers.log[ORDERS] == [b"a", b"b", b"c", b"d"]


# Time


@scripted()
async def test_a_timed_out_delivery_says_that_the_record_may_be_written(
    world: World, brokers: ScriptedBrokers
) -> None:
    brokers.script = by_value(a=[TakeSilently()] * 100)
    async with producing(
        world, request_timeout_ms=1000, delivery_timeout_ms=3000, enable_idempotence=True
    ) as producer:
        start = world.loop.time()
        with pytest.raises(DeliveryTimedOut) as late:
            await (await producer.send("orders", b"a"))
        assert late.value.maybe_written
        assert late.value.attempts == 3
        assert 2.9 <= world.loop.time() - start <= 3.1
        # The hole that it may have left is not filled with other records under the same numbers.
        assert (await (await producer.send("orders", b"b"))).offset == 1
    assert brokers.log[ORDERS] == [b"a", b"b"]
    assert brokers.identities == 2


@scripted()
async def test_an_answer_after_the_time_is_over_keeps_the_numbers_going(
    world: World, brokers: ScriptedBrokers
) -> None:
    async with producing(world, request_timeout_ms=3000, delivery_timeout_ms=3000, linger_ms=0) as producer:
        await (await producer.send("orders", b"before"))
        from_s = world.loop.time() + 1.5
        # It is taken when half of its time is over, and the answer comes when all of it is.
        brokers.script = lambda arrival: (
            Refuse(ErrorCode.NOT_ENOUGH_REPLICAS) if world.loop.time() < from_s else Wait(2.5)
        )
        (sent,) = await one_by_one(producer, b"a")
        with pytest.raises(DeliveryTimedOut) as late:
            await sent
        assert late.value.maybe_written
        assert producer.buffered_bytes > 0, "it is still under way"
        brokers.script = lambda arrival: Take()
        await (await producer.send("orders", b"b"))
    assert brokers.log[ORDERS] == [b"before", b"a", b"b"]
    assert brokers.identities == 1


@scripted()
async def test_a_topic_that_is_recreated_gets_its_records_from_sequence_0(
    world: World, brokers: ScriptedBrokers
) -> None:
    async with producing(world) as producer:
        for value in (b"a", b"b"):
            await (await producer.send("orders", value))
        brokers.recreate_topic()
        assert (await (await producer.send("orders", b"c"))).offset == 0
    assert brokers.log[ORDERS] == [b"c"]
    assert numbers(brokers)[-1] == (b"c", 1001, 0)


@scripted()
async def test_a_topic_that_is_gone_fails_its_deliveries_by_name(
    world: World, brokers: ScriptedBrokers
) -> None:
    async with producing(world, request_timeout_ms=1000, delivery_timeout_ms=3000) as producer:
        await (await producer.send("orders", b"a"))
        del brokers.topic_ids["orders"]
        with pytest.raises(UnknownTopic):
            await (await producer.send("orders", b"b"))


@scripted()
async def test_a_send_waiting_for_space_holds_none_after_its_topic_is_deleted(
    world: World, brokers: ScriptedBrokers
) -> None:
    brokers.topic_ids["payments"] = Uuid(b"q" * 16)
    brokers.leaders[TopicPartition("payments", 0)] = (1, 0)
    async with producing(world, buffer_memory=1500, max_block_ms=5000, request_timeout_ms=1000) as producer:
        await (await producer.send("orders", b"a"))
        brokers.script = first_time(TakeSilently())
        await producer.send("payments", b"x" * 1000)
        waiting = asyncio.ensure_future(producer.send("orders", b"x" * 1000))
        await asyncio.sleep(0.5)
        del brokers.topic_ids["orders"]
        await producer._cluster.refresh(["orders"])  # type: ignore[union-attr]
        producer._sender.take_metadata()  # type: ignore[union-attr]
        assert producer.buffered_bytes == 1021
        await asyncio.sleep(1)
        assert producer.buffered_bytes == 0
        with pytest.raises(UnknownTopic):
            await waiting


# Requests


@scripted(partitions=3)
async def test_a_request_holds_a_batch_of_each_partition_that_is_ready(
    world: World, brokers: ScriptedBrokers
) -> None:
    async with producing(world) as producer:
        for number in range(9):
            await producer.send("orders", b"x", partition=number % 3)
        await producer.flush()
    assert brokers.batches_a_request == [3]


@scripted(partitions=3)
async def test_a_request_is_not_larger_than_max_request_size(world: World, brokers: ScriptedBrokers) -> None:
    async with producing(world, max_request_size=2500) as producer:
        for number in range(3):
            await producer.send("orders", b"x" * 1000, partition=number)
        await producer.flush()
    assert brokers.batches_a_request == [2, 1]


@scripted()
async def test_at_most_so_many_requests_are_under_way(world: World, brokers: ScriptedBrokers) -> None:
    async with producing(world, max_in_flight_requests_per_connection=3) as producer:
        await (await producer.send("orders", b"before"))
        brokers.script = lambda arrival: TakeSilently()
        sent = await one_by_one(producer, *(b"%d" % number for number in range(8)))
        await asyncio.sleep(1)
        assert len(brokers.arrivals) == 1 + 3
        brokers.script = lambda arrival: Take()
        await asyncio.gather(*sent)
    assert brokers.log[ORDERS] == [b"before", *(b"%d" % number for number in range(8))]


@scripted()
async def test_with_acks_0_no_response_is_awaited(world: World, brokers: ScriptedBrokers) -> None:
    async with producing(world, acks=0) as producer:
        placed = await (await producer.send("orders", b"a"))
        assert placed.offset == -1
        sent = [await producer.send("orders", b"x" * 10_000) for _ in range(200)]
    # It was not told what became of them, but it does not hang up before they were read.
    assert all(each.done() for each in sent)
    assert len(brokers.log[ORDERS]) == 201
