"""Quorums of raft drivers under random faults, and under the stored schedules of failures that were found."""

from pathlib import Path

import pytest

from barnabas.sim.campaign import load, run_seed
from barnabas.sim.quorum.run import random_spec, run_quorum, spec_from_json, spec_to_json
from support.planted.raft import planted
from support.scale import scaled

STORED = sorted((Path(__file__).parents[1] / "sim").glob("*.json"))
SEEDS = scaled("BARNABAS_QUORUM_SEEDS", 10, 3_000)


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_stored_schedules_pass(path: Path) -> None:
    outcome = run_quorum(load(path))

    assert outcome.violations == ()
    assert not outcome.did_nothing


@pytest.mark.scaled
def test_random_faults_break_no_promise() -> None:
    failed, idle = {}, 0
    for seed in range(SEEDS):
        summary = run_seed(seed)
        idle += summary.did_nothing
        if summary.violations:
            failed[seed] = summary.violations
    assert failed == {}
    # Most runs must get something done during the faults, or they test nothing.
    assert idle < SEEDS / 4


def test_a_run_is_determined_by_its_spec() -> None:
    spec = random_spec(9)

    first, second = run_quorum(spec), run_quorum(spec_from_json(spec_to_json(spec)))

    assert first.digest == second.digest
    assert list(first.history.lines()) == list(second.history.lines())
    assert first.digest != run_quorum(random_spec(10)).digest


def test_a_vote_that_leaves_before_it_is_on_the_disk_is_found() -> None:
    with planted("vote_before_it_is_on_disk"):
        violations = [found for seed in range(3) for found in run_quorum(random_spec(seed)).violations]

    assert any("is on the disk" in found.text for found in violations)
