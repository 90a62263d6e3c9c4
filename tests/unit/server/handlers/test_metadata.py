"""What Metadata says of brokers and topics. Topics that are made by asking have tests of their own."""

import asyncio

import pytest

from barnabas.base.ids import ZERO_UUID, Uuid
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.acls import OF_TOPIC
from barnabas.protocol.messages.brokers import UnregisterBrokerRequest
from barnabas.protocol.messages.cluster import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from barnabas.server.handlers.metadata import API
from barnabas.server.requests.slices import AT_ONCE
from support.decided import CLUSTER_ID, Decided, directory_of, one_broker

NOBODY = Uuid(b"there is no such")
EVERYTHING_OF_A_TOPIC = 3576
EVERYTHING_OF_THE_CLUSTER = 8096
NOT_ASKED = -2147483648


def by_name(*names: str | None, **more: bool) -> MetadataRequest:
    asked = [MetadataRequestTopic(name=name) for name in names]
    return MetadataRequest(topics=asked, allow_auto_topic_creation=False, **more)


def by_id(*ids: Uuid, name: str | None = None) -> MetadataRequest:
    asked = [MetadataRequestTopic(topic_id=topic_id, name=name) for topic_id in ids]
    return MetadataRequest(topics=asked, allow_auto_topic_creation=False)


def names(answer: MetadataResponse) -> list[str | None]:
    return [topic.name for topic in answer.topics]


def errors(answer: MetadataResponse) -> list[tuple[str | None, int]]:
    return [(topic.name, topic.error_code) for topic in answer.topics]


def partition(broker: Decided, version: int) -> MetadataResponsePartition:
    """The one partition of the one topic."""
    found: MetadataResponsePartition = broker.ask(API, all_topics(version), version).topics[0].partitions[0]
    return found


def all_topics(version: int) -> MetadataRequest:
    return MetadataRequest(topics=None if version else [])


# Brokers


def test_brokers_have_the_addresses_of_the_clients_listener() -> None:
    broker = Decided(listener="INSIDE")
    broker.register(1, {"INSIDE": ("10.0.0.1", 9192), "PLAINTEXT": ("one.example", 9092)}, rack="a")
    broker.register(2, {"PLAINTEXT": ("two.example", 9092)})
    broker.register(3, {"INSIDE": ("10.0.0.3", 9192)})
    broker.register(4, {"INSIDE": ("10.0.0.4", 9192)}, fenced=True)

    answer = broker.ask(API, MetadataRequest(topics=[]), 12)

    assert answer.brokers == [
        MetadataResponseBroker(node_id=1, host="10.0.0.1", port=9192, rack="a"),
        MetadataResponseBroker(node_id=3, host="10.0.0.3", port=9192, rack=None),
    ]
    assert answer.cluster_id == CLUSTER_ID
    assert answer.topics == []


def test_the_controller_is_some_live_broker() -> None:
    broker = one_broker()
    broker.register(2)
    broker.register(3, fenced=True)

    said = {broker.ask(API, MetadataRequest(topics=[]), 1).controller_id for _ in range(50)}

    assert said == {1, 2}


def test_without_a_live_broker_there_is_no_controller() -> None:
    assert Decided().ask(API, MetadataRequest(topics=[]), 1).controller_id == -1


# Topics


@pytest.mark.parametrize("version", API.versions)
def test_all_topics(version: int) -> None:
    broker = one_broker()
    broker.create("orders", 2)
    broker.create("visits")

    answer = broker.ask(API, all_topics(version), version)

    assert names(answer) == ["orders", "visits"]
    assert [part.partition_index for part in answer.topics[0].partitions] == [0, 1]
    assert all(part.replica_nodes == part.isr_nodes == [1] for part in answer.topics[0].partitions)


def test_an_empty_list_means_no_topics_from_version_1_on() -> None:
    broker = one_broker()
    broker.create("orders")

    assert names(broker.ask(API, MetadataRequest(topics=[]), 0)) == ["orders"]
    assert names(broker.ask(API, MetadataRequest(topics=[]), 1)) == []


