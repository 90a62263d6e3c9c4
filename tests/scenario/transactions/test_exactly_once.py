"""Consume, transform, produce with confluent-kafka and with our own client: the output equals the input.

Workers, the source and our broker are killed at random and started again: see support.eos_runs. The time is
shared by the shapes of the group; BARNABAS_EOS_SECONDS=600 makes it ten minutes, with some shapes more, and
BARNABAS_SEED=n repeats the order of the blows.
"""

import os
from pathlib import Path

import pytest

from support.eos_runs.chaos import disturb
from support.eos_runs.run import (
    BROKER_SETTINGS,
    MORE_SHAPES,
    SHAPES,
    WITHOUT_TRANSACTIONS,
    EosRun,
    Shape,
    eos_run,
    new_seed,
)
from support.process.our_broker import OurBroker
from support.scale import scaled

pytestmark = [pytest.mark.long, pytest.mark.scaled]

SECONDS = scaled("BARNABAS_EOS_SECONDS", short=60.0, soak=600.0)
SECONDS_FOR_ALL = 300.0
CHOSEN = (*SHAPES, *MORE_SHAPES) if SECONDS >= SECONDS_FOR_ALL else SHAPES
# About eight kills, one of which is enough: most runs kill a process that has something to lose.
SECONDS_WITHOUT = 10.0
RUNS_WITHOUT_MAX = 10


def seed() -> int:
    return int(os.environ.get("BARNABAS_SEED") or new_seed())


def run_and_check(shape: Shape, seconds: float, directory: Path) -> EosRun:
    broker = OurBroker(directory / "broker", settings=BROKER_SETTINGS)
    broker.start()
    try:
        with eos_run(broker, shape, directory, seed=seed()) as run:
            disturb(run, seconds=seconds)
        print(run.story())
        broker.stop()
    finally:
        broker.kill()
    return run


@pytest.mark.parametrize("shape", CHOSEN, ids=lambda shape: shape.name)
def test_the_output_is_the_input_exactly_once_with_any_process_killed(shape: Shape, tmp_path: Path) -> None:
    run = run_and_check(shape, SECONDS / len(CHOSEN), tmp_path)

    assert not run.found, "\n".join([*run.found, run.story()])
    # Else it would have shown nothing.
    assert run.records > 0
    assert run.committed > 0
    assert run.happened.total() > 0


def test_without_transactions_the_same_run_doubles_or_loses_records(tmp_path: Path) -> None:
    for number in range(RUNS_WITHOUT_MAX):
        run = run_and_check(WITHOUT_TRANSACTIONS, SECONDS_WITHOUT, tmp_path / str(number))
        if any("there twice" in fault or "missing" in fault for fault in run.found):
            return
    raise AssertionError("nothing was doubled or lost: the runs with transactions may have shown nothing")
