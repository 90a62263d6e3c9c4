"""The next run ends transactions that a dead run left open, without duplicates. Writers without Spark."""

import pytest

from barnabas.client.blocking import Admin, Producer
from barnabas.client.errors import ClientError
from barnabas.client.producer.transaction_errors import ProducerFenced
from barnabas.spark.options.sink import Scope
from barnabas.spark.sink.replays import SlotsChanged
from barnabas.spark.sink.runs import UNKNOWN_RUN, Record, write_record
from barnabas.testing import Broker
from support.spark.sink_runs import ALL, ROWS, Query


@pytest.fixture
def query(broker: Broker) -> Query:
    return Query(broker.bootstrap)


@pytest.mark.parametrize(("before", "after"), [(3, 2), (2, 3), (3, 1)])
def test_a_run_fences_transactions_of_a_run_with_more_tasks(query: Query, before: int, after: int) -> None:
    query.run(before).write()
    assert len(query.open_ids()) == before
    run = query.run(after)
    run.commit(run.write())

    assert (query.seen(), query.open_ids()) == (ALL, [])


def test_a_run_fences_transactions_of_slots_without_rows(query: Query) -> None:
    query.run(3).write()
    run = query.run(3)
    run.commit(run.write(without=[1]))

    assert (query.seen(), query.open_ids()) == ([row for row in ALL if row % 3 != 1], [])


def test_a_run_without_any_row_fences_open_transactions(query: Query) -> None:
    query.run(2).write()
    run = query.run(2)
    run.commit(run.write(without=[0, 1]))

    assert query.open_ids() == []


def test_a_recorded_batch_without_committed_slots_may_have_another_plan(query: Query) -> None:
    first = query.run(3)
    first.commit_some(first.write(), [])
    run = query.run(2)
    run.commit(run.write())

    assert query.seen() == ALL


def test_a_partly_committed_batch_must_have_the_same_plan(query: Query) -> None:
    first = query.run(3)
    first.commit_some(first.write(), [2])
    fewer = query.run(2)

    with pytest.raises(SlotsChanged, match=r"begun with 3 tasks but is now planned with 2.*-2\)"):
        fewer.commit(fewer.write())

    # Readers are not blocked meanwhile.
    assert (query.seen(), query.open_ids()) == ([row for row in ALL if row % 3 == 2], [])
    again = query.run(3)
    again.commit(again.write())
    assert query.seen() == ALL


def test_a_slot_without_rows_now_may_have_committed_them(query: Query) -> None:
    first = query.run(3)
    first.commit_some(first.write(), [1])
    fewer = query.run(2)

    with pytest.raises(SlotsChanged, match="begun with 3 tasks"):
        fewer.commit(fewer.write(without=[1]))


def test_several_runs_may_each_commit_part_of_a_batch(query: Query) -> None:
    for slots in ([2], [1], []):
        run = query.run(3)
        run.commit_some(run.write(), slots)
    fewer, run = query.run(2), query.run(3)

    with pytest.raises(SlotsChanged, match="begun with 3 tasks"):
        fewer.commit(fewer.write())
    run.commit(run.write())
    assert query.seen() == ALL


def test_a_record_overwritten_by_a_dead_run_is_not_trusted(query: Query) -> None:
    zombie, run, last = query.run(3), query.run(2), query.run(3)
    slots = zombie.write()
    run.commit(run.write())
    # It read the record before the other run started, and writes it only now.
    with Admin(bootstrap_servers=query.address) as admin:
        record = Record(0, 3, (zombie.id,), query.topic)
        write_record(admin, zombie.options.id_prefix, query.id, record)
        with pytest.raises(ProducerFenced):
            admin.end_transactions([one.opened for one in slots if one.opened is not None], commit=True)

    with pytest.raises(SlotsChanged, match="number of tasks is not recorded"):
        last.commit(last.write())
    assert query.seen() == ALL


def test_a_batch_that_an_earlier_release_committed_in_part_is_completed(query: Query) -> None:
    first = query.run(3)
    # That release did not record runs.
    first.id = UNKNOWN_RUN
    first.commit_some(first.write(), [0])
    run = query.run(3)
    run.commit(run.write())

    assert query.seen() == ALL


# Drivers and tasks that are still alive


def test_a_driver_that_is_still_alive_commits_nothing(query: Query) -> None:
    zombie, run = query.run(3), query.run(2)
    slots = zombie.write()
    run.commit(run.write())

    with pytest.raises(ClientError):
        zombie.commit(slots)
    assert query.seen() == ALL


def test_of_two_drivers_the_one_with_the_later_tasks_commits(query: Query) -> None:
    earlier, later = query.run(2), query.run(3)
    slots_before, slots = earlier.write(), later.write()

    with pytest.raises(ProducerFenced):
        earlier.commit(slots_before)
    # Its third slot was not fenced.
    later.commit(slots)
    assert query.seen() == ALL


