"""The admin client asks our broker and Apache Kafka 4.3 the same things, and what must agree is compared.

What cannot agree is left out and named where it is: ids, ports, sizes of files, what a release adds.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import time
from typing import Any

import pytest

from barnabas.base.ids import TopicPartition, Uuid
from barnabas.client import ClientError
from barnabas.client.admin import (
    UP_TO_HIGH_WATERMARK,
    ConfigChange,
    ConfigEntry,
    ConfigOperation,
    FeatureUpdate,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    PartlyRefused,
    Resource,
    ResourceType,
    UpgradeType,
    broker_resource,
    topic_resource,
)
from barnabas.client.blocking import Admin, Producer
from barnabas.client.errors import Refused
from support.kafka.broker import KafkaBroker
from support.kafka.tools import kafka_tools
from support.process.our_broker import OurBroker

ORDERS_0, ORDERS_1, NOPE_0 = (
    TopicPartition("orders", 0),
    TopicPartition("orders", 1),
    TopicPartition("nope", 0),
)
NOBODY = Uuid(b"nobody has this.")
# An hour ago: what is older than a day makes brokers forget who wrote it, each at a time of its own.
START_MS = int(time() - 3600) * 1000
SETTINGS = {"auto.create.topics.enable": "false"}


@pytest.fixture(scope="module")
def admins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Admin, Admin]]:
    """Ours and Kafka's, each with the same topic and records in it."""
    ours = OurBroker(tmp_path_factory.mktemp("ours"), settings=SETTINGS)
    kafka = KafkaBroker(kafka_tools(), tmp_path_factory.mktemp("kafka"), settings=SETTINGS)
    kafka.format()
    with ExitStack() as stack:
        found = []
        for broker in (ours, kafka):
            address = stack.enter_context(broker.running())
            admin = stack.enter_context(Admin(bootstrap_servers=address))
            admin.create_topic("orders", partitions=2, settings={"retention.ms": -1})
            with Producer(bootstrap_servers=address) as producer:
                for number in (0, 5, 3):
                    producer.send("orders", b"v", partition=0, timestamp_ms=START_MS + number).result(10)
            found.append(admin)
        yield found[0], found[1]


def same(admins: tuple[Admin, Admin], ask: Callable[[Admin], Any]) -> Any:
    """What both say, if it is the same: values field by field, refusals by code."""
    ours, theirs = (_said(admin, ask) for admin in admins)
    assert ours == theirs
    return ours


def _said(admin: Admin, ask: Callable[[Admin], Any]) -> Any:
    try:
        return ask(admin)
    except PartlyRefused as error:
        codes = {name: one.code.name for name, one in error.refused.items()}
        return {"refused": codes, "done": error.done}
    except Refused as error:
        return error.code.name
    except ClientError as error:
        return type(error).__name__


def test_create_topics_matches_kafka(admins: tuple[Admin, Admin]) -> None:
    def create(admin: Admin) -> Any:
        made = admin.create_topic("made", partitions=3, settings={"cleanup.policy": "compact"})
        assert made.topic_id is not None
        return replace(made, topic_id=None)

    made = same(admins, create)

    assert (made.partitions, made.replication_factor) == (3, 1)
    assert made.settings["cleanup.policy"].value == "compact"


@pytest.mark.parametrize(
    "topic",
    [
        NewTopic(name="orders"),
        NewTopic(name="bad name"),
        NewTopic(name=""),
        NewTopic(name=".."),
        NewTopic(name="x" * 250),
        NewTopic(name="x", partitions=0),
        NewTopic(name="x", replication_factor=9),
        NewTopic(name="x", replication_factor=0),
        NewTopic(name="x", assignment={0: [7]}),
        NewTopic(name="x", assignment={1: [1]}),
        NewTopic(name="x", settings={"no.such": 1}),
        NewTopic(name="x", settings={"retention.ms": "soon"}),
    ],
    ids=str,
)
def test_create_topics_errors_match_kafka(admins: tuple[Admin, Admin], topic: NewTopic) -> None:
    said = same(admins, lambda admin: admin.create_topics([topic], validate_only=True))

    assert list(said["refused"]) == [topic.name]


def test_validating_extending_and_deleting_topics_matches_kafka(admins: tuple[Admin, Admin]) -> None:
    def live(admin: Admin) -> list[Any]:
        made = admin.create_topic("short", partitions=1)
        assert made.topic_id is not None
        said = [
            _said(admin, lambda it: it.create_partitions("short", 3, validate_only=True)),
            _said(admin, lambda it: it.create_partitions("short", 3, assignments=[[1], [1]])),
            _said(admin, lambda it: it.create_partitions("short", 2)),
            _said(admin, lambda it: it.create_partitions("short", 4, assignments=[[7]])),
            _said(admin, lambda it: it.create_partitions_of({"nope": NewPartitions(total=2)})),
        ]
        admin.delete_topic(made.topic_id)
        return [
            *said,
            _said(admin, lambda it: it.delete_topics(["short", "nope"])),
            _said(admin, lambda it: it.delete_topic(NOBODY)),
        ]

    assert "INVALID_PARTITIONS" in same(admins, live)


