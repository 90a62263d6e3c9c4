"""A Spark job from topic to topic, whose driver, workers and broker are killed at random.

BARNABAS_SPARK_EOS_SECONDS=600 makes it ten minutes, and BARNABAS_SEED=n repeats the order of the kills.
"""

from pathlib import Path

import pytest

from support.scale import is_soak, scaled
from support.spark.here import why_no_spark
from support.spark_runs.run import disturbed, killed_until_doubled, rivalled

SECONDS = scaled("BARNABAS_SPARK_EOS_SECONDS", short=60.0, soak=600.0)
RIVAL_SECONDS = scaled("BARNABAS_SPARK_RIVAL_SECONDS", short=30.0, soak=120.0)
# One is nearly always enough.
BLOWS_WITHOUT_MAX = 6
TASK = {"deliveryGuarantee": "exactly-once"}
BATCH = {"deliveryGuarantee": "exactly-once", "transactionScope": "batch"}

pytestmark = [
    pytest.mark.long,
    pytest.mark.scaled,
    pytest.mark.skipif(why_no_spark() is not None, reason=why_no_spark() or ""),
]


@pytest.mark.parametrize(("options", "share"), [(TASK, 0.6), (BATCH, 0.4)], ids=["task", "batch"])
def test_the_output_is_the_input_exactly_once_despite_kills(
    options: dict[str, str], share: float, tmp_path: Path
) -> None:
    run = disturbed(tmp_path, options, SECONDS * share)
    print(run.story())

    assert (run.doubled, run.missing) == (0, 0), run.story()
    # Otherwise the test shows nothing: with few kills none may have hit an open transaction.
    assert run.batches > 0
    assert run.aborted > 0 or not is_soak(), run.story()


# With a transaction for the whole micro-batch they seldom collide; test_killed_drivers.py forces that.
@pytest.mark.soak
def test_the_output_is_the_input_exactly_once_if_two_drivers_run_the_job(tmp_path: Path) -> None:
    run = rivalled(tmp_path, TASK, RIVAL_SECONDS)
    print(run.story())

    assert (run.doubled, run.missing) == (0, 0), run.story()
    # Otherwise the drivers never collided, and the test shows nothing.
    assert run.aborted > 0, run.story()


# The control of the tests above. The control for transactions without Spark is part of every run.
@pytest.mark.soak
def test_at_least_once_duplicates_records_when_the_driver_is_killed(tmp_path: Path) -> None:
    run = killed_until_doubled(tmp_path, {}, BLOWS_WITHOUT_MAX)

    assert run.doubled > 0, f"the runs with transactions may have shown nothing: {run.story()}"
