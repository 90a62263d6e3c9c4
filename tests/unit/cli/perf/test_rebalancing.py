"""Rebalance time is the time without partitions."""

from barnabas.base.ids import TopicPartition
from barnabas.cli.perf.reading import Rebalancing

READ_0, READ_1 = TopicPartition("read", 0), TopicPartition("read", 1)


def test_the_wait_starts_at_the_beginning() -> None:
    rebalancing = Rebalancing(started_ms=100)

    rebalancing.assigned([READ_0], 350)

    assert (rebalancing.total_ms, rebalancing.unreported_ms) == (250, 250)


def test_the_wait_restarts_at_the_loss_of_the_last_partition() -> None:
    rebalancing = Rebalancing(started_ms=0)
    rebalancing.assigned([READ_0, READ_1], 100)

    rebalancing.revoked([READ_0], 500)
    rebalancing.revoked([READ_1], 600)
    rebalancing.assigned([READ_1], 640)

    assert rebalancing.total_ms == 140


def test_changes_beside_other_partitions_do_not_count() -> None:
    rebalancing = Rebalancing(started_ms=0)
    rebalancing.assigned([READ_0], 100)

    rebalancing.assigned([READ_1], 500)
    rebalancing.revoked([READ_0], 600)
    rebalancing.assigned([READ_0], 900)

    assert rebalancing.total_ms == 100


def test_an_empty_assignment_continues_the_wait_without_counting_twice() -> None:
    rebalancing = Rebalancing(started_ms=0)

    rebalancing.assigned([], 300)
    rebalancing.assigned([READ_0], 1000)

    assert rebalancing.total_ms == 1000


def test_without_any_assignment_there_is_no_rebalance_time() -> None:
    assert Rebalancing(started_ms=0).total_ms == 0