def test_listing_and_describing_topics_matches_kafka(admins: tuple[Admin, Admin]) -> None:
    def describe(admin: Admin) -> list[Any]:
        listed = admin.list_topics(internal=True)["orders"]
        found = admin.describe_topic("orders", operations=True)
        by_id = admin.describe_topic(found.topic_id or NOBODY, operations=True)
        paged = admin.describe_topics(["orders"], page_partitions=1)["orders"]
        assert paged == found
        assert listed.topic_id == found.topic_id == by_id.topic_id
        return [replace(each, topic_id=None) for each in (listed, found, by_id)]

    _, found, by_id = same(admins, describe)

    assert len(found.partitions) == len(by_id.partitions) == 2
    assert found.partitions[0].elr == ()
    same(admins, lambda admin: admin.describe_topics(["nope", "bad name"]))
    same(
        admins, lambda admin: list(_said(admin, lambda it: it.describe_topics([NOBODY]))["refused"].values())
    )


# Texts differ, and what 4.3 has beyond is compared where the broker's own settings are.
def _entries(found: dict[str, ConfigEntry]) -> dict[str, ConfigEntry]:
    return {
        name: replace(entry, documentation="some" if entry.documentation else None)
        for name, entry in found.items()
    }


def test_describe_configs_of_a_topic_matches_kafka(admins: tuple[Admin, Admin]) -> None:
    found = same(
        admins,
        lambda admin: _entries(
            admin.describe_config(topic_resource("orders"), synonyms=True, documentation=True)
        ),
    )

    assert found["retention.ms"].value == "-1"
    assert found["retention.ms"].documentation == "some"


def test_describe_configs_of_a_broker_matches_kafka(admins: tuple[Admin, Admin]) -> None:
    names = ["node.id", "log.retention.ms", "ssl.key.password", "num.partitions", "min.insync.replicas"]

    def describe(admin: Admin) -> dict[str, ConfigEntry]:
        return admin.describe_config(broker_resource(1), names, synonyms=True)

    found = same(admins, describe)

    assert found["ssl.key.password"].sensitive
    assert found["node.id"].read_only
    same(admins, lambda admin: admin.describe_config(Resource(ResourceType.BROKER, "seven")))
    same(admins, lambda admin: admin.describe_config(topic_resource("nope")))
    same(admins, lambda admin: admin.describe_config(topic_resource("bad name")))


def test_alter_configs_matches_kafka(admins: tuple[Admin, Admin]) -> None:
    orders = topic_resource("orders")

    def change(admin: Admin) -> list[Any]:
        said = [
            _said(
                admin,
                lambda it: it.alter_config(orders, {"segment.ms": 5}, append={"cleanup.policy": "compact"}),
            ),
            _said(admin, lambda it: it.alter_config(orders, {"no.such": 5})),
            _said(admin, lambda it: it.alter_config(orders, {"segment.ms": "x"}, validate_only=True)),
            _said(admin, lambda it: it.alter_config(orders, append={"segment.ms": 5})),
            _said(admin, lambda it: it.alter_config(broker_resource(1), {"log.dirs": "x"})),
            _said(admin, lambda it: it.alter_config(topic_resource("nope"), {"segment.ms": 5})),
        ]
        found = admin.describe_config(orders, ["segment.ms", "cleanup.policy"])
        admin.alter_configs(
            {
                orders: [
                    ConfigChange("segment.ms", ConfigOperation.DELETE, None),
                    ConfigChange("cleanup.policy", ConfigOperation.SUBTRACT, "compact"),
                ]
            }
        )
        return [*said, found, admin.describe_config(orders, ["segment.ms", "cleanup.policy"])]

    said = same(admins, change)

    assert said[-2]["cleanup.policy"].value == "delete,compact"
    assert said[-1]["cleanup.policy"].value == "delete"
    topics = same(
        admins,
        lambda admin: sorted(
            each for each in admin.list_config_resources([ResourceType.TOPIC]) if each.name == "orders"
        ),
    )
    assert topics == [orders]


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize(
    "spec",
    # Named without the time: the processes that run the tests must agree on what they are called.
    [*OffsetSpec, pytest.param(START_MS + 2, id="start+2"), pytest.param(START_MS + 6, id="start+6"), 0],
    ids=str,
)
def test_list_offsets_matches_kafka(admins: tuple[Admin, Admin], spec: int, isolation: Any) -> None:
    same(
        admins,
        lambda admin: admin.list_offsets({ORDERS_0: spec, ORDERS_1: spec}, isolation=isolation),
    )