def test_known_topics_come_before_unknown_ones_and_each_once() -> None:
    broker = one_broker()
    broker.create("orders")

    answer = broker.ask(API, by_name("none", "orders", "none", "orders"), 12)

    assert errors(answer) == [("orders", 0), ("none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
    assert answer.topics[1].topic_id == ZERO_UUID
    assert answer.topics[1].partitions == []


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a/b", "ü", "x" * 250])
def test_an_invalid_topic_name_has_its_own_error(name: str) -> None:
    answer = one_broker().ask(API, by_name(name), 12)

    assert errors(answer) == [(name, ErrorCode.INVALID_TOPIC_EXCEPTION)]


def test_internal_topics_are_marked_before_they_exist() -> None:
    broker = one_broker()
    broker.create("__consumer_offsets")

    answer = broker.ask(API, by_name("__consumer_offsets", "__share_group_state", "__cluster_metadata"), 12)

    assert [topic.is_internal for topic in answer.topics] == [True, True, False]


def test_many_names_are_answered_in_slices() -> None:
    broker = one_broker()
    broker.create("orders")
    broker.create("visits")
    asked = ["visits", *(f"none-{number}" for number in range(20_000)), "orders", "none-7", "visits"]

    answer = asyncio.run(broker.ask_and_wait(API, by_name(*asked), 12))

    assert names(answer) == ["visits", "orders", *asked[1:20_001]]


def test_many_ids_are_answered_in_slices() -> None:
    broker = one_broker()
    topic_id = broker.create("orders")
    unknown = [Uuid(number.to_bytes(16, "big")) for number in range(10, 3_000)]

    answer = asyncio.run(broker.ask_and_wait(API, by_id(topic_id, *unknown, topic_id), 12))

    assert [topic.topic_id for topic in answer.topics] == [*unknown, topic_id]


def test_all_of_many_topics_are_answered_in_slices() -> None:
    broker = one_broker()
    created = [f"t{number}" for number in range(AT_ONCE + 1)]
    for name in created:
        broker.create(name)
    everything = MetadataRequest(topics=None, include_topic_authorized_operations=True)

    answer = asyncio.run(broker.ask_and_wait(API, everything, 10))

    assert sorted(names(answer)) == sorted(created)
    assert {topic.topic_authorized_operations for topic in answer.topics} == {OF_TOPIC}
    # The rows are made once. From then on the request is answered at once.
    assert sorted(names(broker.ask(API, MetadataRequest(topics=None), 12))) == sorted(created)


# By id


@pytest.mark.parametrize("version", [12, 13])
def test_topics_by_id(version: int) -> None:
    broker = one_broker()
    topic_id = broker.create("orders")

    answer = broker.ask(API, by_id(topic_id, NOBODY, topic_id, name="another"), version)

    assert errors(answer) == [(None, ErrorCode.UNKNOWN_TOPIC_ID), ("orders", 0)]
    assert [topic.topic_id for topic in answer.topics] == [NOBODY, topic_id]


def test_names_are_ignored_if_any_id_is_given() -> None:
    broker = one_broker()
    topic_id = broker.create("orders")
    broker.create("visits")
    asked = [MetadataRequestTopic(name="visits"), MetadataRequestTopic(topic_id=topic_id, name=None)]

    assert names(broker.ask(API, MetadataRequest(topics=asked), 12)) == ["orders"]


@pytest.mark.parametrize("version", [10, 11])
def test_ids_and_missing_names_are_refused_before_version_12(version: int) -> None:
    broker = one_broker()
    topic_id = broker.create("orders")

    for body in (by_id(topic_id), by_id(topic_id, name="orders"), by_name(None)):
        answer = broker.ask(API, body, version)

        [topic] = answer.topics
        assert topic.error_code == ErrorCode.INVALID_REQUEST
        assert topic.name == ((body.topics or [])[0].name or "")
        assert (answer.brokers, answer.cluster_id, answer.controller_id) == ([], None, -1)


def test_neither_id_nor_name_fails_the_whole_request() -> None:
    broker = one_broker()
    broker.create("orders")

    answer = broker.ask(API, by_name("orders", None), 13)

    assert answer == MetadataResponse(
        error_code=ErrorCode.UNKNOWN_SERVER_ERROR,
        topics=[
            MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_SERVER_ERROR, name="orders"),
            MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_SERVER_ERROR, name=""),
        ],
    )


# What may be done


