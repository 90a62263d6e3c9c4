"""Markers: asked for when the decision is written, again after a load; complete with the last one."""

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.coordinators.txn.admin import describe
from barnabas.coordinators.txn.state import TxnState
from support.txn.model import TxnWorld, given_to

pytestmark = pytest.mark.kernel

ORDERS = TopicPartition("orders", 0)
PAYMENTS = TopicPartition("payments", 3)


def prepared(world: TxnWorld, *, version: int = 5) -> tuple[int, int]:
    producer = given_to(world.init())
    world.add(producer, ORDERS, PAYMENTS, version=version)
    world.end(producer, version=version)
    return producer


def described(world: TxnWorld) -> list[str]:
    return [one.topic for one in describe(world.shard.table, "t").topics]


def test_with_the_last_marker_it_is_complete() -> None:
    world = TxnWorld()
    prepared(world)
    ended = world.desk.asked[0]

    world.marked(ended, [PAYMENTS])
    assert world.txn().state is TxnState.PREPARE_COMMIT
    assert described(world) == ["orders"]
    world.tick_ms = 70
    world.marked(ended, [ORDERS])

    assert (world.txn().state, world.txn().partitions) == (TxnState.COMPLETE_COMMIT, frozenset())
    assert world.txn().last_update_ms == world.now.ms
    assert described(world) == []


def test_duplicate_marker_reports_are_ignored() -> None:
    world = TxnWorld()
    prepared(world)
    ended = world.desk.asked[0]

    world.marked(ended, [ORDERS])
    world.marked(ended, [ORDERS])
    assert world.txn().state is TxnState.PREPARE_COMMIT
    world.marked(ended)
    written = len(world.log)
    world.marked(ended)

    assert len(world.log) == written


def test_a_late_marker_report_does_not_count_for_the_next_transaction() -> None:
    """Old clients end both with the same epoch: they look the same."""
    world = TxnWorld()
    producer = prepared(world, version=3)
    before = world.desk.asked[0]
    world.marked(before)
    world.add(producer, ORDERS, PAYMENTS)
    world.end(producer, version=3)
    now = world.desk.asked[1]
    assert before == now

    assert not world.shard.table.is_pending(before)
    world.marked(before)
    assert world.txn().state is TxnState.PREPARE_COMMIT
    assert world.shard.table.is_pending(now)
    world.marked(now)
    assert world.txn().state is TxnState.COMPLETE_COMMIT
    assert not world.shard.table.is_pending(now)


def test_after_a_load_all_markers_are_requested_again() -> None:
    world = TxnWorld()
    prepared(world)
    before = world.desk.asked[0]
    world.marked(before, [ORDERS])

    world.crash()

    (after,) = world.desk.asked
    assert after == before._replace(coordinator_epoch=2)
    assert described(world) == ["orders", "payments"]
    world.marked(before)
    assert world.txn().state is TxnState.PREPARE_COMMIT
    world.marked(after)
    assert world.txn().state is TxnState.COMPLETE_COMMIT


def test_a_prepared_transaction_without_partitions_is_completed_after_a_load() -> None:
    world = TxnWorld()
    world.init()
    world.given(world.txn()._replace(state=TxnState.PREPARE_ABORT, start_ms=world.now.ms))

    world.crash()
    (ended,) = world.desk.asked
    world.marked(ended, [])

    assert world.txn().state is TxnState.COMPLETE_ABORT


def test_markers_of_a_forgotten_id_are_late() -> None:
    world = TxnWorld()
    prepared(world)
    ended = world.desk.asked[0]
    world.marked(ended)
    world.pass_time(604_800_000 + 3_600_000)
    assert len(world.shard) == 0

    world.marked(ended)

    assert len(world.shard) == 0
