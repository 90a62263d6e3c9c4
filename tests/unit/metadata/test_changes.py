"""Records become images; contradicting records are refused."""

import random
import time
from dataclasses import replace

import pytest

from barnabas.base.ids import Uuid
from barnabas.metadata.changes import Changes
from barnabas.metadata.errors import MetadataInconsistent, UnknownMetadataRecord
from barnabas.metadata.image import ALL_BROKERS, EMPTY_IMAGE, TOPIC_RESOURCE, ConfigResource, MetadataImage
from barnabas.metadata.partition import MIGRATING
from barnabas.protocol.stored import cluster_access as access
from barnabas.protocol.stored import cluster_nodes as nodes
from barnabas.protocol.stored import cluster_topics as topics
from barnabas.protocol.stored.framing import _types
from support.metadata_images import replay

ORDERS = Uuid(b"o" * 16)
OTHER = Uuid(b"p" * 16)
DIRECTORY = Uuid(b"d" * 16)


def topic(name: str, topic_id: Uuid, partitions: int = 1) -> list[object]:
    made: list[object] = [topics.TopicRecord(name=name, topic_id=topic_id)]
    for index in range(partitions):
        made.append(
            topics.PartitionRecord(
                partition_id=index,
                topic_id=topic_id,
                replicas=[1, 2],
                isr=[1, 2],
                leader=1,
                leader_epoch=3,
                partition_epoch=5,
                directories=[DIRECTORY, DIRECTORY],
            )
        )
    return made


def config(name: str, value: str | None, topic_name: str = "orders") -> topics.ConfigRecord:
    return topics.ConfigRecord(resource_type=2, resource_name=topic_name, name=name, value=value)


def broker(epoch: int = 7) -> nodes.RegisterBrokerRecord:
    return nodes.RegisterBrokerRecord(broker_id=1, broker_epoch=epoch, log_dirs=[DIRECTORY])


def image_of(*records: object) -> MetadataImage:
    return replay(records)


def test_every_record_type_that_kafka_writes_can_be_applied() -> None:
    known = _types("metadata", ("cluster_topics", "cluster_nodes", "cluster_access"))
    unknown = []
    for cls in known.values():
        try:
            Changes(EMPTY_IMAGE).apply(cls())
        except MetadataInconsistent:
            pass
        except UnknownMetadataRecord:
            unknown.append(cls.__name__)

    assert unknown == []


def test_a_record_of_a_later_release_is_refused() -> None:
    with pytest.raises(UnknownMetadataRecord):
        Changes(EMPTY_IMAGE).apply(object())


def test_a_topic_has_its_partitions_in_order_whatever_the_order_of_the_records() -> None:
    head, *partitions = topic("orders", ORDERS, 3)
    partitions[2].leader = 2  # type: ignore[attr-defined]

    image = image_of(head, *reversed(partitions))

    assert [one.leader for one in image.topics["orders"].partitions] == [1, 1, 2]
    assert image.topics_by_id[ORDERS] is image.topics["orders"]


def test_a_missing_partition_is_an_inconsistent_log() -> None:
    head, _, second = topic("orders", ORDERS, 2)

    with pytest.raises(MetadataInconsistent, match="partition 0 is missing"):
        image_of(head, second)


def test_an_election_counts_both_epochs_and_an_isr_change_only_one() -> None:
    base = image_of(*topic("orders", ORDERS))
    changes = Changes(base)

    changes.apply(topics.PartitionChangeRecord(partition_id=0, topic_id=ORDERS, isr=[2]))
    changes.apply(topics.PartitionChangeRecord(partition_id=0, topic_id=ORDERS, leader=2))

    (partition,) = changes.finish(9, 1, 0).topics["orders"].partitions
    assert (partition.isr, partition.leader) == ((2,), 2)
    assert (partition.leader_epoch, partition.partition_epoch) == (4, 7)
    assert changes.topics_changed == {ORDERS}
    assert base.topics["orders"].partitions[0].isr == (1, 2)


