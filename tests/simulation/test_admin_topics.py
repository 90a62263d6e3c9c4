"""The admin client and a broker in the simulated world: topics made, grown, described, listed, deleted."""

import pytest

from barnabas.base.ids import Uuid, format_uuid
from barnabas.client.admin import (
    Admin,
    ConfigSource,
    NewPartitions,
    NewTopic,
    PartlyRefused,
    TopicDescription,
    topic_resource,
)
from barnabas.client.errors import Refused, UnknownTopic
from barnabas.protocol.error_codes import ErrorCode
from barnabas.sim.world import World
from support.our_client.admin_worlds import administrated
from support.our_client.peers import in_world

NOBODY = Uuid(b"nobody has this." * 1)


def partition_numbers(topic: TopicDescription) -> list[int]:
    return [each.partition for each in topic.partitions]


@in_world
async def test_a_created_topic_is_returned_with_its_id_and_settings(world: World) -> None:
    async with administrated(world) as admin:
        made = await admin.create_topic("orders", partitions=3, settings={"retention.ms": 1000})
        found = await admin.describe_topic("orders")

    assert made.topic_id is not None
    assert (made.name, made.partitions, made.replication_factor) == ("orders", 3, 1)
    assert made.settings is not None
    assert made.settings["retention.ms"].value == "1000"
    assert made.settings["retention.ms"].source is ConfigSource.DYNAMIC_TOPIC_CONFIG
    assert made.settings["cleanup.policy"].is_default
    assert found.topic_id == made.topic_id
    assert partition_numbers(found) == [0, 1, 2]
    first = found.partitions[0]
    assert (first.leader, first.replicas, first.isr, first.offline, first.elr) == (1, (1,), (1,), (), ())


@in_world
async def test_the_broker_chooses_missing_values_of_a_new_topic(world: World) -> None:
    async with administrated(world, {"num.partitions": 4}) as admin:
        assert (await admin.create_topic("orders")).partitions == 4


@in_world
async def test_replicas_can_be_assigned(world: World) -> None:
    async with administrated(world) as admin:
        made = await admin.create_topic("orders", assignment={0: [1], 1: [1]})
        with pytest.raises(Refused) as refused:
            await admin.create_topic("elsewhere", assignment={0: [7]})

    assert made.partitions == 2
    assert refused.value.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT


@in_world
async def test_validate_only_creates_no_topic(world: World) -> None:
    async with administrated(world) as admin:
        made = await admin.create_topic("orders", partitions=2, validate_only=True)
        await admin.create_topic("payments", partitions=1)
        await admin.create_partitions("payments", 5, validate_only=True)

        assert (made.topic_id, made.partitions) == (None, 2)
        assert {name: each.partitions for name, each in (await admin.list_topics()).items()} == {
            "payments": 1
        }


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        (NewTopic(name="orders"), ErrorCode.TOPIC_ALREADY_EXISTS),
        (NewTopic(name="bad name"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic(name="x", partitions=0), ErrorCode.INVALID_PARTITIONS),
        (NewTopic(name="x", replication_factor=9), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic(name="x", settings={"no.such": 1}), ErrorCode.INVALID_CONFIG),
    ],
    ids=lambda each: each.name,
)
@in_world
async def test_a_topic_that_cannot_be_is_refused_with_the_reason(
    world: World, topic: NewTopic, code: ErrorCode
) -> None:
    async with administrated(world) as admin:
        await admin.create_topic("orders")
        with pytest.raises(PartlyRefused) as refused:
            await admin.create_topics([topic, NewTopic(name="good")])

        assert refused.value.refused[topic.name].code is code
        assert list(refused.value.done) == ["good"]
        assert "good" in await admin.list_topics()


@in_world
async def test_a_topic_named_twice_is_refused_and_not_made(world: World) -> None:
    async with administrated(world) as admin:
        with pytest.raises(PartlyRefused) as refused:
            await admin.create_topics([NewTopic(name="a"), NewTopic(name="a"), NewTopic(name="b")])

        assert refused.value.refused["a"].code is ErrorCode.INVALID_REQUEST
        assert list(await admin.list_topics()) == ["b"]


