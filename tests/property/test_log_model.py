"""A log compared with a dictionary over thousands of steps, on a simulated disk that loses power.

BARNABAS_SEED=17 pytest tests/property/test_log_model.py             replays one seed
BARNABAS_SEEDS=1000 pytest -n 2 tests/property/test_log_model.py     runs more seeds
"""

import pytest

from support.log.world import World
from support.scale import seeds

pytestmark = pytest.mark.kernel

STEPS = 500
HERE = "tests/property/test_log_model.py"


# Seeds that once failed, each for a different reason.
ONCE_FAILED = (43, 67, 136, 149, 360, 662, 1047, 1052, 1127, 2061)


@pytest.mark.parametrize("seed", seeds(20, always=ONCE_FAILED))
def test_a_log_agrees_with_a_dictionary_on_a_faulty_disk(seed: int) -> None:
    World(seed).run(STEPS, replay=f"BARNABAS_SEED={seed} pytest {HERE}")


@pytest.mark.parametrize("seed", seeds(20, always=ONCE_FAILED))
def test_compaction_keeps_the_last_committed_value_of_every_key_and_adds_none(seed: int) -> None:
    World(seed, compacted=True).run(STEPS, replay=f"BARNABAS_SEED={seed} pytest {HERE}")