def test_directories_unknown_to_an_old_record_are_migrating_ones() -> None:
    head, partition = topic("orders", ORDERS)
    partition.directories = []  # type: ignore[attr-defined]
    base = image_of(head, partition)

    changes = Changes(base)
    changes.apply(topics.PartitionChangeRecord(partition_id=0, topic_id=ORDERS, replicas=[1, 2, 3]))

    assert base.topics["orders"].partitions[0].directories == (MIGRATING,) * 2
    assert changes.finish(1, 1, 0).topics["orders"].partitions[0].directories == (MIGRATING,) * 3


def test_replicas_without_as_many_directories_are_an_inconsistent_log() -> None:
    changes = Changes(image_of(*topic("orders", ORDERS)))

    with pytest.raises(MetadataInconsistent, match="2 directories for 3 replicas"):
        changes.apply(topics.PartitionChangeRecord(partition_id=0, topic_id=ORDERS, replicas=[1, 2, 3]))


def test_a_removed_topic_takes_its_settings_with_it() -> None:
    base = image_of(*topic("orders", ORDERS), config("retention.ms", "1"), *topic("other", OTHER))
    changes = Changes(base)

    changes.apply(topics.RemoveTopicRecord(topic_id=ORDERS))
    image = changes.finish(9, 1, 0)

    assert list(image.topics) == ["other"]
    assert image.configs == {}
    assert changes.topics_deleted == {ORDERS: base.topics["orders"]}
    assert changes.topics_changed == set()
    assert changes.configs_changed == {ConfigResource(TOPIC_RESOURCE, "orders")}


def test_a_topic_deleted_and_created_again_in_one_batch_is_another_topic() -> None:
    changes = Changes(image_of(*topic("orders", ORDERS), config("retention.ms", "1")))

    for record in [topics.RemoveTopicRecord(topic_id=ORDERS), *topic("orders", OTHER, 2)]:
        changes.apply(record)
    image = changes.finish(9, 1, 0)

    assert image.topics["orders"].id == OTHER
    assert list(image.topics_by_id) == [OTHER]
    assert image.configs == {}
    assert set(changes.topics_deleted) == {ORDERS}
    assert changes.topics_changed == {OTHER}


def test_a_topic_that_came_and_went_in_one_batch_was_never_there() -> None:
    changes = Changes(EMPTY_IMAGE)

    for record in [*topic("orders", ORDERS), topics.RemoveTopicRecord(topic_id=ORDERS)]:
        changes.apply(record)

    assert changes.finish(9, 1, 0) == replace(EMPTY_IMAGE, offset=9, epoch=1, append_time_ms=0)
    assert changes.topics_deleted == {}


@pytest.mark.parametrize("name", ["", "orders"])
def test_clearing_the_elr_is_a_change_of_the_partition_and_no_election(name: str) -> None:
    change = topics.PartitionChangeRecord(
        partition_id=0, topic_id=ORDERS, eligible_leader_replicas=[2], last_known_elr=[1]
    )
    base = image_of(*topic("orders", ORDERS), change, *topic("other", OTHER))
    changes = Changes(base)

    changes.apply(nodes.ClearElrRecord(topic_name=name))

    (partition,) = changes.finish(9, 1, 0).topics["orders"].partitions
    before = base.topics["orders"].partitions[0]
    assert partition == replace(before, elr=(), last_known_elr=(), partition_epoch=before.partition_epoch + 1)
    assert changes.topics_changed == {ORDERS}


def test_clearing_all_elrs_passes_over_a_topic_that_was_just_deleted() -> None:
    change = topics.PartitionChangeRecord(partition_id=0, topic_id=ORDERS, eligible_leader_replicas=[2])
    changes = Changes(image_of(*topic("orders", ORDERS), change))

    changes.apply(topics.RemoveTopicRecord(topic_id=ORDERS))
    changes.apply(nodes.ClearElrRecord(topic_name=""))

    assert changes.finish(9, 1, 0).topics == {}


def test_a_setting_without_value_is_removed() -> None:
    everybody = topics.ConfigRecord(resource_type=4, resource_name="", name="a", value="1")
    base = image_of(config("retention.ms", "1"), config("segment.ms", "2"), everybody)
    changes = Changes(base)

    changes.apply(config("retention.ms", None))
    image = changes.finish(9, 1, 0)

    assert image.config(ConfigResource(TOPIC_RESOURCE, "orders")) == {"segment.ms": "2"}
    assert image.config(ALL_BROKERS) == {"a": "1"}
    assert changes.configs_changed == {ConfigResource(TOPIC_RESOURCE, "orders")}


