"""The metadata hash of a group changes with its subscribed topics, and with nothing else."""

from barnabas.base.ids import ZERO_UUID, Uuid
from barnabas.coordinators.group.assignors.metadata_hash import group_hash, topic_hash
from barnabas.metadata.image import BrokerImage, PartitionImage, TopicImage
from barnabas.protocol.stored.cluster_nodes import RegisterBrokerRecord

ID, OTHER_ID = Uuid(bytes(range(16))), Uuid(bytes(range(1, 17)))


def partition(*replicas: int, leader_epoch: int = 0) -> PartitionImage:
    return PartitionImage(
        replicas=replicas,
        directories=(ZERO_UUID,) * len(replicas),
        isr=replicas,
        leader=replicas[0],
        leader_epoch=leader_epoch,
        partition_epoch=0,
    )


def brokers(*racks: str | None) -> dict[int, BrokerImage]:
    return {
        number: BrokerImage(
            id=number,
            epoch=1,
            fenced=False,
            in_controlled_shutdown=False,
            registration=RegisterBrokerRecord(broker_id=number, rack=rack),
        )
        for number, rack in enumerate(racks)
    }


ORDERS = TopicImage("orders", ID, (partition(0, 1), partition(1, 2)))
RACKS = brokers("a", "b", None)


def test_a_topic_that_was_made_again_is_another() -> None:
    assert topic_hash(TopicImage("orders", OTHER_ID, ORDERS.partitions), RACKS) != topic_hash(ORDERS, RACKS)


def test_a_topic_that_has_grown_is_another() -> None:
    grown = TopicImage("orders", ID, (*ORDERS.partitions, partition(0, 1)))

    assert topic_hash(grown, RACKS) != topic_hash(ORDERS, RACKS)
    assert topic_hash(grown, {}) != topic_hash(ORDERS, {})


def test_replicas_in_other_racks_make_another_topic() -> None:
    assert topic_hash(ORDERS, brokers("a", "c", None)) != topic_hash(ORDERS, RACKS)
    assert topic_hash(ORDERS, brokers("b", "a", None)) != topic_hash(ORDERS, RACKS)


def test_elections_and_the_order_of_replicas_change_nothing() -> None:
    moved = TopicImage("orders", ID, (partition(1, 0, leader_epoch=5), partition(2, 1)))

    assert topic_hash(moved, RACKS) == topic_hash(ORDERS, RACKS)


def test_where_no_broker_has_a_rack_it_is_the_same_as_where_none_is_known() -> None:
    assert topic_hash(ORDERS, brokers(None, None, None)) == topic_hash(ORDERS, {})
    # A rack that holds none of its replicas.
    assert topic_hash(ORDERS, brokers(None, None, None, "a")) == topic_hash(ORDERS, {})


def test_a_group_without_topics_has_zero() -> None:
    assert group_hash({}) == 0


def test_the_group_hash_does_not_depend_on_the_order_of_topics() -> None:
    assert group_hash({"a": 1, "b": 2}) == group_hash({"b": 2, "a": 1})
    assert group_hash({"a": 1, "b": 2}) != group_hash({"a": 2, "b": 1})


def test_hashes_are_numbers_that_a_record_can_hold() -> None:
    hashes = [group_hash({"a": number}) for number in range(50)]

    assert all(-(2**63) <= one < 2**63 for one in hashes)
    assert min(hashes) < 0 < max(hashes)