@in_world
async def test_a_topic_is_deleted_by_name_or_by_id(world: World) -> None:
    async with administrated(world) as admin:
        made = await admin.create_topic("orders")
        await admin.create_topic("payments")
        assert made.topic_id is not None
        await admin.delete_topics([made.topic_id, "payments"])

        assert await admin.list_topics() == {}
        with pytest.raises(UnknownTopic):
            await admin.delete_topic("orders")
        with pytest.raises(Refused) as by_id:
            await admin.delete_topic(made.topic_id)
        assert by_id.value.code is ErrorCode.UNKNOWN_TOPIC_ID
        assert format_uuid(made.topic_id) in str(by_id.value)


@in_world
async def test_a_missing_topic_does_not_stop_the_deletion_of_others(world: World) -> None:
    async with administrated(world) as admin:
        await admin.create_topic("orders")
        with pytest.raises(PartlyRefused) as refused:
            await admin.delete_topics(["nope", "orders"])

        assert list(refused.value.refused) == ["nope"]
        assert list(refused.value.done) == ["orders"]
        assert await admin.list_topics() == {}


@in_world
async def test_all_topics_are_described_over_many_pages(world: World) -> None:
    async with administrated(world) as admin:
        await admin.create_topics([NewTopic(name=name, partitions=5) for name in ("a", "b", "c")])
        pages = await admin.describe_topics(page_partitions=3)
        named = await admin.describe_topics(["c", "a"], page_partitions=2)
        whole = await admin.describe_topics()

    assert pages == whole
    assert list(pages) == ["a", "b", "c"]
    assert list(named) == ["c", "a"]
    assert all(partition_numbers(each) == [0, 1, 2, 3, 4] for each in [*pages.values(), *named.values()])


@in_world
async def test_topics_are_described_by_id(world: World) -> None:
    async with administrated(world) as admin:
        made = await admin.create_topic("orders", partitions=2)
        assert made.topic_id is not None
        with pytest.raises(PartlyRefused) as refused:
            await admin.describe_topics([made.topic_id, NOBODY, "nope"])
        assert await admin.describe_topics([]) == {}

    assert {name: error.code for name, error in refused.value.refused.items()} == {
        format_uuid(NOBODY): ErrorCode.UNKNOWN_TOPIC_ID,
        "nope": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert refused.value.done[made.topic_id].name == "orders"


@in_world
async def test_asking_for_a_topic_does_not_make_it(world: World) -> None:
    async with administrated(world, {"auto.create.topics.enable": "true"}) as admin:
        with pytest.raises(UnknownTopic):
            await admin.describe_topic("orders")
        assert await admin.list_topics() == {}


@in_world
async def test_a_topic_grows_and_does_not_shrink(world: World) -> None:
    async with administrated(world) as admin:
        await admin.create_topic("orders", partitions=2)
        await admin.create_partitions("orders", 4, assignments=[[1], [1]])
        with pytest.raises(Refused) as shrunk:
            await admin.create_partitions("orders", 3)
        with pytest.raises(PartlyRefused) as several:
            await admin.create_partitions_of(
                {"orders": NewPartitions(total=5), "nope": NewPartitions(total=5)}
            )

        assert shrunk.value.code is ErrorCode.INVALID_PARTITIONS
        assert several.value.refused["nope"].code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert (await admin.list_topics())["orders"].partitions == 5


@in_world
async def test_a_setting_without_a_spelling_is_refused_before_anything_is_asked(world: World) -> None:
    async with administrated(world) as admin:
        from barnabas.base.settings import InvalidSetting

        with pytest.raises(InvalidSetting):
            await admin.create_topic("orders", settings={"retention.ms": None})
        assert await admin.list_topics() == {}
        with pytest.raises(UnknownTopic):
            await admin.describe_config(topic_resource("orders"))


def test_admin_is_found_where_the_guide_says() -> None:
    from barnabas import client

    assert client.Admin is Admin
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = client.Nothing
