"""Leaders of partitions: ElectLeaders, AlterPartition, and periodic elections."""

from dataclasses import replace
from typing import Any

import pytest

from barnabas.base.ids import Uuid
from barnabas.controller.partition_change import Election, PartitionChange
from barnabas.metadata.image import PartitionImage
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.replicas import (
    AlterPartitionPartitionData,
    AlterPartitionRequest,
    AlterPartitionTopicData,
    BrokerState,
    ElectLeadersRequest,
    TopicPartitions,
)
from barnabas.protocol.stored.cluster_nodes import NoOpRecord
from barnabas.protocol.stored.cluster_topics import ConfigRecord, PartitionChangeRecord
from support.controllers import ActiveController

PREFERRED, UNCLEAN = 0, 1


def shown(world: ActiveController, name: str) -> tuple[Any, ...]:
    one = world.partition(name)
    return one.leader, one.isr, one.elr


def elect(
    world: ActiveController, kind: int, *partitions: tuple[str, int]
) -> list[tuple[str, int, int, str | None]]:
    asked = None
    if partitions:
        asked = [TopicPartitions(topic=name, partitions=[number]) for name, number in partitions]
    response = world.ask(ElectLeadersRequest(election_type=kind, topic_partitions=asked))
    return [
        (topic.topic, one.partition_id, one.error_code, one.error_message)
        for topic in response.replica_election_results
        for one in topic.partition_result
    ]


def with_moved_leader() -> ActiveController:
    """Broker 1 was down, so broker 2 leads; broker 1 is back in sync."""
    world = ActiveController(session_timeout_ms=9_000).with_brokers(1, 2).with_topic("orders", [1, 2])
    world.beat(1, want_fence=True)
    world.beat(1)
    alter(world, 2, "orders", isr=[2, 1])
    assert shown(world, "orders") == (2, (2, 1), ())
    return world


def alter(
    world: ActiveController, broker: int, name: str, *, isr: list[int], recovery: int = 0, **changes: Any
) -> Any:
    partition = world.partition(name)
    data = AlterPartitionPartitionData(
        partition_index=0,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        new_isr_with_epochs=[
            BrokerState(broker_id=one, broker_epoch=world.image.brokers[one].epoch) for one in isr
        ],
        leader_recovery_state=recovery,
    )
    for field, value in changes.items():
        setattr(data, field, value)
    request = AlterPartitionRequest(
        broker_id=broker,
        broker_epoch=world.image.brokers[broker].epoch,
        topics=[AlterPartitionTopicData(topic_id=world.image.topics[name].id, partitions=[data])],
    )
    (topic,) = world.ask(request).topics
    (answer,) = topic.partitions
    return answer


# ElectLeaders


def test_the_preferred_replica_leads_again() -> None:
    world = with_moved_leader()

    assert elect(world, PREFERRED, ("orders", 0)) == [("orders", 0, 0, None)]

    assert shown(world, "orders") == (1, (2, 1), ())
    assert world.image == world.replayed()


def test_elections_that_are_not_needed_or_not_possible_say_why() -> None:
    world = ActiveController().with_brokers(1, 2).with_topic("led", [1, 2]).with_topic("away", [2, 1])
    world.beat(2, want_fence=True)

    assert elect(world, PREFERRED, ("led", 0), ("away", 0), ("led", 1), ("none", 0)) == [
        ("led", 0, 84, "Leader election not needed for topic partition."),
        ("away", 0, 80, "The preferred leader was not available."),
        ("led", 1, 3, "No such partition as led-1"),
        ("none", 0, 3, "No such topic as none"),
    ]
    assert elect(world, UNCLEAN, ("led", 0)) == [
        ("led", 0, 84, "Leader election not needed for topic partition.")
    ]


def test_an_election_of_all_partitions_omits_unaffected_ones() -> None:
    world = with_moved_leader().with_topic("led", [1, 2])

    assert elect(world, PREFERRED) == [("orders", 0, 0, None)]


