"""Raft's core under message loss, delay, crashes and partitions loses no committed record.

To replay a failing seed, run this file with `-k` and the seed from the test's name.
"""

import pytest

from barnabas.raft.errors import BrokenPromise
from support.raft_world import HEALING_MS, World
from support.scale import seeds

ROUNDS = 80


def replay(world: World) -> str:
    """The command that replays the failure, and the last events before it."""
    tail = "\n".join(world.story[-30:])
    return f"replay: pytest tests/property/test_raft.py -k 'seed{world.seed}-'\n{tail}"


@pytest.mark.parametrize(("voters", "observers"), [(1, 0), (3, 0), (3, 1), (5, 0)])
@pytest.mark.parametrize("seed", seeds(60), ids=lambda seed: f"seed{seed}-")
def test_committed_records_stay_and_a_healed_quorum_commits_again(
    seed: int, voters: int, observers: int
) -> None:
    world = World(seed, voters=voters, observers=observers)

    try:
        for number in range(ROUNDS):
            world.run(world.rng.randrange(5, 400))
            for which in range(world.rng.randrange(4)):
                world.propose(f"record {number}.{which}")
            world.run(world.rng.randrange(1, 30))
            world.disturb()
        world.heal()
        assert world.run_until(world.is_settled, HEALING_MS), (
            "a healed quorum has no leader, or commits nothing"
        )
        leader = world.leader()
        assert leader is not None, "a settled quorum has no leader"
        leader.append("the last record")
        assert world.run_until(world.is_settled, HEALING_MS), "the last record is not committed everywhere"
    except (AssertionError, BrokenPromise) as error:
        raise AssertionError(f"{error}\n{replay(world)}") from error

    assert "the last record" in [payload for _, payload in world.ledger]
