"""Transaction timeouts and expiration of unused ids."""

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.coordinators.txn import expiration
from barnabas.coordinators.txn.state import TxnState
from barnabas.coordinators.txn.table import TxnSettings
from barnabas.protocol.error_codes import ErrorCode
from support.txn.model import FIRST_ID, TxnWorld, codes, given_to, refused

pytestmark = pytest.mark.kernel

FIRST = FIRST_ID + 1
ORDERS = TopicPartition("orders", 0)
WEEK_MS = 604_800_000
HOUR_MS = 3_600_000


# Timeouts


def test_a_timed_out_transaction_is_fenced_and_aborted() -> None:
    world = TxnWorld()
    producer = given_to(world.init(timeout_ms=20_000))
    world.add(producer, ORDERS, version=5)

    world.pass_time(20_000)
    assert world.txn().state is TxnState.ONGOING
    world.pass_time(10_000)

    ended = world.desk.asked[0]
    assert (ended.producer_epoch, ended.commit, ended.transaction_version) == (1, False, 2)
    world.mark_all()
    assert world.txn().state is TxnState.COMPLETE_ABORT
    assert codes(world.add(producer, ORDERS, version=5)) == [ErrorCode.PRODUCER_FENCED]
    # Its abort finds that it is done.
    assert given_to(world.end(producer, commit=False)) == (FIRST, 1)
    assert refused(world.end(producer)) is ErrorCode.INVALID_TXN_STATE


def test_an_old_client_whose_transaction_timed_out_is_fenced() -> None:
    world = TxnWorld(TxnSettings(transaction_version=1))
    producer = given_to(world.init(timeout_ms=5_000))
    world.add(producer, ORDERS)
    world.pass_time(10_000)
    world.mark_all()

    assert refused(world.end(producer, version=4)) is ErrorCode.PRODUCER_FENCED
    assert world.txn().last_producer_epoch == -1


def test_the_timeout_starts_with_the_transaction_even_after_a_restart() -> None:
    world = TxnWorld()
    producer = given_to(world.init(timeout_ms=24_000))
    world.tick_ms = 15_000
    world.add(producer, ORDERS)
    world.pass_time(15_000)
    world.crash()
    assert world.txn().state is TxnState.ONGOING

    world.pass_time(11_000)

    assert world.txn().state is TxnState.PREPARE_ABORT


def test_prepared_and_complete_transactions_do_not_time_out() -> None:
    world = TxnWorld()
    producer = given_to(world.init(timeout_ms=1_000))
    world.add(producer, ORDERS)
    world.end(producer)

    world.pass_time(60_000)
    assert len(world.desk.asked) == 1
    world.mark_all()
    world.pass_time(60_000)

    assert len(world.desk.asked) == 1
    assert world.txn().state is TxnState.COMPLETE_COMMIT


def test_timed_out_transactions_are_aborted_in_batches() -> None:
    world = TxnWorld(batch_bytes_max=3_000)
    for number in range(20):
        name = f"t{number}"
        producer = given_to(world.init(name, timeout_ms=1))
        world.add(producer, ORDERS, transactional_id=name, version=5)
    written = len(world.log)

    world.pass_time(10_000)

    assert len(world.desk.asked) == 20
    assert 1 < len(world.log) - written < 20
    assert world.shard.timers.get(expiration.TIMEOUTS) == 20_000


def test_the_last_epoch_of_an_id_times_out_without_a_new_id() -> None:
    world = TxnWorld()
    world.init(timeout_ms=1)
    world.given(world.txn()._replace(producer_epoch=32_766))
    producer = FIRST, 32_766
    world.add(producer, ORDERS, version=5)
    world.pass_time(10_000)
    assert world.desk.asked[0].producer_epoch == 32_767
    world.mark_all()
    assert world.ids_given == 1

    # The epoch that fenced it is told to nobody.
    assert refused(world.end(producer)) is ErrorCode.INVALID_TXN_STATE
    assert given_to(world.end(producer, commit=False)) == (FIRST + 1, 0)
    assert given_to(world.end(producer, commit=False)) == (FIRST + 1, 0)
    assert world.ids_given == 2


@pytest.mark.parametrize("says_who", [True, False])
def test_after_that_a_producer_may_also_begin_anew(says_who: bool) -> None:
    world = TxnWorld()
    world.init(timeout_ms=1)
    world.given(world.txn()._replace(producer_epoch=32_766))
    world.add((FIRST, 32_766), ORDERS, version=5)
    world.pass_time(10_000)
    world.mark_all()

    was = (FIRST, 32_766) if says_who else (-1, -1)
    assert given_to(world.init(was=was)) == (FIRST + 1, 0)
    if says_who:
        assert given_to(world.init(was=was)) == (FIRST + 1, 0)


# Ids that nobody uses


@pytest.mark.parametrize("commit", [None, True, False])
def test_an_unused_id_expires(commit: bool | None) -> None:
    world = TxnWorld()
    producer = given_to(world.init())
    if commit is not None:
        world.add(producer, ORDERS)
        world.end(producer, commit=commit)
        world.mark_all()

    world.pass_time(WEEK_MS - 1)
    assert len(world.shard) == 1
    world.pass_time(HOUR_MS)

    assert len(world.shard) == 0
    assert codes(world.add(producer, ORDERS)) == [ErrorCode.INVALID_PRODUCER_ID_MAPPING]
    assert given_to(world.init()) == (FIRST + 1, 0)


def test_a_used_id_does_not_expire() -> None:
    world = TxnWorld()
    world.init()
    world.pass_time(WEEK_MS // 2)
    world.init()

    world.pass_time(WEEK_MS // 2 + HOUR_MS)

    assert len(world.shard) == 1


def test_a_prepared_transaction_does_not_expire() -> None:
    world = TxnWorld()
    producer = given_to(world.init())
    world.add(producer, ORDERS)
    world.end(producer)

    world.pass_time(WEEK_MS + HOUR_MS)

    assert world.txn().state is TxnState.PREPARE_COMMIT


def test_many_ids_expire_in_several_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expiration, "EXPIRED_AT_ONCE_MAX", 3)
    world = TxnWorld()
    for number in range(8):
        world.init(f"t{number}")
    written = len(world.log)

    world.pass_time(WEEK_MS)

    assert len(world.shard) == 0
    assert len(world.log) - written == 3