def test_a_feature_at_level_zero_is_no_feature() -> None:
    base = image_of(nodes.FeatureLevelRecord(name="group.version", feature_level=1))
    changes = Changes(base)

    changes.apply(nodes.FeatureLevelRecord(name="group.version", feature_level=0))

    assert changes.features_changed
    assert changes.finish(1, 1, 0).features == {}


def test_a_broker_changes_its_state_and_keeps_its_registration() -> None:
    base = image_of(broker())
    changes = Changes(base)

    for change in (
        nodes.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=7, cordoned_log_dirs=[]),
        nodes.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=7, fenced=-1),
        nodes.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=7, in_controlled_shutdown=1),
    ):
        changes.apply(change)
    after = changes.finish(1, 1, 0).brokers[1]

    assert (after.fenced, after.in_controlled_shutdown, after.epoch) == (False, True, 7)
    assert after.registration.log_dirs == [DIRECTORY]
    assert after.registration.cordoned_log_dirs == []
    assert base.brokers[1].fenced
    assert base.brokers[1].registration.fenced
    assert changes.brokers_changed == {1}


@pytest.mark.parametrize(
    "record",
    [
        topics.TopicRecord(name="orders", topic_id=OTHER),
        topics.TopicRecord(name="new", topic_id=ORDERS),
        topics.PartitionRecord(partition_id=0, topic_id=OTHER),
        topics.PartitionChangeRecord(partition_id=1, topic_id=ORDERS),
        topics.RemoveTopicRecord(topic_id=OTHER),
        nodes.ClearElrRecord(topic_name="none"),
        nodes.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=6, fenced=1),
        nodes.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=7, fenced=2),
        nodes.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=7, in_controlled_shutdown=-1),
        nodes.BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=7, fenced=1),
        nodes.UnregisterBrokerRecord(broker_id=1, broker_epoch=8),
        nodes.FenceBrokerRecord(id=2, epoch=1),
    ],
    ids=lambda record: type(record).__name__,
)
def test_a_record_that_contradicts_earlier_ones_is_rejected(record: object) -> None:
    changes = Changes(image_of(broker(), *topic("orders", ORDERS)))

    with pytest.raises(MetadataInconsistent) as refused:
        changes.apply(record)

    assert refused.value.record is record
    assert repr(record) in str(refused.value)


def test_a_default_quota_and_a_named_one_are_two() -> None:
    def quota(name: str | None, remove: bool = False) -> access.ClientQuotaRecord:
        entity = [access.EntityData(entity_type="user", entity_name=name)]
        return access.ClientQuotaRecord(entity=entity, key="request_percentage", value=1.0, remove=remove)

    image = image_of(quota(None), quota("a"), quota("a", remove=True))

    assert list(image.access.values()) == [quota(None)]


def test_maps_that_did_not_change_are_shared() -> None:
    base = image_of(broker(), *topic("orders", ORDERS), config("retention.ms", "1"))
    changes = Changes(base)

    changes.apply(config("retention.ms", "2"))
    image = changes.finish(9, 1, 0)

    assert image.topics is base.topics
    assert image.topics_by_id is base.topics_by_id
    assert image.brokers is base.brokers
    assert image.configs is not base.configs


def test_one_change_among_ten_thousand_topics_is_quick() -> None:
    rng = random.Random(1)
    ids = [Uuid(rng.randbytes(16)) for _ in range(10_000)]
    base = image_of(*(record for i, one in enumerate(ids) for record in topic(f"topic-{i}", one)))

    def change() -> float:
        start = time.perf_counter()
        changes = Changes(base)
        changes.apply(topics.PartitionChangeRecord(partition_id=0, topic_id=ids[500], isr=[1]))
        changes.finish(9, 1, 0)
        return time.perf_counter() - start

    # The fastest of several runs, because the machine may be busy.
    assert min(change() for _ in range(20)) < 0.001
