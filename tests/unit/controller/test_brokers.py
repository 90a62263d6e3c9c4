"""Brokers register, are unfenced, shut down, and are fenced."""

from typing import Any

import pytest

from barnabas.base.ids import Uuid
from barnabas.controller.registrations import as_written
from barnabas.metadata.partition import UNASSIGNED
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.brokers import (
    ControllerRegistrationRequest,
    Feature,
    Listener,
    UnregisterBrokerRequest,
)
from barnabas.protocol.messages.log_dirs import (
    AssignReplicasToDirsDirectoryData,
    AssignReplicasToDirsPartitionData,
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsTopicData,
)
from barnabas.protocol.messages.transactions import AllocateProducerIdsRequest
from barnabas.protocol.stored.cluster_nodes import (
    BrokerRegistrationChangeRecord,
    NoOpRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from barnabas.protocol.stored.cluster_topics import PartitionChangeRecord, ProducerIdsRecord
from barnabas.protocol.stored.framing import Versioned
from support.controllers import ActiveController, creatable, directory_of, registration


def shown(world: ActiveController, name: str) -> tuple[Any, ...]:
    one = world.partition(name)
    return one.leader, one.isr, one.elr, one.last_known_elr


# Registration


def test_a_broker_is_registered_fenced_and_its_epoch_is_the_offset() -> None:
    world = ActiveController()
    offset = world.next_offset

    answer = world.register(1)

    assert (answer.error_code, answer.broker_epoch) == (0, offset)
    broker = world.image.brokers[1]
    assert (broker.epoch, broker.fenced) == (offset, True)
    assert broker.endpoint("PLAINTEXT") == ("localhost", 9093)
    assert broker.registration.log_dirs == [directory_of(1)]
    assert broker.registration.cordoned_log_dirs is None


def test_the_same_incarnation_keeps_its_epoch_and_state() -> None:
    world = ActiveController().with_brokers(1)
    epoch = world.image.brokers[1].epoch

    answer = world.register(1, rack="a")

    assert answer.broker_epoch == epoch
    assert not world.image.brokers[1].fenced
    assert world.image.brokers[1].registration.rack == "a"


def test_another_incarnation_waits_for_the_session_timeout_of_the_first() -> None:
    world = ActiveController(session_timeout_ms=9_000).with_brokers(1)

    assert world.register(1, incarnation=2).error_code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    world.now_ms += 9_001
    assert world.register(1, incarnation=2).error_code == 0


def test_a_fenced_broker_is_replaced_at_once() -> None:
    world = ActiveController()
    world.register(1)
    first = world.image.brokers[1].epoch

    assert world.register(1, incarnation=2).broker_epoch > first


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"cluster_id": "other"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"is_migrating_zk_broker": True}, ErrorCode.BROKER_ID_NOT_REGISTERED),
        ({"log_dirs": []}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": [UNASSIGNED]}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": [directory_of(2)] * 2}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": [directory_of(1)]}, ErrorCode.INVALID_REGISTRATION),
        ({"features": []}, ErrorCode.INVALID_REGISTRATION),
        (
            {
                "features": [
                    Feature(name="metadata.version", min_supported_version=7, max_supported_version=29)
                ]
            },
            ErrorCode.UNSUPPORTED_VERSION,
        ),
        (
            {
                "features": [
                    Feature(name="metadata.version", min_supported_version=7, max_supported_version=30)
                ]
            },
            ErrorCode.UNSUPPORTED_VERSION,
        ),
    ],
)
def test_registrations_that_are_refused(changes: dict[str, Any], code: ErrorCode) -> None:
    world = ActiveController().with_brokers(1)

    answer = world.register(2, **changes)

    assert (answer.error_code, answer.broker_epoch) == (code, -1)
    assert 2 not in world.image.brokers


def test_a_broker_after_an_unclean_shutdown_leaves_all_isrs() -> None:
    world = ActiveController().with_brokers(1, 2).with_topic("orders", [1, 2], min_insync_replicas="2")
    world.now_ms += 20_000

    world.register(1, incarnation=2)

    assert shown(world, "orders") == (2, (2,), (), ())
    assert world.image == world.replayed()