@pytest.mark.parametrize("version", [8, 10, 12])
def test_authorized_operations_are_included_on_request(version: int) -> None:
    broker = one_broker()
    broker.create("orders")

    quiet = broker.ask(API, by_name("orders", "none"), version)
    told = broker.ask(API, by_name("orders", "none", include_topic_authorized_operations=True), version)

    assert [one.topic_authorized_operations for one in quiet.topics] == [NOT_ASKED] * 2
    assert [one.topic_authorized_operations for one in told.topics] == [EVERYTHING_OF_A_TOPIC] * 2
    assert told.topics[0].partitions == quiet.topics[0].partitions


def test_operations_of_the_cluster() -> None:
    broker = one_broker()
    asked = MetadataRequest(topics=[], include_cluster_authorized_operations=True)

    assert broker.ask(API, asked, 10).cluster_authorized_operations == EVERYTHING_OF_THE_CLUSTER
    assert broker.ask(API, MetadataRequest(topics=[]), 10).cluster_authorized_operations == NOT_ASKED


# Replicas that cannot be reached


def test_a_fenced_replica_is_offline() -> None:
    broker = one_broker()
    broker.register(2)
    broker.create("orders", assigned=[[1, 2]])

    broker.heartbeat(2, want_fence=True)

    found = partition(broker, 12)
    assert (found.error_code, found.leader_id) == (ErrorCode.NONE, 1)
    assert (found.replica_nodes, found.isr_nodes, found.offline_replicas) == ([1, 2], [1], [2])


def test_version_0_leaves_out_replicas_that_cannot_be_reached() -> None:
    broker = one_broker()
    broker.register(2)
    broker.create("orders", assigned=[[1, 2]])

    broker.heartbeat(2, want_fence=True)

    found = partition(broker, 0)
    assert found.error_code == ErrorCode.REPLICA_NOT_AVAILABLE
    assert (found.leader_id, found.replica_nodes) == (1, [1])


def test_version_0_leaves_out_replicas_without_the_listener_of_the_client() -> None:
    broker = Decided(listener="INSIDE")
    broker.register(1, {"INSIDE": ("10.0.0.1", 9192)})
    broker.register(2, {"PLAINTEXT": ("two.example", 9092)})
    broker.create("orders", assigned=[[1, 2]])

    old, new = partition(broker, 0), partition(broker, 1)

    assert (old.error_code, old.replica_nodes, old.isr_nodes) == (ErrorCode.REPLICA_NOT_AVAILABLE, [1], [1])
    assert (new.error_code, new.replica_nodes, new.isr_nodes) == (ErrorCode.NONE, [1, 2], [1, 2])


def test_a_replica_in_a_directory_that_failed_is_offline() -> None:
    broken, other = directory_of(2), directory_of(3)
    broker = one_broker()
    broker.register(2, log_dirs=(broken, other))
    topic_id = broker.create("orders", assigned=[[1, 2]])
    assert partition(broker, 12).offline_replicas == []
    broker.assign(2, topic_id, broken)
    assert partition(broker, 12).offline_replicas == []

    broker.heartbeat(2, offline=(broken,))

    assert partition(broker, 12).offline_replicas == [2]


@pytest.mark.parametrize(
    ("version", "error"),
    [
        (1, ErrorCode.LEADER_NOT_AVAILABLE),
        (5, ErrorCode.LEADER_NOT_AVAILABLE),
        (6, ErrorCode.LISTENER_NOT_FOUND),
        (13, ErrorCode.LISTENER_NOT_FOUND),
    ],
)
def test_a_leader_without_the_listener_of_the_client_cannot_be_reached(version: int, error: int) -> None:
    broker = Decided(listener="INSIDE")
    broker.register(1)
    broker.create("orders")

    found = partition(broker, version)

    assert (found.error_code, found.leader_id, found.replica_nodes) == (error, -1, [1])


@pytest.mark.parametrize("version", [0, 1, 5, 6, 13])
def test_a_topic_of_a_fenced_broker_has_no_leader(version: int) -> None:
    broker = one_broker()
    broker.create("orders")

    broker.channel.decide(UnregisterBrokerRequest(broker_id=1))

    found = partition(broker, version)
    assert (found.error_code, found.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
    assert found.replica_nodes == ([] if version == 0 else [1])
    assert found.isr_nodes == []
    assert found.offline_replicas == ([1] if version >= 5 else [])
