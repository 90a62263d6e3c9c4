"""Speculative copies of tasks that write exactly once, where the losing attempt has already written."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from support.process.our_broker import OurBroker
from support.spark_runs import attacks, copies
from support.spark_runs.attacks import Scene
from support.spark_runs.cluster import two_workers
from support.spark_runs.process import DriverProcess
from support.wire.holding_proxy import HoldingProxy

pytestmark = pytest.mark.soak


@pytest.fixture(scope="module")
def on(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    directory = tmp_path_factory.mktemp("speculation")
    with HoldingProxy() as proxy:
        broker = OurBroker(directory / "broker", settings={**attacks.SETTINGS, **proxy.settings})
        with attacks.scene(spark, broker, proxy, directory) as scene:
            yield scene


@pytest.fixture(scope="module")
def driver(on: Scene) -> Iterator[DriverProcess]:
    """A driver on a cluster, because Spark does not speculate in local mode."""
    with two_workers(on.directory) as settings:
        driver = DriverProcess(on.directory / "driver.txt", **settings, **copies.SPECULATION)
        yield driver
        driver.end()


def test_the_copy_of_a_task_that_has_written_wins(on: Scene, driver: DriverProcess) -> None:
    copies.copy_wins(on, driver)


def test_a_task_fenced_by_its_copy_finishes_first(on: Scene, driver: DriverProcess) -> None:
    copies.fenced_attempt_wins(on, driver)


def test_a_copy_in_the_transaction_of_a_micro_batch_is_refused(on: Scene, driver: DriverProcess) -> None:
    copies.copy_is_refused(on, driver)