def test_a_broker_that_stopped_cleanly_is_still_eligible() -> None:
    world = ActiveController().with_brokers(1, 2).with_topic("orders", [1, 2], min_insync_replicas="2")
    world.now_ms += 20_000

    world.register(1, incarnation=2, previous_broker_epoch=world.image.brokers[1].epoch)

    assert shown(world, "orders") == (2, (2,), (1,), ())


def test_a_broker_that_was_eligible_and_did_not_stop_cleanly_is_so_no_more() -> None:
    world = ActiveController().with_brokers(1, 2).with_topic("orders", [1, 2], min_insync_replicas="2")
    world.beat(1, want_fence=True)
    assert shown(world, "orders") == (2, (2,), (1,), ())

    world.register(1, incarnation=2)

    assert shown(world, "orders") == (2, (2,), (), ())


def test_an_uncleanly_stopped_last_replica_is_the_last_known_leader() -> None:
    world = ActiveController().with_brokers(1).with_topic("orders", [1])
    world.now_ms += 20_000

    world.register(1, incarnation=2)
    assert shown(world, "orders") == (-1, (), (), (1,))
    world.beat(1)

    # It had every acknowledged record, but may have lost unflushed ones since.
    assert shown(world, "orders") == (1, (1,), (), ())
    assert world.partition("orders").leader_recovery_state == 1
    assert world.image == world.replayed()


# Heartbeats


def test_a_broker_is_unfenced_when_it_knows_its_own_registration() -> None:
    world = ActiveController()
    epoch = world.register(1).broker_epoch

    behind = world.beat(1, current_metadata_offset=epoch - 1)
    waiting = world.beat(1, want_fence=True)
    ready = world.beat(1, current_metadata_offset=epoch)

    assert (behind.is_caught_up, behind.is_fenced) == (False, True)
    assert (waiting.is_caught_up, waiting.is_fenced) == (True, True)
    assert (ready.is_caught_up, ready.is_fenced) == (True, False)
    assert not world.image.brokers[1].fenced


@pytest.mark.parametrize("changes", [{"broker_epoch": 1}, {"broker_id": 7}])
def test_a_broker_with_a_stale_registration_is_refused(changes: dict[str, int]) -> None:
    world = ActiveController().with_brokers(1)

    assert world.beat(1, **changes).error_code == ErrorCode.STALE_BROKER_EPOCH


def test_a_broker_without_heartbeats_is_fenced_and_loses_leadership() -> None:
    world = ActiveController(session_timeout_ms=9_000).with_brokers(1, 2)
    world.with_topic("both", [1, 2]).with_topic("alone", [1])
    world.tick(5_000)
    world.beat(2)

    records = [one for one in world.tick(4_001) if not isinstance(one, NoOpRecord)]

    assert records[-1] == BrokerRegistrationChangeRecord(
        broker_id=1, broker_epoch=world.image.brokers[1].epoch, fenced=1
    )
    assert shown(world, "both") == (2, (2,), (), ())
    # It was the last in-sync replica, so it may lead when it is back.
    assert shown(world, "alone") == (-1, (), (1,), (1,))
    assert world.image.brokers[1].fenced
    assert world.image == world.replayed()


def test_a_returning_broker_leads_partitions_without_other_leaders() -> None:
    world = ActiveController(session_timeout_ms=9_000).with_brokers(1).with_topic("alone", [1])
    world.tick(9_001)
    epoch = world.partition("alone").leader_epoch

    world.beat(1)

    assert shown(world, "alone") == (1, (1,), (), ())
    assert world.partition("alone").leader_epoch == epoch + 1
    assert world.partition("alone").leader_recovery_state == 0


def test_a_session_lasts_as_long_as_its_timeout() -> None:
    world = ActiveController(session_timeout_ms=9_000).with_brokers(1)

    world.tick(9_000)
    assert not world.image.brokers[1].fenced
    world.tick(1)
    assert world.image.brokers[1].fenced


def test_without_elr_the_last_one_in_sync_stays_in_the_isr() -> None:
    levels = [one for one in ActiveController().log if getattr(one, "name", "") == "metadata.version"]
    world = ActiveController(bootstrap=levels, session_timeout_ms=9_000).with_brokers(1)
    world.with_topic("alone", [1])

    world.tick(9_001)

    assert shown(world, "alone") == (-1, (1,), (), ())