def test_errors_for_missing_resources_match_kafka(admins: tuple[Admin, Admin]) -> None:
    said = same(
        admins, lambda admin: admin.list_offsets({ORDERS_0: -1, NOPE_0: -1, TopicPartition("orders", 9): -1})
    )

    assert set(said["refused"].values()) == {"UNKNOWN_TOPIC_OR_PARTITION"}
    assert said["done"][ORDERS_0].offset == 3


def test_delete_records_matches_kafka(admins: tuple[Admin, Admin]) -> None:
    def delete(admin: Admin) -> list[Any]:
        admin.create_topic("gone", partitions=1)
        address = ",".join(admin._client.settings.bootstrap_servers)
        with Producer(bootstrap_servers=address) as producer:
            producer.send("gone", b"a", partition=0)
            producer.send("gone", b"b", partition=0)
        gone = TopicPartition("gone", 0)
        return [
            _said(admin, partial(Admin.delete_records, before={gone: offset}))
            for offset in (0, 1, 5, 1, UP_TO_HIGH_WATERMARK)
        ]

    assert same(admins, delete)[-1] == {TopicPartition("gone", 0): 2}


def test_describe_producers_matches_kafka(admins: tuple[Admin, Admin]) -> None:
    def describe(admin: Admin) -> Any:
        found = admin.describe_producers([ORDERS_0, ORDERS_1])
        # Ids are given out in another order.
        return {tp: [replace(each, producer_id=0, last_timestamp_ms=0) for each in found[tp]] for tp in found}

    found = same(admins, describe)

    assert [each.last_sequence for each in found[ORDERS_0]] == [2]
    same(admins, lambda admin: admin.describe_producers([NOPE_0], broker=1, timeout_ms=2000))


def test_describe_cluster_matches_kafka(admins: tuple[Admin, Admin]) -> None:
    def describe(admin: Admin) -> Any:
        found = admin.describe_cluster(operations=True, fenced=True)
        return [{number: replace(node, port=0) for number, node in found.nodes.items()}, found.operations]

    same(admins, describe)
    same(admins, lambda admin: admin.describe_cluster().operations)
    assert (
        same(admins, lambda admin: admin.describe_cluster(endpoints="controllers"))
        == "MISMATCHED_ENDPOINT_TYPE"
    )
    assert same(admins, lambda admin: admin.unregister_broker(55)) == "BROKER_ID_NOT_REGISTERED"


def test_versions_are_those_of_kafka_where_they_are_spoken(admins: tuple[Admin, Admin]) -> None:
    ours, theirs = (admin.api_versions()[1].versions for admin in admins)

    assert {key: theirs[key] for key in ours} == dict(ours)


def test_describe_features_matches_kafka(admins: tuple[Admin, Admin]) -> None:
    found = same(admins, lambda admin: admin.describe_features().finalized)
    down = {"metadata.version": FeatureUpdate(level=7, type=UpgradeType.SAFE_DOWNGRADE)}

    assert found["metadata.version"].last >= 25
    same(admins, lambda admin: admin.update_features({"metadata.version": FeatureUpdate(level=99)}))
    same(admins, lambda admin: admin.update_features({"no.such": FeatureUpdate(level=1)}))
    same(admins, lambda admin: admin.update_features(down, validate_only=True))


def test_describe_quorum_matches_kafka(admins: tuple[Admin, Admin]) -> None:
    def describe(admin: Admin) -> Any:
        found = admin.describe_quorum()
        assert found.high_watermark > 0
        return [
            found.leader_id,
            [each.id for each in found.voters],
            found.observers,
            {number: [each.listener for each in there] for number, there in found.nodes.items()},
        ]

    assert same(admins, describe)[1] == [1]


def test_elect_leaders_matches_kafka(admins: tuple[Admin, Admin]) -> None:
    assert same(admins, lambda admin: admin.elect_leaders("preferred", [ORDERS_0, NOPE_0]))["done"] == {
        ORDERS_0: False
    }
    assert same(admins, lambda admin: admin.elect_leaders("preferred")) == {}
    same(admins, lambda admin: admin.elect_leaders("unclean", [ORDERS_0]))


def test_describe_log_dirs_matches_kafka(admins: tuple[Admin, Admin]) -> None:
    def describe(admin: Admin) -> Any:
        [found] = admin.describe_log_dirs([1], partitions=[ORDERS_0, ORDERS_1])[1].values()
        assert Path(found.path).is_dir()
        assert found.total_bytes is not None
        return [found.error, found.cordoned, found.replicas]

    _, _, replicas = same(admins, describe)

    assert replicas[ORDERS_0].size_bytes > 0