def test_an_unknown_kind_of_election_is_refused_as_a_whole() -> None:
    world = ActiveController().with_brokers(1).with_topic("orders", [1])
    request = ElectLeadersRequest(
        election_type=9, topic_partitions=[TopicPartitions(topic="orders", partitions=[0])]
    )

    response = world.ask(request)

    assert response.error_code == ErrorCode.INVALID_REQUEST
    (topic,) = response.replica_election_results
    assert topic.partition_result[0].error_code == ErrorCode.INVALID_REQUEST


def without_anybody_in_sync(**configs: str) -> ActiveController:
    """Broker 1, the last in-sync replica, is down; broker 2 is up and out of sync."""
    world = ActiveController().with_brokers(1, 2).with_topic("orders", [1, 2], **configs)
    alter(world, 1, "orders", isr=[1])
    world.beat(1, want_fence=True)
    assert shown(world, "orders")[0] == -1
    return world


def test_an_unclean_election_takes_any_live_replica() -> None:
    world = without_anybody_in_sync()

    assert elect(world, UNCLEAN, ("orders", 0)) == [("orders", 0, 0, None)]

    assert shown(world, "orders") == (2, (2,), ())
    assert world.partition("orders").leader_recovery_state == 1
    assert world.image == world.replayed()


def test_an_election_without_candidates_is_an_error() -> None:
    world = without_anybody_in_sync()
    world.beat(2, want_fence=True)

    assert elect(world, UNCLEAN, ("orders", 0)) == [
        ("orders", 0, 83, "Eligible topic partition leaders are not available.")
    ]


# AlterPartition


def test_a_leader_shrinks_and_grows_its_isr() -> None:
    world = ActiveController().with_brokers(1, 2).with_topic("orders", [1, 2])
    before = world.partition("orders")

    shrunk = alter(world, 1, "orders", isr=[1])
    grown = alter(world, 1, "orders", isr=[1, 2])

    assert (shrunk.error_code, shrunk.isr, shrunk.leader_id) == (0, [1], 1)
    assert shrunk.partition_epoch == before.partition_epoch + 1
    # No election, so the leader epoch stays.
    assert shrunk.leader_epoch == before.leader_epoch
    assert (grown.isr, grown.partition_epoch) == ([1, 2], before.partition_epoch + 2)


def test_a_replica_removed_below_min_isr_stays_eligible() -> None:
    world = ActiveController().with_brokers(1, 2).with_topic("orders", [1, 2], min_insync_replicas="2")

    alter(world, 1, "orders", isr=[1])
    assert shown(world, "orders") == (1, (1,), (2,))

    alter(world, 1, "orders", isr=[1, 2])
    assert shown(world, "orders") == (1, (1, 2), ())


def test_the_same_isr_changes_nothing() -> None:
    world = ActiveController().with_brokers(1, 2).with_topic("orders", [1, 2])
    before = world.partition("orders")

    answer = alter(world, 1, "orders", isr=[1, 2])

    assert (answer.error_code, answer.partition_epoch) == (0, before.partition_epoch)
    assert world.partition("orders") is before


def test_version_2_names_replicas_without_their_epochs() -> None:
    world = ActiveController().with_brokers(1, 2).with_topic("orders", [1, 2])

    answer = alter(world, 1, "orders", isr=[], new_isr=[1])

    assert answer.isr == [1]


