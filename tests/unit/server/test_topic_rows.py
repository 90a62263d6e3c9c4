"""The cache of Metadata rows: only rows of changed topics are rebuilt."""

from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.cluster import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponseTopic,
)
from barnabas.protocol.messages.topics import DeleteTopicsRequest
from barnabas.server.handlers.metadata import API
from barnabas.server.topic_rows import LISTS_MAX, STALE_ROWS_MAX, View
from support.decided import Decided, one_broker

NOT_ASKED = -2147483648


def view(broker: Decided, listener: str = "PLAINTEXT", version: int = 12) -> View:
    return broker.services.topic_rows.view(broker.image, listener, version)


def orders(broker: Decided, listener: str = "PLAINTEXT", version: int = 12) -> MetadataResponseTopic:
    return view(broker, listener, version).row(broker.image.topics["orders"])


def test_rows_are_built_once_per_image() -> None:
    broker = one_broker()
    broker.create("orders")

    assert view(broker).all() is view(broker).all()


def test_only_rows_of_changed_topics_are_rebuilt() -> None:
    broker = one_broker()
    broker.create("orders")
    broker.create("visits")
    before = view(broker).all()

    broker.channel.decide(DeleteTopicsRequest(topic_names=["visits"]))
    broker.create("visits", 2)

    after = view(broker).all()
    assert after[0] is before[0]
    assert [len(topic.partitions) for topic in after] == [1, 2]


def test_a_returning_broker_updates_unchanged_topics() -> None:
    broker = one_broker()
    broker.register(2)
    broker.create("orders", assigned=[[1, 2]])
    broker.heartbeat(2, want_fence=True)
    topic = broker.image.topics["orders"]
    assert orders(broker).partitions[0].offline_replicas == [2]

    broker.heartbeat(2)

    assert broker.image.topics["orders"] is topic
    assert orders(broker).partitions[0].offline_replicas == []
    assert view(broker).all()[0].partitions[0].offline_replicas == []


def test_listeners_and_styles_have_rows_of_their_own() -> None:
    broker = one_broker()
    broker.create("orders")

    assert orders(broker).partitions[0].error_code == ErrorCode.NONE
    assert orders(broker, "INSIDE").partitions[0].error_code == ErrorCode.LISTENER_NOT_FOUND
    assert orders(broker, "INSIDE", 5).partitions[0].error_code == ErrorCode.LEADER_NOT_AVAILABLE
    assert orders(broker).partitions[0].error_code == ErrorCode.NONE


def test_rows_of_deleted_topics_are_bounded() -> None:
    broker = one_broker()

    for number in range(STALE_ROWS_MAX + 10):
        name = f"passing-{number}"
        broker.create(name)
        asked = MetadataRequest(topics=[MetadataRequestTopic(name=name)])
        assert broker.ask(API, asked, 12).topics[0].error_code == ErrorCode.NONE
        broker.channel.decide(DeleteTopicsRequest(topic_names=[name]))

    assert len(view(broker)._rows) < STALE_ROWS_MAX


def test_partitions_share_a_bounded_number_of_replica_lists() -> None:
    broker = one_broker()
    broker.create("orders", 2)
    first, second = orders(broker).partitions
    kept = view(broker)

    for number in range(LISTS_MAX):
        kept._list((number, number + 1))

    assert first.replica_nodes is second.replica_nodes
    assert len(kept._lists) <= LISTS_MAX


def test_a_response_with_operations_does_not_change_cached_rows() -> None:
    broker = one_broker()
    broker.create("orders")

    broker.ask(API, MetadataRequest(topics=None, include_topic_authorized_operations=True), 12)

    assert (
        broker.ask(API, MetadataRequest(topics=None), 12).topics[0].topic_authorized_operations == NOT_ASKED
    )
