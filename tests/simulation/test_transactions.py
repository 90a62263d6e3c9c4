"""Transactions of a whole broker, over the simulated wire, in both versions of the protocol."""

import asyncio
from collections.abc import Callable
from typing import NoReturn

import pytest

from barnabas.coordinators.txn.table import MarkersToWrite
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.transaction_admin import (
    DescribeTransactionsRequest,
    ListTransactionsRequest,
)
from barnabas.protocol.messages.transactions import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from barnabas.server.broker import Broker
from barnabas.server.coordination.transactions import TRANSACTION_TOPIC
from barnabas.sim.world import World
from support.brokers import running
from support.group.wire import committed, find_coordinator
from support.stories import Client, Story, client_of, connect, partition_of, say_goodbye, told, until
from support.txn.wire import READ_UNCOMMITTED, V1, V2, TxnProducer, Versions, fetch, seen

SETTINGS = {
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "transaction.state.log.num.partitions": 2,
}
BOTH = pytest.mark.parametrize("versions", [V1, V2], ids=["version 1", "version 2"])
TxnStory = Callable[[World, Broker, Client, Versions], object]


def in_both(story: TxnStory) -> Callable[[Versions], None]:
    """Make a test of a story for each version of transactions."""

    @BOTH
    def test(versions: Versions) -> None:
        async def tell(world: World, broker: Broker, client: Client) -> None:
            await story(world, broker, client, versions)  # type: ignore[misc]

        as_told: Story = tell
        told(SETTINGS)(as_told)()

    test.__name__, test.__doc__ = story.__name__, story.__doc__  # type: ignore[attr-defined]
    return test


def failed() -> NoReturn:
    raise AssertionError("a mistake of ours")


def holding_back(kept: list[MarkersToWrite]) -> Callable[[MarkersToWrite], bool]:
    """Markers are not written, but kept."""

    def is_pending(ended: MarkersToWrite) -> bool:
        kept.append(ended)
        return False

    return is_pending


async def stable_end(client: Client, topic: str, partition: int = 0) -> tuple[int, int]:
    data = await fetch(client, topic, partition=partition)
    return data.last_stable_offset, data.high_watermark


# Seen or not


@in_both
async def test_read_committed_readers_see_a_transaction_after_its_commit(
    world: World, broker: Broker, client: Client, versions: Versions
) -> None:
    await client.create("orders", partitions=2)
    producer = await TxnProducer.of(broker, "t", versions)

    await producer.begin_and_send("orders", b"a", b"b")
    await producer.begin_and_send("orders", b"c", partition=1)

    assert await seen(client, "orders") == []
    assert await seen(client, "orders", isolation=READ_UNCOMMITTED) == [b"a", b"b"]
    assert await stable_end(client, "orders") == (0, 2)

    await producer.commit()

    await until(lambda: partition_of(broker, "orders", 1).log.last_stable_offset == 2)
    assert await seen(client, "orders") == [b"a", b"b"]
    assert await seen(client, "orders", partition=1) == [b"c"]
    assert await stable_end(client, "orders") == (3, 3)


@in_both
async def test_an_aborted_transaction_is_never_visible_and_blocks_no_reader(
    world: World, broker: Broker, client: Client, versions: Versions
) -> None:
    await client.create("orders")
    producer = await TxnProducer.of(broker, "t", versions)
    await producer.begin_and_send("orders", b"no")
    await client.produce("orders", b"plain")

    await producer.abort()
    await producer.begin_and_send("orders", b"yes")
    await producer.commit()

    await until(lambda: partition_of(broker, "orders").log.last_stable_offset == 5)
    assert await seen(client, "orders") == [b"plain", b"yes"]
    assert await seen(client, "orders", isolation=READ_UNCOMMITTED) == [b"no", b"plain", b"yes"]


@in_both
async def test_many_transactions_in_a_row_are_all_seen_in_their_order(
    world: World, broker: Broker, client: Client, versions: Versions
) -> None:
    await client.create("orders")
    producer = await TxnProducer.of(broker, "t", versions)
    expected = []
    for number in range(40):
        await producer.begin_and_send("orders", b"%d" % number)
        if number % 3 == 0:
            await producer.abort()
        else:
            expected.append(b"%d" % number)
            await producer.commit()

    await until(lambda: partition_of(broker, "orders").log.last_stable_offset == 80)
    assert await seen(client, "orders") == expected


