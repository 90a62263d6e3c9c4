"""Settings that are changed while the broker runs, and what changes with them."""

import asyncio

import pytest

from barnabas.protocol.error_codes import ErrorCode
from barnabas.records.header import Codec, TimestampType
from barnabas.server.broker import Broker
from barnabas.sim.world import World
from support.brokers import running
from support.stories import Client, client_of, partition_of, told
from support.wire.requests import batch, headers_of

HOUR_MS = 3_600_000
LARGE = b"x" * 400_000
# Hours pass faster when the controller writes nothing that says nothing.
QUIET = {"metadata.max.idle.interval.ms": 0, "log.retention.check.interval.ms": 10_000}
CODECS = {
    "gzip": Codec.GZIP,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
    "zstd": Codec.ZSTD,
    "uncompressed": Codec.NONE,
}


def segments_of(broker: Broker, topic: str) -> int:
    return len(partition_of(broker, topic).log.segments)


@told(QUIET, until_ms=3 * HOUR_MS)
async def test_retention_by_time_lets_old_segments_go_when_it_is_shortened(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders", segment_bytes=1 << 20)
    for _ in range(6):
        await client.produce("orders", LARGE, time=world.clock.now_ms())
    before = segments_of(broker, "orders")
    await asyncio.sleep(300)
    assert segments_of(broker, "orders") == before > 2

    await client.configure("orders", retention_ms=60_000)
    await asyncio.sleep(15)

    assert segments_of(broker, "orders") == 1
    assert (await client.fetch("orders")).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    await asyncio.sleep(70)
    names = [path for path in world.disk.tree() if path.startswith("/data/orders-0/")]
    assert not [path for path in names if path.endswith("00000000000000000000.log")], names
    assert not [path for path in names if path.endswith(".deleted")], names


@told(QUIET, until_ms=3 * HOUR_MS)
async def test_retention_by_size_lets_the_oldest_segments_go(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders", segment_bytes=1 << 20)
    for _ in range(10):
        await client.produce("orders", LARGE)

    await client.configure("orders", retention_bytes=2 << 20)
    await asyncio.sleep(15)

    log = partition_of(broker, "orders").log
    assert log.start_offset > 0
    assert 2 << 20 <= log.size <= 3 << 20


@told()
async def test_the_largest_batch_that_is_taken_follows_max_message_bytes(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders")
    size = len(batch(LARGE))

    await client.configure("orders", max_message_bytes=size - 1)
    refused = await client.try_produce("orders", LARGE)
    await client.configure("orders", max_message_bytes=size)

    assert refused.error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert await client.produce("orders", LARGE) == 0


@pytest.mark.parametrize("name", CODECS)
@pytest.mark.parametrize("sent", [Codec.NONE, Codec.GZIP], ids=["plain", "gzip"])
def test_batches_are_stored_with_the_codec_of_the_topic(name: str, sent: Codec) -> None:
    @told()
    async def story(world: World, broker: Broker, client: Client) -> None:
        await client.create("orders")
        await client.produce("orders", b"before", codec=sent)

        await client.configure("orders", compression_type=name)
        await client.produce("orders", b"one" * 100, b"two" * 100, codec=sent)
        await client.configure("orders", compression_type="producer")
        await client.produce("orders", b"after", codec=sent)

        stored = [header.codec for header in headers_of(await client.fetch("orders"))]
        assert stored == [sent, CODECS[name], sent]
        assert await client.values("orders") == [b"before", b"one" * 100, b"two" * 100, b"after"]

    story()


@told()
async def test_batches_that_are_recompressed_keep_their_order_on_a_connection(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("forced", compression_type="zstd")
    world.executor.delay_ms = (1, 50)

    for number in range(40):
        client.send_produce("forced", b"%d" % number, codec=(Codec.NONE, Codec.ZSTD)[number % 2])
    offsets = [(await client.answer())[1].responses[0].partition_responses[0].base_offset for _ in range(40)]

    assert offsets == list(range(40))
    assert await client.values("forced") == [b"%d" % number for number in range(40)]


@told()
async def test_the_time_of_records_is_the_brokers_when_the_topic_says_so(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders")
    sent_ms = world.clock.now_ms() - 5_000
    await client.produce("orders", b"sender's", time=sent_ms)

    await client.configure("orders", message_timestamp_type="LogAppendTime")
    await asyncio.sleep(10)
    now_ms = world.clock.now_ms()
    done = await client.try_produce("orders", b"broker's", time=sent_ms)

    first, second = await client.read("orders")
    assert first.timestamp == sent_ms
    assert now_ms <= second.timestamp == done.log_append_time_ms <= now_ms + 10
    kinds = [header.timestamp_type for header in headers_of(await client.fetch("orders"))]
    assert kinds == [TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME]


@told(QUIET, until_ms=3 * HOUR_MS)
async def test_a_segment_is_finished_when_segment_ms_have_passed(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders", segment_ms=60_000)

    for _ in range(6):
        await client.produce("orders", b"v", time=world.clock.now_ms())
        await asyncio.sleep(40)

    # Every second one is more than a minute later than the first of its segment.
    assert segments_of(broker, "orders") == 3
    await client.configure("orders", segment_ms=HOUR_MS)
    for _ in range(3):
        await client.produce("orders", b"v", time=world.clock.now_ms())
        await asyncio.sleep(70)
    assert segments_of(broker, "orders") == 3


@told(QUIET, until_ms=3 * HOUR_MS)
async def test_a_topic_that_becomes_compacted_is_compacted(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders", segment_ms=60_000, min_cleanable_dirty_ratio=0.01)
    for number in range(60):
        await client.produce("orders", b"%d" % number, key=b"%d" % (number % 3), time=world.clock.now_ms())
        await asyncio.sleep(10)

    await client.configure("orders", cleanup_policy="compact")
    await asyncio.sleep(120)

    found = await client.read("orders")
    active = partition_of(broker, "orders").log.active.base_offset
    cleaned = [record for record in found if record.offset < active]
    assert sorted(record.key or b"" for record in cleaned) == [b"0", b"1", b"2"]
    assert [record.offset for record in cleaned] == [active - 3, active - 2, active - 1]
    assert [record.offset for record in found if record.offset >= active] == list(range(active, 60))
    keyless = await client.try_produce("orders", b"v")
    assert keyless.error_code == ErrorCode.INVALID_RECORD


@told(QUIET, until_ms=3 * HOUR_MS)
async def test_a_broker_default_applies_to_topics_without_an_override(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("follows", segment_bytes=1 << 20)
    await client.create("insists", segment_bytes=1 << 20, retention_ms=HOUR_MS)
    for topic in ("follows", "insists"):
        for _ in range(6):
            await client.produce(topic, LARGE, time=world.clock.now_ms())

    await client.configure_broker("", log_retention_ms=30_000)
    await asyncio.sleep(100)

    assert segments_of(broker, "follows") == 1
    assert segments_of(broker, "insists") > 1
    assert await client.setting("follows", "retention.ms") == "30000"


@told()
async def test_records_are_flushed_when_flush_ms_have_passed(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders")
    await client.produce("orders", b"one")
    await asyncio.sleep(120)
    log = partition_of(broker, "orders").log
    assert log.recovery_point == 0

    await client.configure("orders", flush_ms=5_000)
    await asyncio.sleep(40)

    assert log.recovery_point == 1


@told({**QUIET, "producer.id.expiration.check.interval.ms": 1_000, "log.initial.task.delay.ms": 0})
async def test_how_long_a_producer_is_remembered_can_be_changed(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders")
    producer = await client.producer()
    await client.produce("orders", b"v", producer=producer)
    known = partition_of(broker, "orders").log.producers
    await asyncio.sleep(300)
    before = len(known)

    await client.configure_broker("", producer_id_expiration_ms=2_000)
    await asyncio.sleep(5)

    assert (before, len(known)) == (1, 0)


@told({"leader.imbalance.check.interval.seconds": 7, "unclean.leader.election.interval.ms": 1234})
async def test_the_controller_looks_for_elections_as_often_as_the_settings_say(
    world: World, broker: Broker, client: Client
) -> None:
    settings = broker.controller.shell.controller.settings

    assert (settings.leader_imbalance_check_ms, settings.unclean_election_check_ms) == (7_000, 1_234)


def test_settings_that_were_changed_before_a_restart_hold_after_it() -> None:
    static = {**QUIET, "producer.id.expiration.check.interval.ms": 1_000, "log.initial.task.delay.ms": 0}

    async def story(world: World) -> None:
        async with running(world, static) as broker, client_of(broker) as client:
            await client.create("orders")
            await client.configure_broker(
                "", producer_id_expiration_ms=2_000, num_recovery_threads_per_data_dir=4, max_connections=1
            )

        async with running(world, static) as broker, client_of(broker) as client:
            producer = await client.producer()
            await client.produce("orders", b"v", producer=producer)
            with pytest.raises((ConnectionError, EOFError)):
                async with client_of(broker) as second:
                    await second.create("payments")
            await asyncio.sleep(5)

            assert len(partition_of(broker, "orders").log.producers) == 0
            assert broker.logs.at_once == 4

    with World(1) as world:
        world.run(story(world), until_ms=HOUR_MS)
