"""TxnShard: replay of a log, skipped records, and several decisions in one loop iteration."""

import logging

import pytest

from barnabas.base.errors import Malformed
from barnabas.base.ids import TopicPartition
from barnabas.coordinators.decision.outcome import EndMarker
from barnabas.coordinators.runtime.writing import NextBatch, marker_batch, one_batch
from barnabas.coordinators.txn.record import TxnRecord
from barnabas.coordinators.txn.state import TxnState
from barnabas.coordinators.txn.table import TxnSettings
from barnabas.protocol.error_codes import ErrorCode
from barnabas.records.builder import BatchBuilder
from barnabas.records.header import Codec
from support.txn.model import FIRST_ID, TxnWorld, codes, given_to

pytestmark = pytest.mark.kernel

FIRST = FIRST_ID + 1
ORDERS = TopicPartition("orders", 0)


def batch_of(key: bytes | None, value: bytes | None) -> bytes:
    builder = BatchBuilder(max_bytes=1_000, codec=Codec.NONE)
    builder.append(0, key, value)
    return builder.build()


def test_a_replayed_log_restores_the_state() -> None:
    world = TxnWorld()
    for name in ("a", "b", "c"):
        producer = given_to(world.init(name))
        world.add(producer, ORDERS, transactional_id=name)
        if name != "a":
            world.end(producer, transactional_id=name, commit=name == "b")
    world.marked(world.desk.asked[1])

    again = world.replayed(world.log)

    assert again.durable() == world.shard.durable()
    assert {one: txn.state for one, txn in again.table.txns.items()} == {
        "a": TxnState.ONGOING,
        "b": TxnState.PREPARE_COMMIT,
        "c": TxnState.COMPLETE_ABORT,
    }
    assert len(again) == 3


def test_records_of_a_later_release_are_skipped(caplog: pytest.LogCaptureFixture) -> None:
    world = TxnWorld()
    world.init()
    key, value = TxnRecord("u", world.txn()).encoded()
    assert value is not None

    with caplog.at_level(logging.WARNING):
        world.shard.replay(batch_of(b"\0\7" + key[2:], value))
        world.shard.replay(batch_of(key, b"\0\7" + value[2:]))

    assert len(world.shard) == 1
    assert len(caplog.records) == 2


def test_control_batches_are_skipped() -> None:
    world = TxnWorld()

    world.shard.replay(marker_batch(EndMarker(1, 0, True, 0, 0), now_ms=0))

    assert len(world.shard) == 0


@pytest.mark.parametrize("key", [None, b"", b"\0\0", b"\0\0\0\5t"])
def test_an_invalid_record_is_malformed(key: bytes | None) -> None:
    with pytest.raises(Malformed):
        TxnWorld().shard.replay(batch_of(key, b"\0\1"))


def test_decisions_of_one_turn_build_on_each_other() -> None:
    world = TxnWorld()
    producer = given_to(world.init())
    written = len(world.log)

    with world.one_turn():
        world.add(producer, ORDERS, version=5)
        world.end(producer)
        # Kafka has a state for what is on its way to the log; here it counts as written.
        assert world.txn().state is TxnState.PREPARE_COMMIT

    assert len(world.log) - written == 1
    assert [ended.partitions for ended in world.desk.asked] == [{ORDERS}]


def test_an_unwritten_decision_changes_nothing() -> None:
    world = TxnWorld()
    producer = given_to(world.init())
    world.refuses = True

    with world.one_turn():
        world.add(producer, ORDERS, version=5)
        world.end(producer)

    assert world.txn().state is TxnState.EMPTY
    assert world.desk.asked == []


def test_a_closed_shard_has_no_pending_requests() -> None:
    outcome = TxnWorld().shard.abandon(ErrorCode.NOT_COORDINATOR)

    assert (outcome.records, outcome.answers) == ([], [])


def test_loading_starts_the_timers_and_writes_nothing() -> None:
    world = TxnWorld(TxnSettings(timeouts_interval_ms=7, expiration_interval_ms=9))

    assert len(world.shard.timers) == 2
    assert world.shard.timers.next_ms() == 7
    assert world.log == []


def test_a_downgrade_completes_transactions_prepared_before_it() -> None:
    world = TxnWorld()
    producer = given_to(world.init())
    world.add(producer, ORDERS, version=5)
    world.end(producer)
    world.takes_settings(TxnSettings(transaction_version=0))

    world.mark_all()

    assert (world.txn().state, world.txn().producer_epoch) == (TxnState.COMPLETE_COMMIT, 1)
    assert codes(world.add((FIRST, 1), ORDERS)) == [ErrorCode.NONE]


def test_a_batch_of_many_ids_is_replayed_in_order() -> None:
    world = TxnWorld()
    world.init()
    txn = world.txn()
    records = [TxnRecord("x", txn), TxnRecord("y", txn), TxnRecord("x", None)]

    world.shard.replay(one_batch(records, NextBatch(0, 0, 10_000, Codec.NONE), 0))

    assert sorted(world.shard.table.txns) == ["t", "y"]
