"""Schedules as JSON: they survive a round trip, and a wrong name is an error."""

from random import Random
from typing import Any

import pytest

from barnabas.sim.faults.schedule import InvalidSchedule, from_json, to_json
from barnabas.sim.faults.swarm import random_rules

PROBES = ("raft.SendVote", "raft.BecameLeader")


def test_random_schedules_survive_a_round_trip() -> None:
    for seed in range(100):
        rules = random_rules(Random(seed), probes=PROBES, duration_ms=1_000, count=20)
        assert from_json(to_json(rules), probes=PROBES) == rules


@pytest.mark.parametrize(
    ("rule", "wrong"),
    [
        ({"when": {"probe": "raft.Vote"}, "do": "kill"}, "unknown probe 'raft.Vote'"),
        ({"when": {"at_ms": 1}, "do": "shoot"}, "unknown action 'shoot'"),
        ({"when": {"at_ms": 1}, "do": "kill", "role": "boss"}, "unknown role 'boss'"),
        ({"when": {"at_ms": 1}, "do": "kill", "ms": 3}, "kill takes no parameters"),
        ({"when": {"at_ms": 1}, "do": "delay"}, "delay takes"),
        ({"when": {"at_ms": 1}, "do": "kill", "role": "same"}, "needs a probe"),
        ({"when": {}, "do": "kill"}, "either at_ms or probe"),
    ],
)
def test_a_wrong_name_is_an_error(rule: dict[str, Any], wrong: str) -> None:
    with pytest.raises(InvalidSchedule, match=wrong):
        from_json([rule], probes=PROBES)


def test_a_rule_reads_as_a_sentence() -> None:
    rules = from_json(
        [
            {
                "when": {"probe": "raft.SendVote", "role": "leader", "nth": 2},
                "do": "isolate",
                "role": "same",
                "direction": "in",
                "for_ms": 3000,
            }
        ],
        probes=PROBES,
    )
    assert str(rules[0]) == "when leader reports raft.SendVote (2): isolate same direction=in for 3000 ms"