@pytest.mark.parametrize(
    ("broker", "isr", "changes", "code"),
    [
        (1, [1], {"partition_index": 5}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (1, [1], {"partition_index": -1}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (1, [1], {"leader_epoch": 9}, ErrorCode.NOT_CONTROLLER),
        (1, [1], {"partition_epoch": 9}, ErrorCode.NOT_CONTROLLER),
        (1, [1], {"leader_epoch": -1}, ErrorCode.FENCED_LEADER_EPOCH),
        (2, [2], {}, ErrorCode.INVALID_REQUEST),
        (1, [1], {"partition_epoch": -1}, ErrorCode.INVALID_UPDATE_VERSION),
        (1, [2], {}, ErrorCode.INVALID_REQUEST),
        (1, [1, 4], {}, ErrorCode.INVALID_REQUEST),
        (1, [1, 1], {}, ErrorCode.INVALID_REQUEST),
        (1, [1], {"leader_recovery_state": 1}, ErrorCode.INVALID_REQUEST),
        (1, [1], {"leader_recovery_state": 2}, ErrorCode.INVALID_REQUEST),
        (1, [1, 3], {}, ErrorCode.INELIGIBLE_REPLICA),
        (
            1,
            [1],
            {
                "new_isr_with_epochs": [
                    BrokerState(broker_id=1, broker_epoch=-1),
                    BrokerState(broker_id=2, broker_epoch=1),
                ]
            },
            ErrorCode.INELIGIBLE_REPLICA,
        ),
    ],
)
def test_isrs_that_are_refused(broker: int, isr: list[int], changes: dict[str, Any], code: ErrorCode) -> None:
    world = ActiveController().with_brokers(1, 2, 3, 4).with_topic("orders", [1, 2, 3])
    world.beat(3, want_fence=True)
    before = world.partition("orders")

    answer = alter(world, broker, "orders", isr=isr, **changes)

    assert answer.error_code == code
    assert world.partition("orders") is before


def test_a_broker_of_another_epoch_may_not_alter() -> None:
    world = ActiveController().with_brokers(1)

    response = world.ask(AlterPartitionRequest(broker_id=1, broker_epoch=0))

    assert response.error_code == ErrorCode.STALE_BROKER_EPOCH


def test_a_missing_topic_is_reported_by_its_id() -> None:
    world = ActiveController().with_brokers(1)
    unknown = Uuid(b"u" * 16)
    request = AlterPartitionRequest(
        broker_id=1,
        broker_epoch=world.image.brokers[1].epoch,
        topics=[
            AlterPartitionTopicData(
                topic_id=unknown, partitions=[AlterPartitionPartitionData(partition_index=3)]
            )
        ],
    )

    (topic,) = world.ask(request).topics

    assert topic.topic_id == unknown
    assert [(one.partition_index, one.error_code) for one in topic.partitions] == [
        (3, ErrorCode.UNKNOWN_TOPIC_ID)
    ]


def test_a_partition_twice_in_one_request_is_altered_once() -> None:
    world = ActiveController().with_brokers(1, 2).with_topic("orders", [1, 2])
    one = AlterPartitionPartitionData(
        partition_index=0, leader_epoch=0, partition_epoch=0, new_isr_with_epochs=[BrokerState(broker_id=1)]
    )
    request = AlterPartitionRequest(
        broker_id=1,
        broker_epoch=world.image.brokers[1].epoch,
        topics=[AlterPartitionTopicData(topic_id=world.image.topics["orders"].id, partitions=[one, one])],
    )

    (topic,) = world.ask(request).topics

    assert [each.error_code for each in topic.partitions] == [0, ErrorCode.INVALID_UPDATE_VERSION]
    assert world.partition("orders").partition_epoch == 1


def test_a_leader_says_that_it_has_recovered() -> None:
    world = without_anybody_in_sync()
    elect(world, UNCLEAN, ("orders", 0))

    answer = alter(world, 2, "orders", isr=[2], recovery=0)

    assert (answer.error_code, answer.leader_recovery_state) == (0, 0)
    assert world.partition("orders").leader_recovery_state == 0


# Periodic elections


def test_leadership_returns_to_preferred_replicas_at_intervals() -> None:
    world = with_moved_leader()

    quiet = elections(world, 299_000)
    found = elections(world, 1_000)

    assert quiet == []
    assert [one.leader for one in found] == [1]
    assert shown(world, "orders")[0] == 1


def elections(world: ActiveController, ms: int) -> list[PartitionChangeRecord]:
    """Advance the time in steps, with heartbeats of the brokers."""
    found: list[object] = []
    for _ in range(ms // 1_000):
        for broker in world.image.brokers:
            if not world.image.brokers[broker].fenced:
                world.beat(broker)
        found += world.tick(1_000)
    return [one for one in found if isinstance(one, PartitionChangeRecord)]


def test_rebalancing_can_be_switched_off() -> None:
    world = ActiveController(auto_leader_rebalance=False).with_brokers(1, 2).with_topic("orders", [1, 2])
    world.beat(1, want_fence=True)
    world.beat(1)
    alter(world, 2, "orders", isr=[2, 1])

    assert elections(world, 400_000) == []


def test_unclean_election_selects_a_leader_that_may_lack_records() -> None:
    world = ActiveController().with_brokers(1, 2)
    world.with_topic("orders", [1, 2], unclean_leader_election_enable="true")
    alter(world, 1, "orders", isr=[1])

    world.beat(1, want_fence=True)

    # Broker 1 is eligible but down, so there is no clean candidate; broker 2 is up.
    assert shown(world, "orders") == (2, (2,), ())
    assert world.partition("orders").leader_recovery_state == 1


def test_enabling_unclean_election_elects_at_the_next_check() -> None:
    world = without_anybody_in_sync()
    world.write_record(
        ConfigRecord(
            resource_type=2, resource_name="orders", name="unclean.leader.election.enable", value="true"
        )
    )

    (record,) = elections(world, 300_000)

    assert record.leader == 2


def test_a_no_op_record_is_written_twice_a_second() -> None:
    world = ActiveController(max_idle_interval_ms=500)

    assert world.tick(499) == []
    assert world.tick(1) == [NoOpRecord()]
    assert world.tick(499) == []
    assert world.tick(1) == [NoOpRecord()]


def test_the_next_time_that_something_is_due_is_known() -> None:
    world = ActiveController(max_idle_interval_ms=0, session_timeout_ms=9_000)
    start = world.now_ms
    assert world.controller.next_due_ms(start) == start + 300_000

    world.with_brokers(1)

    assert world.controller.next_due_ms(start) == start + 9_001
    assert world.tick(9_000) == []


# Reassignments, which only a log of Kafka's controller can contain


def change(partition: PartitionImage, **changes: Any) -> PartitionChangeRecord | None:
    return PartitionChange(
        partition=partition,
        topic_id=Uuid(b"t" * 16),
        index=0,
        may_lead=lambda broker: True,
        min_isr=1,
        elr_enabled=True,
        default_directory=lambda broker: Uuid(b"d" * 16),
        **changes,
    ).record()


def reassigning() -> PartitionImage:
    return PartitionImage(
        replicas=(1, 2, 3),
        directories=(Uuid(b"1" * 16), Uuid(b"2" * 16), Uuid(b"3" * 16)),
        isr=(1, 2),
        removing_replicas=(1,),
        adding_replicas=(3,),
        leader=1,
        leader_epoch=4,
        partition_epoch=7,
    )


def test_a_reassignment_ends_when_added_replicas_are_in_sync() -> None:
    assert change(reassigning(), isr=[1, 2]) is None

    record = change(reassigning(), isr=[1, 3])

    assert record == PartitionChangeRecord(
        topic_id=Uuid(b"t" * 16),
        partition_id=0,
        isr=[3],
        leader=3,
        replicas=[2, 3],
        removing_replicas=[],
        adding_replicas=[],
        directories=[Uuid(b"2" * 16), Uuid(b"3" * 16)],
    )


def test_a_reassignment_to_fewer_replicas_waits_for_the_remaining_ones() -> None:
    shrinking = replace(reassigning(), adding_replicas=())

    assert change(shrinking, isr=[1, 2]) is None
    record = change(shrinking, isr=[1, 2, 3])

    assert record is not None
    assert (record.isr, record.replicas, record.leader) == ([2, 3], [2, 3], 2)


def test_a_leader_that_stays_gets_a_new_epoch_when_a_replica_is_taken_away() -> None:
    record = change(replace(reassigning(), leader=2), isr=[2, 3], election=Election.ONLINE)

    assert record is not None
    assert (record.leader, record.replicas) == (2, [2, 3])