def test_a_fenced_task_cannot_open_a_transaction(query: Query) -> None:
    zombie, run = query.run(3), query.run(2)
    name = zombie.slot(2)
    with Producer(bootstrap_servers=query.address, transactional_id=name) as producer:
        producer.init_transactions()
        run.commit(run.write())
        producer.begin_transaction()
        sent = producer.send(query.topic, b"99", partition=2)
        with pytest.raises(ClientError):
            sent.result()

    assert (query.seen(), query.open_ids()) == (ALL, [])


def test_later_commits_of_a_run_do_not_fence_again(query: Query) -> None:
    run = query.run(2)
    run.commit(run.write())
    # No other run takes such an id while this one is alive.
    query.run(3).write_slot(2, 1)
    run.commit(run.write(1), 1)
    assert query.open_ids() == [run.slot(2)]

    query.run(2).commit(query.run(2).write(2), 2)
    assert query.open_ids() == []


# Other scopes, prefixes and queries


def test_a_run_with_another_prefix_fences_open_transactions(query: Query) -> None:
    query.run(3).write()
    run = query.run(3, prefix="another")
    run.commit(run.write())

    assert (query.seen(), query.open_ids()) == (ALL, [])


def test_another_prefix_is_rejected_until_the_batch_is_complete(query: Query) -> None:
    first = query.run(3)
    first.commit_some(first.write(), [0])
    other = query.run(3, prefix="another")

    with pytest.raises(SlotsChanged, match="run the query once with transactionalIdPrefix=sink"):
        other.commit(other.write())
    again = query.run(3)
    again.commit(again.write())
    other = query.run(3, prefix="another")
    other.commit(other.write(1), 1)
    assert query.seen() == list(range(2 * ROWS))


@pytest.mark.parametrize("prefix", ["sink", "another"])
@pytest.mark.parametrize("batches", [0, 1], ids=["first", "second"])
def test_scope_task_fences_transactions_of_scope_batch(query: Query, prefix: str, batches: int) -> None:
    whole = query.run(3, scope=Scope.BATCH, prefix=prefix)
    for batch in range(batches):
        whole.commit_whole(whole.write_whole(batch), batch)
    whole.write_whole(batches)
    assert len(query.open_ids()) == 1
    run = query.run(2)
    run.commit(run.write(batches), batches)

    assert (query.seen(), query.open_ids()) == (list(range(ROWS * (1 + batches))), [])


@pytest.mark.parametrize("prefix", ["sink", "another"])
def test_scope_batch_fences_transactions_of_scope_task(query: Query, prefix: str) -> None:
    query.run(3, prefix=prefix).write()
    whole = query.run(2, scope=Scope.BATCH)
    whole.commit_whole(whole.write_whole())

    assert (query.seen(), query.open_ids()) == (ALL, [])


def test_scope_batch_fences_transactions_of_another_prefix(query: Query) -> None:
    query.run(3, scope=Scope.BATCH, prefix="another").write_whole()
    whole = query.run(3, scope=Scope.BATCH)
    whole.commit_whole(whole.write_whole())

    assert (query.seen(), query.open_ids()) == (ALL, [])


@pytest.mark.parametrize("prefix", ["sink", "another"])
def test_scope_task_skips_a_batch_that_scope_batch_has_committed(query: Query, prefix: str) -> None:
    whole = query.run(3, scope=Scope.BATCH, prefix=prefix)
    whole.commit_whole(whole.write_whole())
    for batch in (0, 1):
        run = query.run(2)
        run.commit(run.write(batch), batch)

    assert query.seen() == list(range(2 * ROWS))


def test_scope_batch_skips_a_batch_that_another_prefix_has_committed(query: Query) -> None:
    before = query.run(3, scope=Scope.BATCH, prefix="another")
    before.commit_whole(before.write_whole())
    whole = query.run(3, scope=Scope.BATCH)
    whole.commit_whole(whole.write_whole())

    assert (query.seen(), query.open_ids()) == (ALL, [])


def test_scope_batch_is_rejected_until_the_batch_is_complete(query: Query) -> None:
    first = query.run(3)
    first.commit_some(first.write(), [0])
    whole = query.run(3, scope=Scope.BATCH)

    with pytest.raises(SlotsChanged, match="by transactionScope=task"):
        whole.commit_whole(whole.write_whole())
    assert query.seen() == [row for row in ALL if row % 3 == 0]


def test_a_query_with_the_same_prefix_is_left_alone(query: Query, broker: Broker) -> None:
    other = Query(broker.bootstrap)
    running = other.run(3)
    slots = running.write()
    run = query.run(2)
    run.commit(run.write())

    running.commit(slots)
    assert (query.seen(), other.seen()) == (ALL, ALL)


def test_a_query_with_a_checkpoint_of_the_same_name_is_left_alone(query: Query, broker: Broker) -> None:
    """The same path in another Spark cluster is another checkpoint."""
    other = Query(broker.bootstrap, checkpoint=query.checkpoint)
    running = other.run(3, scope=Scope.BATCH)
    parts = running.write_whole()
    run = query.run(2)
    run.commit(run.write())

    running.commit_whole(parts)
    assert (query.seen(), other.seen()) == (ALL, ALL)