# Offsets


@in_both
async def test_offsets_are_committed_with_their_transaction(
    world: World, broker: Broker, client: Client, versions: Versions
) -> None:
    await client.create("orders")
    await find_coordinator(client, "readers")
    producer = await TxnProducer.of(broker, "t", versions)
    await producer.begin_and_send("orders", b"a")

    assert await producer.commit_offset("readers", "orders", 7) is ErrorCode.NONE
    assert await committed(client, "readers", "orders") == -1

    await producer.commit()
    await asyncio.sleep(0.1)
    assert await committed(client, "readers", "orders") == 7

    assert await producer.commit_offset("readers", "orders", 9) is ErrorCode.NONE
    await producer.abort()
    await asyncio.sleep(0.1)
    assert await committed(client, "readers", "orders") == 7


# Who may


@in_both
async def test_a_second_producer_with_the_same_id_fences_the_first_and_aborts_it(
    world: World, broker: Broker, client: Client, versions: Versions
) -> None:
    await client.create("orders")
    first = await TxnProducer.of(broker, "t", versions)
    await first.begin_and_send("orders", b"of the first")

    second = await TxnProducer.of(broker, "t", versions)
    assert (second.id, second.epoch) > (first.id, first.epoch)

    assert await first.send("orders", b"late") is ErrorCode.INVALID_PRODUCER_EPOCH
    assert await first.end(True) is ErrorCode.PRODUCER_FENCED
    await second.begin_and_send("orders", b"of the second")
    await second.commit()
    await until(lambda: partition_of(broker, "orders").log.last_stable_offset == 4)
    assert await seen(client, "orders") == [b"of the second"]