# Shutting down


def test_a_broker_that_leads_hands_over_before_it_stops() -> None:
    world = ActiveController().with_brokers(1, 2).with_topic("orders", [1, 2])

    asked = world.beat(1, want_shut_down=True)
    assert (asked.should_shut_down, asked.is_fenced) == (False, False)
    assert world.image.brokers[1].in_controlled_shutdown
    assert shown(world, "orders") == (2, (2,), (), ())

    # Broker 2 has not read the change yet.
    assert not world.beat(1, want_shut_down=True).should_shut_down
    world.beat(2)
    granted = world.beat(1, want_shut_down=True)
    assert (granted.should_shut_down, granted.is_fenced) == (True, True)
    assert world.image.brokers[1].fenced
    assert world.image == world.replayed()


def test_the_only_broker_stops_as_kafkas_log_shows_it() -> None:
    world = ActiveController().with_brokers(1).with_topic("orders", [1])
    epoch, topic_id = world.image.brokers[1].epoch, world.image.topics["orders"].id
    before = len(world.log)

    world.beat(1, want_shut_down=True)
    assert world.beat(1, want_shut_down=True).should_shut_down

    assert [as_written(one) for one in world.log[before:]] == [
        Versioned(
            BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=epoch, in_controlled_shutdown=1), 1
        ),
        PartitionChangeRecord(
            partition_id=0,
            topic_id=topic_id,
            isr=[],
            leader=-1,
            eligible_leader_replicas=[1],
            last_known_elr=[1],
        ),
        Versioned(BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=epoch, fenced=1), 0),
    ]


def test_a_broker_that_leads_nothing_may_stop_at_once() -> None:
    world = ActiveController().with_brokers(1)

    assert world.beat(1, want_shut_down=True).should_shut_down


def test_a_stopped_broker_returns_only_by_registering_again() -> None:
    world = ActiveController().with_brokers(1).with_topic("orders", [1])
    world.beat(1, want_shut_down=True)
    world.beat(1, want_shut_down=True)

    assert world.beat(1).is_fenced
    world.register(1, incarnation=2)
    assert not world.beat(1).is_fenced
    assert shown(world, "orders")[:2] == (1, (1,))


def test_a_broker_that_leaves_gets_no_new_replicas() -> None:
    world = ActiveController().with_brokers(1, 2).with_topic("orders", [1, 2])
    world.beat(1, want_shut_down=True)

    world.create(creatable("new", 4))

    assert {one.replicas for one in world.image.topics["new"].partitions} == {(2,)}


# Directories


def test_a_directory_that_failed_takes_its_partitions_out_of_service() -> None:
    world = ActiveController()
    for broker in (1, 2):
        world.register(broker, log_dirs=[directory_of(broker), directory_of(broker, 1)])
        world.beat(broker)
    world.with_topic("first", [1, 2]).with_topic("second", [1, 2])
    assert world.partition("first").directories == (UNASSIGNED, UNASSIGNED)
    put(world, 1, directory_of(1), "first")
    put(world, 1, directory_of(1, 1), "second")

    world.beat(1, offline_log_dirs=[directory_of(1)])

    assert world.image.brokers[1].registration.log_dirs == [directory_of(1, 1)]
    assert shown(world, "first") == (2, (2,), (), ())
    assert shown(world, "second") == (1, (1, 2), (), ())
    assert world.image == world.replayed()


def put(world: ActiveController, broker: int, directory: Uuid, *names: str, partition: int = 0) -> list[int]:
    request = AssignReplicasToDirsRequest(
        broker_id=broker,
        broker_epoch=world.image.brokers[broker].epoch,
        directories=[
            AssignReplicasToDirsDirectoryData(
                id=directory,
                topics=[
                    AssignReplicasToDirsTopicData(
                        topic_id=world.image.topics[name].id
                        if name in world.image.topics
                        else Uuid(b"x" * 16),
                        partitions=[AssignReplicasToDirsPartitionData(partition_index=partition)],
                    )
                    for name in names
                ],
            )
        ],
    )
    (answer,) = world.ask(request).directories
    return [one.error_code for topic in answer.topics for one in topic.partitions]


