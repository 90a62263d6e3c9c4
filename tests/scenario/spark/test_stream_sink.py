"""df.writeStream.format("barnabas"): the records in the topic after a query died and was restarted."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from barnabas.spark.lag import LagListener, QueryLag
from support.spark.copy import BATCH, TASK, Copy, check_a_batch_that_comes_again, each_promise


@pytest.fixture
def copy(spark: SparkSession, address: str, tmp_path: Path) -> Callable[[dict[str, str]], Copy]:
    return lambda options: Copy(spark, address, tmp_path / "checkpoint", options)


Make = Callable[[dict[str, str]], Copy]


@each_promise
def test_a_replayed_batch_follows_the_delivery_guarantee(
    copy: Make, options: dict[str, str], times: int
) -> None:
    check_a_batch_that_comes_again(copy(options), times)


@pytest.mark.parametrize("spelling", ["{}/", "file://{}", "{}-too"], ids=["slash", "scheme", "link"])
def test_a_replay_is_recognized_with_any_spelling_of_its_checkpoint(copy: Make, spelling: str) -> None:
    clicks = copy(BATCH)
    clicks.directory.with_name(f"{clicks.directory.name}-too").symlink_to(clicks.directory)
    clicks.send(50)
    clicks.run()
    clicks.forget_last_batch()
    clicks.checkpoint = spelling.format(clicks.directory)
    clicks.run()

    assert clicks.written() == list(range(50))


@pytest.mark.parametrize("options", [TASK, BATCH], ids=["task", "batch"])
def test_a_new_query_in_the_same_checkpoint_directory_is_another_query(
    copy: Make, options: dict[str, str]
) -> None:
    clicks = copy(options)
    clicks.send(50)
    clicks.run()
    # Its batch numbers equal those of the earlier query.
    shutil.rmtree(clicks.directory)
    clicks.run()

    assert clicks.written() == sorted([*range(50)] * 2)


def test_a_replay_with_another_plan_is_rejected(copy: Make) -> None:
    clicks = copy(TASK)
    clicks.send(100)
    clicks.run()
    clicks.forget_last_batch()

    with pytest.raises(StreamingQueryException, match="begun with 2 tasks but is now planned with 4"):
        clicks.run(minPartitions="4")
    assert clicks.written() == list(range(100))
    clicks.run()
    assert clicks.written() == list(range(100))


def test_a_timeout_that_is_longer_than_brokers_allow_is_refused(copy: Make) -> None:
    clicks = copy({**TASK, "kafka.transaction.timeout.ms": "999999999"})
    clicks.send(10)

    with pytest.raises(StreamingQueryException, match="INVALID_TRANSACTION_TIMEOUT"):
        clicks.run()


def test_lag_is_reported_in_records_and_in_seconds(copy: Make) -> None:
    clicks = copy({})
    clicks.send(100)
    told: list[QueryLag] = []
    listener = LagListener(told.append, bootstrap_servers=clicks.address)
    clicks.spark.streams.addListener(listener)
    try:
        clicks.run(maxOffsetsPerTrigger="40")
        end = time.monotonic() + 20
        while not told or told[-1].records > 0:
            assert time.monotonic() < end, "the last batch is told of"
            time.sleep(0.05)
    finally:
        clicks.spark.streams.removeListener(listener)
        listener.close()

    mine = [lag for lag in told if lag.name == clicks.target]
    assert [lag.records for lag in mine] == [60, 20, 0]
    assert all(0 < lag.seconds < 60 for lag in mine[:2])
    assert mine[-1].seconds == 0
    assert "records=60" in str(mine[0])
    assert "min=30 max=30 avg=30.0" in str(mine[0])
