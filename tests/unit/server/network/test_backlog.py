"""How connections with a backlog share an iteration of the event loop."""

import pytest

from barnabas.server.network.backlog import BEGUN_AT_ONCE_MAX, BEGUN_TOGETHER_MAX, StartBudget

pytestmark = pytest.mark.kernel


@pytest.mark.parametrize("backlogs", [0, 1, 8, 9, 100, 512, 513, 20_000])
def test_connections_with_a_backlog_share_an_iteration(backlogs: int) -> None:
    budget = StartBudget()
    budget.backlogs = backlogs

    assert 1 <= budget.share() <= BEGUN_AT_ONCE_MAX
    assert budget.share() == 1 or backlogs * budget.share() <= BEGUN_TOGETHER_MAX
    assert (budget.share() == BEGUN_AT_ONCE_MAX) == (backlogs <= BEGUN_TOGETHER_MAX // BEGUN_AT_ONCE_MAX)
