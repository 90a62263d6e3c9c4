"""The time of rebalancing is the time without partitions."""

from barnabas.base.ids import TopicPartition
from barnabas.cli.perf.rebalancing import Rebalancing

READ_0, READ_1 = TopicPartition("read", 0), TopicPartition("read", 1)


def test_it_is_waited_from_the_beginning_until_partitions_come() -> None:
    rebalancing = Rebalancing(started_ms=100)

    rebalancing.assigned([READ_0], 350)

    assert (rebalancing.total_ms, rebalancing.unreported_ms) == (250, 250)


def test_it_is_waited_again_from_when_the_last_one_went() -> None:
    rebalancing = Rebalancing(started_ms=0)
    rebalancing.assigned([READ_0, READ_1], 100)

    rebalancing.revoked([READ_0], 500)
    rebalancing.revoked([READ_1], 600)
    rebalancing.assigned([READ_1], 640)

    assert rebalancing.total_ms == 140


def test_what_comes_and_goes_beside_others_holds_nobody_up() -> None:
    rebalancing = Rebalancing(started_ms=0)
    rebalancing.assigned([READ_0], 100)

    rebalancing.assigned([READ_1], 500)
    rebalancing.revoked([READ_0], 600)
    rebalancing.assigned([READ_0], 900)

    assert rebalancing.total_ms == 100


def test_a_share_of_nothing_is_waited_on_and_no_time_counts_twice() -> None:
    rebalancing = Rebalancing(started_ms=0)

    rebalancing.assigned([], 300)
    rebalancing.assigned([READ_0], 1000)

    assert rebalancing.total_ms == 1000


def test_it_was_no_rebalance_if_no_partition_ever_came() -> None:
    assert Rebalancing(started_ms=0).total_ms == 0
