"""DescribeProducers: the active producers of a partition."""

from barnabas.protocol.messages.transaction_admin import (
    DescribeProducersRequest,
    PartitionResponse,
    ProducerState,
    TopicRequest,
)
from barnabas.server.handlers.producers import API
from support.hosted import Hosted, hosted, image_of, one_topic, partition_image
from support.log.logs import NOW, end_txn, send
from support.log.managers import on_a_loop

NOT_HERE = "This server does not host this topic-partition."


async def ask(broker: Hosted, *partitions: tuple[str, int]) -> list[PartitionResponse]:
    topics = [TopicRequest(name=name, partition_indexes=[index]) for name, index in partitions]
    answer = await broker.ask(API, DescribeProducersRequest(topics=topics), 0)
    return [one for topic in answer.topics for one in topic.partitions]


@on_a_loop
async def test_an_empty_partition_has_no_producers() -> None:
    broker = await one_topic()

    assert await ask(broker, ("orders", 0)) == [PartitionResponse(active_producers=[])]


@on_a_loop
async def test_producers_have_their_last_sequence_and_open_transaction() -> None:
    broker = await one_topic()
    log = broker.log("orders")
    send(log, 7, 0, b"a", b"b", epoch=3)
    send(log, 8, 5, txn=True)
    send(log, 9, 0, txn=True)
    end_txn(log, 9, abort=False, coordinator=4)

    (described,) = await ask(broker, ("orders", 0))

    def one(producer: int, **fields: int) -> ProducerState:
        return ProducerState(producer_id=producer, last_timestamp=NOW, **fields)

    assert described.active_producers == [
        one(7, producer_epoch=3, last_sequence=1, coordinator_epoch=-1),
        one(8, producer_epoch=0, last_sequence=5, coordinator_epoch=-1, current_txn_start_offset=2),
        one(9, producer_epoch=0, last_sequence=0, coordinator_epoch=4),
    ]


@on_a_loop
async def test_any_replica_describes_its_producers() -> None:
    broker = await hosted(image_of({"orders": [partition_image(leader=2, replicas=(1, 2))]}))

    assert [one.error_code for one in await ask(broker, ("orders", 0))] == [0]


@on_a_loop
async def test_the_wrong_place_is_named_as_kafka_names_it() -> None:
    broker = await one_topic()

    answers = await ask(broker, ("orders", 1), ("orders", -1), ("nobody", 0), ("a b", 0), ("", 0))

    assert [(one.error_code, one.error_message) for one in answers] == [
        (3, None),
        (3, None),
        (3, NOT_HERE),
        (
            17,
            "Topic name is invalid: 'a b' contains one or more characters other than ASCII alphanumerics,"
            " '.', '_' and '-'",
        ),
        (17, "Topic name is invalid: the empty string is not allowed"),
    ]


@on_a_loop
async def test_a_duplicate_partition_has_two_results() -> None:
    broker = await one_topic()

    assert len(await ask(broker, ("orders", 0), ("orders", 0))) == 2