@told(SETTINGS)
async def test_late_batches_and_ends_of_earlier_transactions_fail_in_version_2(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders")
    producer = await TxnProducer.of(broker, "t", V2)
    await producer.begin_and_send("orders", b"one")
    earlier = producer.epoch
    await producer.commit()
    await producer.begin_and_send("orders", b"two")

    assert await producer.send("orders", b"late", epoch=earlier) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert await producer.end(False, epoch=earlier) is not ErrorCode.NONE

    await producer.commit()
    await until(lambda: partition_of(broker, "orders").log.last_stable_offset == 4)
    assert await seen(client, "orders") == [b"one", b"two"]


@told(SETTINGS)
async def test_a_produce_with_batches_of_several_producers_is_rejected(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders", partitions=2)
    first = await TxnProducer.of(broker, "t", V2)
    other = await TxnProducer.of(broker, "u", V2)
    request = first.produce_request("orders", b"a")
    of_other_id = other.produce_request("orders", b"b", partition=1, epoch=first.epoch)
    of_other_epoch = first.produce_request("orders", b"b", partition=1, epoch=first.epoch + 1)

    for odd in (of_other_id, of_other_epoch):
        both = [*request.topic_data[0].partition_data, *odd.topic_data[0].partition_data]
        together = first.produce_request("orders", b"a")
        together.topic_data[0].partition_data = both
        answer = await first.client.asked(together, first.versions.produce)
        codes = {ErrorCode(one.error_code) for one in answer.responses[0].partition_responses}

        assert codes == {ErrorCode.INVALID_PRODUCER_ID_MAPPING}
    assert [partition_of(broker, "orders", index).log.end_offset for index in (0, 1)] == [0, 0]


@told(SETTINGS)
async def test_a_batch_for_a_partition_outside_the_transaction_fails_in_version_1(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders", partitions=2)
    producer = await TxnProducer.of(broker, "t", V1)
    await producer.begin_and_send("orders", b"a")

    assert await producer.send("orders", b"b", partition=1) is ErrorCode.TRANSACTION_ABORTABLE
    assert partition_of(broker, "orders", 1).log.end_offset == 0


@told(SETTINGS)
async def test_if_one_partition_does_not_exist_none_is_added(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders")
    producer = await TxnProducer.of(broker, "t", V1)

    assert await producer.add_each("orders", 0, 7) == {
        0: ErrorCode.OPERATION_NOT_ATTEMPTED,
        7: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert await producer.end(True) is ErrorCode.INVALID_TXN_STATE


@told(SETTINGS)
async def test_a_timeout_above_the_maximum_is_refused(world: World, broker: Broker, client: Client) -> None:
    producer = await TxnProducer.of(broker, "t")

    assert await producer.init(900_001) is ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert await producer.init(0) is ErrorCode.INVALID_TRANSACTION_TIMEOUT


@told(SETTINGS)
async def test_the_next_transaction_waits_for_the_markers_of_the_last(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders")
    await find_coordinator(client, "readers")
    producer = await TxnProducer.of(broker, "t", V2)
    await producer.begin_and_send("orders", b"one")
    assert await producer.commit_offset("readers", "orders", 1) is ErrorCode.NONE
    # Markers that wait: nobody writes them yet.
    markers = broker.services.transactions._markers
    kept: list[MarkersToWrite] = []
    is_pending, markers._is_pending = markers._is_pending, holding_back(kept)
    await producer.commit()

    sending = asyncio.ensure_future(producer.send("orders", b"two"))
    other = TxnProducer(await connect(broker), "t", V2)
    other.id, other.epoch = producer.id, producer.epoch
    committing = asyncio.ensure_future(other.commit_offset("readers", "orders", 2))
    await asyncio.sleep(0.03)
    assert not sending.done()
    assert not committing.done()
    markers._is_pending = is_pending
    markers.write(kept[0])

    assert await sending is ErrorCode.NONE
    assert await committing is ErrorCode.NONE
    await producer.commit()
    await until(lambda: partition_of(broker, "orders").log.last_stable_offset == 4)
    assert await seen(client, "orders") == [b"one", b"two"]
    assert await committed(client, "readers", "orders") == 2


@told(SETTINGS)
async def test_a_batch_right_after_end_txn_belongs_to_the_next_transaction(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders")
    producer = await TxnProducer.of(broker, "t", V2)
    for number in range(5):
        await producer.begin_and_send("orders", b"%d" % number)
        # Both are read at once: the second is at work before the markers of the first are written.
        client.ask(producer.end_request(commit=True), V2.end)
        client.ask(producer.produce_request("orders", b"next", epoch=producer.epoch + 1), V2.produce)
        ended, sent = [(await client.answer())[1] for _ in range(2)]

        assert ended.error_code == 0
        assert sent.responses[0].partition_responses[0].error_code == 0
        producer.epoch = ended.producer_epoch
        await producer.abort()
    await until(lambda: partition_of(broker, "orders").log.last_stable_offset == 20)
    assert await seen(client, "orders") == [b"%d" % number for number in range(5)]


@told(SETTINGS)
async def test_a_marker_that_fails_with_a_bug_is_retried_without_affecting_others(
    world: World, broker: Broker, client: Client
) -> None:
    world.expects_faults = True
    await client.create("orders", partitions=2)
    producer = await TxnProducer.of(broker, "t", V2)
    other = await TxnProducer.of(broker, "other", V2)
    await producer.begin_and_send("orders", b"a")
    await producer.begin_and_send("orders", b"b", partition=1)
    partition = partition_of(broker, "orders")
    replicas = broker.replicas.partitions
    replicas[partition.tp] = object()  # type: ignore[assignment]

    await producer.commit()
    await other.begin_and_send("orders", b"c", partition=1)
    replicas[partition.tp] = partition
    await other.commit()

    await until(lambda: partition.log.last_stable_offset == 2)
    await until(lambda: partition_of(broker, "orders", 1).log.last_stable_offset == 4)
    assert await seen(client, "orders") == [b"a"]
    assert await seen(client, "orders", partition=1) == [b"b", b"c"]


@told(SETTINGS)
async def test_markers_of_an_unloaded_shard_are_not_written(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders")
    producer = await TxnProducer.of(broker, "t", V1)
    await producer.begin_and_send("orders", b"one")
    transactions = broker.services.transactions
    markers = transactions._markers
    kept: list[MarkersToWrite] = []
    is_pending, markers._is_pending = markers._is_pending, holding_back(kept)
    await producer.commit()
    await until(lambda: len(kept) == 1)
    # A mistake costs the shard. It is loaded again, and asks again.
    transactions.host_of("t").run(lambda _: failed())
    await until(lambda: len(kept) == 2)

    markers._is_pending = is_pending
    markers.write(kept[0])
    assert await stable_end(client, "orders") == (0, 1)
    markers.write(kept[1])
    assert await stable_end(client, "orders") == (2, 2)
    # The next transaction of an old client has the same epoch: a late marker would end it.
    await producer.begin_and_send("orders", b"two")
    markers.write(kept[0])

    assert await stable_end(client, "orders") == (2, 3)


@told(SETTINGS)
async def test_a_manually_aborted_partition_does_not_block_markers_of_others(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders", partitions=2)
    producer = await TxnProducer.of(broker, "t", V2)
    await producer.begin_and_send("orders", b"a")
    await producer.begin_and_send("orders", b"b", partition=1)
    by_hand = WritableTxnMarker(
        producer_id=producer.id,
        producer_epoch=producer.epoch + 5,
        transaction_result=False,
        topics=[WritableTxnMarkerTopic(name="orders", partition_indexes=[0])],
        coordinator_epoch=0,
    )
    await client.asked(WriteTxnMarkersRequest(markers=[by_hand]), 1)

    await producer.commit()

    await until(lambda: partition_of(broker, "orders", 1).log.last_stable_offset == 2)
    assert await seen(client, "orders") == []
    assert await seen(client, "orders", partition=1) == [b"b"]
    described = await client.asked(DescribeTransactionsRequest(transactional_ids=["t"]), 0)
    assert described.transaction_states[0].transaction_state == "CompleteCommit"


# Those who are gone


@in_both
async def test_a_transaction_of_a_dead_producer_is_aborted_after_its_timeout(
    world: World, broker: Broker, client: Client, versions: Versions
) -> None:
    await client.create("orders")
    producer = await TxnProducer.of(broker, "t", versions, timeout_ms=5_000)
    await producer.begin_and_send("orders", b"a")

    await asyncio.sleep(4)
    assert await stable_end(client, "orders") == (0, 1)
    await asyncio.sleep(12)

    assert await stable_end(client, "orders") == (2, 2)
    assert await seen(client, "orders") == []
    assert await producer.end(True) is not ErrorCode.NONE


@in_both
async def test_transactions_with_a_deleted_topic_still_end(
    world: World, broker: Broker, client: Client, versions: Versions
) -> None:
    await client.create("orders")
    await client.create("gone")
    producer = await TxnProducer.of(broker, "t", versions)
    await producer.begin_and_send("orders", b"a")
    await producer.begin_and_send("gone", b"b")
    await client.delete("gone")

    await producer.commit()
    await producer.begin_and_send("orders", b"c")
    await producer.commit()

    await until(lambda: partition_of(broker, "orders").log.last_stable_offset == 4)
    assert await seen(client, "orders") == [b"a", b"c"]


# Restarts


@BOTH
@pytest.mark.parametrize("is_clean", [True, False], ids=["stopped", "cut off"])
def test_an_outcome_decided_before_a_restart_is_completed_after_it(
    versions: Versions, is_clean: bool
) -> None:
    async def story(world: World) -> None:
        async with running(world, SETTINGS) as broker:
            async with client_of(broker) as client:
                await client.create("orders")
                done = await TxnProducer.of(broker, "done", versions)
                await done.begin_and_send("orders", b"committed")
                # Only the decision: its markers are kept from being written.
                broker.services.transactions._markers.close()
                await done.commit()
                undone = await TxnProducer.of(broker, "undone", versions)
                await undone.begin_and_send("orders", b"open")
                assert await seen(client, "orders") == []
            say_goodbye(broker)
            if not is_clean:
                await broker.stop(clean=False)
        async with running(world, SETTINGS) as broker:
            async with client_of(broker) as client:
                await until(lambda: partition_of(broker, "orders").log.last_stable_offset > 0)
                assert await seen(client, "orders") == [b"committed"]
                # Whoever had it open comes again, and what it had open is aborted.
                again = await TxnProducer.of(broker, "undone", versions)
                await again.begin_and_send("orders", b"anew")
                await again.commit()
                log = partition_of(broker, "orders").log
                await until(lambda: log.last_stable_offset == log.end_offset)
                assert await seen(client, "orders") == [b"committed", b"anew"]
            say_goodbye(broker)

    with World(1) as world:
        world.run(story(world))


# From outside


@told(SETTINGS)
async def test_transactions_can_be_listed_and_described(world: World, broker: Broker, client: Client) -> None:
    await client.create("orders", partitions=2)
    one = await TxnProducer.of(broker, "one")
    await TxnProducer.of(broker, "two")
    await one.begin_and_send("orders", b"a", partition=1)

    described = await client.asked(DescribeTransactionsRequest(transactional_ids=["one", "nobody"]), 0)
    listed = await client.asked(ListTransactionsRequest(state_filters=[], producer_id_filters=[]), 2)
    ongoing = await client.asked(
        ListTransactionsRequest(state_filters=["Ongoing", "Nonsense"], producer_id_filters=[]), 2
    )

    found, missing = described.transaction_states
    assert (found.transaction_state, found.producer_id) == ("Ongoing", one.id)
    assert [(topic.topic, topic.partitions) for topic in found.topics] == [("orders", [1])]
    assert missing.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert sorted((txn.transactional_id, txn.transaction_state) for txn in listed.transaction_states) == [
        ("one", "Ongoing"),
        ("two", "Empty"),
    ]
    assert [txn.transactional_id for txn in ongoing.transaction_states] == ["one"]
    assert ongoing.unknown_state_filters == ["Nonsense"]


@told({**SETTINGS, "transaction.partition.verification.enable": "false"})
async def test_a_hanging_transaction_can_be_ended_by_hand(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders")
    producer = await TxnProducer.of(broker, "t", V1)
    assert await producer.send("orders", b"hangs") is ErrorCode.NONE
    assert await stable_end(client, "orders") == (0, 1)

    def abort(producer_id: int, epoch: int) -> WritableTxnMarker:
        return WritableTxnMarker(
            producer_id=producer_id,
            producer_epoch=epoch,
            transaction_result=False,
            topics=[WritableTxnMarkerTopic(name="orders", partition_indexes=[0, 9])],
            coordinator_epoch=0,
        )

    nobody = [abort(-1, producer.epoch), abort(producer.id, -1)]
    refused = await client.asked(WriteTxnMarkersRequest(markers=nobody), 1)
    assert {one.error_code for result in refused.markers for one in result.topics[0].partitions} == {
        ErrorCode.UNKNOWN_SERVER_ERROR
    }

    answer = await client.asked(WriteTxnMarkersRequest(markers=[abort(producer.id, producer.epoch)]), 1)

    codes = [one.error_code for one in answer.markers[0].topics[0].partitions]
    assert codes == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert await stable_end(client, "orders") == (2, 2)
    assert await seen(client, "orders") == []


@told(SETTINGS)
async def test_a_failed_write_to_the_transaction_topic_affects_only_its_request(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders", partitions=200)
    producer = await TxnProducer.of(broker, "t", V1)
    await client.configure(TRANSACTION_TOPIC, max_message_bytes=700)
    shards = broker.services.transactions.shards
    before = list(shards.hosts.values())

    assert await producer.add("orders", *range(200)) is ErrorCode.UNKNOWN_SERVER_ERROR
    long = TxnProducer(client, "t" * 700)
    assert await long.init() is ErrorCode.UNKNOWN_SERVER_ERROR
    # The record of the id alone is taken, that of its end is two in one batch.
    lengthy = TxnProducer(client, "t" * 300)
    assert await lengthy.init() is ErrorCode.NONE
    assert await lengthy.end(False) is ErrorCode.UNKNOWN_SERVER_ERROR

    assert list(shards.hosts.values()) == before
    assert await producer.add("orders", *range(100)) is ErrorCode.NONE
    await producer.begin_and_send("orders", b"a")
    await producer.commit()
    await until(lambda: partition_of(broker, "orders").log.last_stable_offset == 2)
    assert await seen(client, "orders") == [b"a"]
    assert list(shards.hosts.values()) == before


@told(SETTINGS)
async def test_the_first_find_coordinator_creates_the_transaction_topic(
    world: World, broker: Broker, client: Client
) -> None:
    assert TRANSACTION_TOPIC not in broker.services.image.topics

    await TxnProducer.of(broker, "t")

    assert len(broker.services.image.topics[TRANSACTION_TOPIC].partitions) == 2
    assert await client.setting(TRANSACTION_TOPIC, "cleanup.policy") == "compact"
