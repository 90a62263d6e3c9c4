"""Clients with misbehaving or silent brokers: they do not hang, crash or retry in a tight loop."""

import asyncio
from contextlib import suppress

import pytest

from barnabas.base.ids import TopicPartition, Uuid
from barnabas.client.cluster import Cluster
from barnabas.client.errors import ClientError, UnknownTopic, UnsupportedByBroker
from barnabas.client.producer.errors import DeliveryTimedOut
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import decode_request, response_parts
from barnabas.protocol.messages.cluster import ApiVersion, ApiVersionsResponse
from barnabas.protocol.messages.produce import PartitionProduceResponse
from barnabas.sim.world import World
from support.our_client.odd_brokers import DeafBrokers, OddBrokers, Rows
from support.our_client.peers import in_world, listening, next_frame, ports_of, settings_of
from support.our_client.worlds import (
    Arrival,
    Break,
    Reaction,
    Refuse,
    Take,
    producer_of,
    producing,
)

SHORT = {"request_timeout_ms": 1000, "delivery_timeout_ms": 3000}
# Records of 50,000 bytes.
MORE_THAN_A_SOCKET_TAKES = 300


# Odd metadata


@in_world
async def test_a_leader_missing_in_the_broker_list_is_looked_up_with_backoff(world: World) -> None:
    async with OddBrokers().running() as brokers, producing(world, **SHORT) as producer:
        await (await producer.send("orders", b"before"))
        brokers.leaders[TopicPartition("orders", 0)] = (7, 1)
        brokers.script = lambda arrival: Refuse(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        asked = brokers.metadata_requests

        delivery = await producer.send("orders", b"after")
        with pytest.raises(DeliveryTimedOut):
            await delivery

        assert brokers.metadata_requests - asked < 30


@in_world
async def test_a_broker_without_a_common_version_is_reported(world: World) -> None:
    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            asked = decode_request(await next_frame(reader))
            rows = [ApiVersion(api_key=ApiKey.API_VERSIONS, min_version=-2, max_version=-1)]
            answer = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=rows)
            writer.writelines(
                response_parts(answer, 0, key=ApiKey.API_VERSIONS, correlation_id=asked.correlation_id)
            )

    async with listening(peer):
        cluster = Cluster(settings_of(default_api_timeout_ms=500), ports_of(world))
        with pytest.raises(ClientError):
            await cluster.start()


@in_world
async def test_two_topics_with_one_id_do_not_mix_their_records(world: World) -> None:
    async with OddBrokers().running() as brokers:
        brokers.leaders[TopicPartition("other", 0)] = (1, 0)
        brokers.topic_ids["other"] = brokers.topic_ids["orders"]
        async with producing(world, linger_ms=20, **SHORT) as producer:
            sent = [await producer.send(name, name.encode()) for name in ("orders", "other")]
            for each in sent:
                with suppress(ClientError):
                    await each
        for tp, values in brokers.log.items():
            assert len(set(values)) == len(values), f"{tp} has a record twice"


# Deleted and recreated topics


@in_world
async def test_a_topic_recreated_during_lookup_starts_at_sequence_0(world: World) -> None:
    async with OddBrokers().running() as brokers:
        brokers.topic_ids["other"] = Uuid(b"q" * 16)
        brokers.leaders[TopicPartition("other", 0)] = (1, 0)
        async with producing(world, metadata_max_age_ms=1000, **SHORT) as producer:
            await (await producer.send("orders", b"before"))
            await (await producer.send("orders", b"before as well"))
            # The topic is deleted, and the producer learns it while idle.
            del brokers.topic_ids["orders"]
            await asyncio.sleep(2)
            await (await producer.send("other", b"meanwhile"))
            brokers.recreate_topic()

            while True:
                try:
                    delivery = producer.try_send("orders", b"after")
                    break
                except ClientError:
                    await asyncio.sleep(0.01)
            await delivery

            assert brokers.arrivals[-1].header.base_sequence == 0


@in_world
async def test_an_idle_producer_outlives_the_topic_that_it_sent_to(world: World) -> None:
    async with OddBrokers().running() as brokers:
        brokers.topic_ids["other"] = Uuid(b"q" * 16)
        brokers.leaders[TopicPartition("other", 0)] = (1, 0)
        async with producing(
            world, metadata_max_age_ms=4000, metadata_max_idle_ms=10_000, **SHORT
        ) as producer:
            await (await producer.send("orders", b"a"))
            del brokers.topic_ids["orders"]
            await asyncio.sleep(200)
            assert (await (await producer.send("other", b"b"))).offset == 0


@in_world
async def test_a_partition_is_waited_for_also_while_the_broker_is_away(world: World) -> None:
    async with (
        OddBrokers().running() as brokers,
        producing(world, max_block_ms=5000, **SHORT) as producer,
    ):
        await (await producer.send("orders", b"a"))
        waiting = asyncio.ensure_future(producer.send("orders", b"b", partition=1))
        await asyncio.sleep(0.5)
        world.network.refuse("localhost", "localhost")
        world.network.reset("localhost", "localhost")
        await asyncio.sleep(2)
        world.network.heal()
        brokers.leaders[TopicPartition("orders", 1)] = (1, 0)
        assert (await (await waiting)).partition == 1


