"""Quorums of raft drivers under random faults, and under the stored schedules of failures that were found."""

import os
import subprocess
import sys
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


DIGESTS = """
import sys
from barnabas.sim.quorum.run import random_spec, run_quorum
for seed in range(int(sys.argv[1])):
    run_quorum(random_spec(100 + seed))
for seed in (0, 3, 5):
    outcome = run_quorum(random_spec(seed))
    print(seed, outcome.digest, *outcome.history.lines())
"""


def test_processes_agree_on_a_run_whatever_their_hash_seed() -> None:
    def said(hash_seed: str, warm_up: int) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        command = [sys.executable, "-c", DIGESTS, str(warm_up)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    first = said("0", 0)

    assert len(first) > 10_000
    assert said("1", 1) == first
    assert said("2", 0) == first


def test_a_vote_that_leaves_before_it_is_on_the_disk_is_found() -> None:
    with planted("vote_before_it_is_on_disk"):
        violations = [found for seed in range(3) for found in run_quorum(random_spec(seed)).violations]

    assert any("is on the disk" in found.text for found in violations)
