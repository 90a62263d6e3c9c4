"""The shares of logs, connections and everything else in the descriptors of a process."""

import pytest

from barnabas.server.ports import CONNECTIONS_MIN, LOGS_MAX, RESERVE_MAX, divide


@pytest.mark.parametrize("total", [256, 600, 1024, 4096, 20_000, 65_536, 1 << 20])
def test_the_shares_add_up_to_the_total(total: int) -> None:
    budget = divide(total)

    assert budget.logs + budget.connections + budget.reserve == total
    assert min(budget.logs, budget.reserve) >= 64


def test_connections_get_most_descriptors() -> None:
    assert divide(20_000).connections == 18_622
    assert divide(1 << 20).connections == (1 << 20) - LOGS_MAX - RESERVE_MAX


def test_a_limit_that_is_too_low_to_work_still_lets_a_few_clients_in() -> None:
    assert divide(64).connections == CONNECTIONS_MIN