@in_world
async def test_a_partition_is_waited_for_no_longer_than_max_block_ms(world: World) -> None:
    async with OddBrokers().running(), producing(world, max_block_ms=5000) as producer:
        await (await producer.send("orders", b"a"))
        waiting = asyncio.ensure_future(producer.send("orders", b"b", partition=1))
        await asyncio.sleep(2)
        world.network.cut("localhost", "localhost")
        began_s = world.loop.time()
        with pytest.raises(UnknownTopic):
            await waiting
        assert world.loop.time() - began_s < 4
        world.network.heal()


@in_world
async def test_delivery_timeout_ms_holds_for_those_behind_a_batch_that_was_split(world: World) -> None:
    def script(arrival: Arrival) -> Reaction:
        if arrival.tp.partition == 0:
            return Break() if brokers.log else Take()
        return (
            Refuse(ErrorCode.MESSAGE_TOO_LARGE)
            if len(arrival.values) > 1
            else Refuse(ErrorCode.NOT_ENOUGH_REPLICAS)
        )

    async with OddBrokers(nodes=2, partitions=2).running() as brokers:
        brokers.leaders[TopicPartition("orders", 1)] = (2, 0)
        brokers.script = script
        async with producing(
            world, request_timeout_ms=500, delivery_timeout_ms=10_000, enable_idempotence=False, linger_ms=20
        ) as producer:
            await (await producer.send("orders", b"a", partition=0))
            old = await producer.send("orders", b"old", partition=0)
            began_s = world.loop.time()
            await asyncio.sleep(9)
            for _ in range(2):
                young = await producer.send("orders", b"young", partition=1)
            with pytest.raises(DeliveryTimedOut):
                await old
            assert world.loop.time() - began_s < 11
            with pytest.raises(DeliveryTimedOut):
                await young


# Odd Produce responses


@in_world
async def test_a_batch_missing_from_the_response_is_resent_and_written_once(world: World) -> None:
    answers = iter(range(1000))

    def leave_out(rows: list[PartitionProduceResponse]) -> None:
        if next(answers) < 2:
            rows.clear()

    async with Rows(partitions=2).running() as brokers:
        brokers.edit_rows = leave_out
        async with producing(world, **SHORT) as producer:
            sent = [
                await producer.send("orders", b"%d" % number, partition=number % 2) for number in range(6)
            ]
            for each in sent:
                await each
    assert sorted(value for log in brokers.log.values() for value in log) == [b"%d" % n for n in range(6)]


@in_world
async def test_unrequested_and_duplicate_rows_of_a_response_are_ignored(world: World) -> None:
    def add(rows: list[PartitionProduceResponse]) -> None:
        again = PartitionProduceResponse(index=rows[0].index, error_code=0, base_offset=rows[0].base_offset)
        other = PartitionProduceResponse(index=77, error_code=ErrorCode.INVALID_RECORD, base_offset=-1)
        rows += [again, other]

    async with Rows(partitions=2).running() as brokers:
        brokers.edit_rows = add
        async with producing(world, **SHORT) as producer:
            sent = [
                await producer.send("orders", b"%d" % number, partition=number % 2) for number in range(6)
            ]
            assert [(await each).partition for each in sent] == [0, 1, 0, 1, 0, 1]


@in_world
async def test_an_error_that_no_version_of_kafka_has_ends_the_batch_and_says_so(world: World) -> None:
    def confuse(rows: list[PartitionProduceResponse]) -> None:
        rows[0].error_code = 9999

    async with Rows().running() as brokers:
        brokers.edit_rows = confuse
        async with producing(world, **SHORT) as producer:
            with pytest.raises(ClientError):
                await (await producer.send("orders", b"a"))
            brokers.edit_rows = lambda rows: None
            assert (await (await producer.send("orders", b"b"))).topic == "orders"


@in_world
async def test_a_broker_too_old_for_the_batch_is_reported_at_once(world: World) -> None:
    async with (
        OddBrokers(produce_version=6).running(),
        producing(world, compression_type="zstd") as producer,
    ):
        began_s = world.loop.time()
        with pytest.raises(UnsupportedByBroker, match="zstd"):
            await (await producer.send("orders", b"a"))
        assert world.loop.time() - began_s < 1


@in_world
async def test_headers_given_as_an_iterator_are_refused(world: World) -> None:
    async with OddBrokers().running(), producing(world) as producer:
        await (await producer.send("orders", b"before"))
        with pytest.raises(TypeError, match="list or a tuple, not generator"):
            await producer.send("orders", b"a", headers=(each for each in [("h", b"1")]))  # type: ignore[arg-type]
        assert producer.buffered_bytes == 0


# Brokers that stop reading


@in_world
async def test_close_ends_although_a_broker_reads_no_acks_0_requests(world: World) -> None:
    async with DeafBrokers().running():
        producer = producer_of(world, acks=0, enable_idempotence=False, batch_size=100_000, **SHORT)
        await producer.start()
        for _ in range(MORE_THAN_A_SOCKET_TAKES):
            await producer.send("orders", b"x" * 50_000)
        began_s = world.loop.time()

        await producer.close()

        assert world.loop.time() - began_s < 10


@in_world
async def test_a_broker_that_stops_reading_is_disconnected_and_retried(world: World) -> None:
    async with DeafBrokers().running() as brokers:
        async with producing(
            world, acks=0, enable_idempotence=False, batch_size=100_000, **SHORT
        ) as producer:
            for _ in range(MORE_THAN_A_SOCKET_TAKES):
                await producer.send("orders", b"x" * 50_000)
            await asyncio.sleep(10)
            brokers.deaf = False
            await (await producer.send("orders", b"after"))
        assert brokers.arrivals[-1].values == [b"after"]