def test_replicas_are_assigned_to_directories_one_by_one() -> None:
    world = ActiveController().with_brokers(1, 2)
    world.with_topic("orders", [1, 2]).with_topic("theirs", [2])
    directory = directory_of(1, 1)

    codes = put(world, 1, directory, "orders", "theirs", "none")

    assert codes == [0, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_ID]
    assert put(world, 1, directory, "orders", partition=5) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    # The broker does not have this directory, so the replica in it is offline.
    assert world.partition("orders").directories == (directory, directory_of(2))
    assert shown(world, "orders") == (2, (2,), (), ())


def test_a_change_of_cordoned_directories_is_written_once() -> None:
    world = ActiveController()
    world.register(1)
    before = len(world.log)

    world.beat(1, want_fence=True, cordoned_log_dirs=[])
    world.beat(1, want_fence=True, cordoned_log_dirs=[])

    epoch = world.image.brokers[1].epoch
    assert [as_written(one) for one in world.log[before:]] == [
        Versioned(BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=epoch, cordoned_log_dirs=[]), 3)
    ]


def test_a_broker_with_cordoned_directories_gets_no_new_replicas() -> None:
    world = ActiveController().with_brokers(1, 2)
    world.beat(1, cordoned_log_dirs=[directory_of(1)])

    world.create(creatable("orders", 4))

    assert {one.replicas for one in world.image.topics["orders"].partitions} == {(2,)}


# Others


def test_a_broker_is_unregistered() -> None:
    world = ActiveController().with_brokers(1, 2).with_topic("orders", [1, 2])
    epoch = world.image.brokers[1].epoch

    assert world.ask(UnregisterBrokerRequest(broker_id=1)).error_code == 0

    assert world.log[-1] == UnregisterBrokerRecord(broker_id=1, broker_epoch=epoch)
    assert list(world.image.brokers) == [2]
    assert shown(world, "orders")[:2] == (2, (2,))
    answer = world.ask(UnregisterBrokerRequest(broker_id=1))
    assert answer.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
    assert answer.error_message == "Broker ID 1 is not currently registered"
    assert [one for one in world.tick(100_000) if not isinstance(one, NoOpRecord)][-1].broker_id == 2  # type: ignore[attr-defined]


def test_a_controller_is_registered_with_its_supported_features() -> None:
    world = ActiveController()
    request = ControllerRegistrationRequest(
        controller_id=1,
        incarnation_id=Uuid(b"i" * 16),
        listeners=[Listener(name="CONTROLLER", host="h", port=9093, security_protocol=0)],
        features=[Feature(name="metadata.version", min_supported_version=7, max_supported_version=30)],
    )

    assert world.ask(request).error_code == 0

    found = world.image.controllers[1]
    assert (found.end_points[0].host, found.end_points[0].port) == ("h", 9093)
    assert found.features[0].max_supported_version == 30


def test_blocks_of_producer_ids_are_given_once() -> None:
    world = ActiveController().with_brokers(1)
    epoch = world.image.brokers[1].epoch
    request = AllocateProducerIdsRequest(broker_id=1, broker_epoch=epoch)

    first, second = world.ask(request), world.ask(request)

    assert (first.producer_id_start, first.producer_id_len) == (0, 1000)
    assert (second.producer_id_start, second.producer_id_len) == (1000, 1000)
    assert world.log[-1] == ProducerIdsRecord(broker_id=1, broker_epoch=epoch, next_producer_id=2000)
    stale = world.ask(AllocateProducerIdsRequest(broker_id=1, broker_epoch=epoch - 1))
    assert stale.error_code == ErrorCode.STALE_BROKER_EPOCH


def test_producer_ids_run_out_with_an_error_and_never_start_again() -> None:
    world = ActiveController().with_brokers(1)
    world.write_record(ProducerIdsRecord(broker_id=1, broker_epoch=1, next_producer_id=2**63 - 1000))
    request = AllocateProducerIdsRequest(broker_id=1, broker_epoch=world.image.brokers[1].epoch)

    assert world.ask(request).error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_registration_is_written_as_kafka_writes_it() -> None:
    world = ActiveController()

    (record,) = world.decide(registration(1)).records

    assert isinstance(record, RegisterBrokerRecord)
    assert record.fenced
    assert as_written(record) is record
