"""Exactly-once queries whose driver, workers and broker are killed while transactions are open.

The kills are not random: a proxy in front of the broker holds back requests until the kill has happened. See
test_exactly_once.py for random kills, and test_late_commits.py for the same requests without Spark.
"""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from support.process.our_broker import OurBroker
from support.spark_runs import attacks
from support.spark_runs.attacked import BATCH, TASK
from support.spark_runs.attacks import Scene
from support.spark_runs.process import DriverProcess
from support.wire.holding_proxy import HoldingProxy

# Two drivers have to start, one in this process and one in its own.
pytestmark = pytest.mark.long

each_scope = pytest.mark.parametrize("options", [TASK, BATCH], ids=["task", "batch"])
KILLS = [DriverProcess.kill_driver, DriverProcess.kill_python, DriverProcess.end]


@pytest.fixture(scope="module")
def module_scene(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    directory = tmp_path_factory.mktemp("attacked")
    with HoldingProxy() as proxy:
        broker = OurBroker(directory / "broker", settings={**attacks.SETTINGS, **proxy.settings})
        with attacks.scene(spark, broker, proxy, directory) as scene:
            yield scene


@pytest.fixture
def on(module_scene: Scene) -> Iterator[Scene]:
    yield module_scene
    module_scene.forget()


@pytest.mark.soak
def test_of_two_live_drivers_the_first_is_fenced(on: Scene) -> None:
    attacks.two_live_drivers(on)


def test_the_jvm_is_killed_between_two_commits(on: Scene) -> None:
    attacks.killed_between_two_commits(on, DriverProcess.kill_driver)


@pytest.mark.soak
def test_workers_are_killed_when_they_have_written(on: Scene) -> None:
    attacks.workers_killed(on)


@pytest.mark.soak
def test_the_broker_is_killed_while_commits_are_on_their_way(on: Scene) -> None:
    attacks.broker_killed(on)


@pytest.mark.soak
def test_the_driver_and_the_broker_are_killed_while_transactions_are_open(on: Scene) -> None:
    attacks.all_killed(on)


@pytest.mark.soak
@pytest.mark.parametrize("kill", KILLS[1:], ids=["python", "all"])
def test_the_driver_is_killed_between_two_commits(on: Scene, kill: attacks.Kill) -> None:
    attacks.killed_between_two_commits(on, kill)


@pytest.mark.soak
@pytest.mark.parametrize("kill", KILLS, ids=["jvm", "python", "all"])
def test_commits_of_a_dead_driver_arrive_while_its_successor_writes(on: Scene, kill: attacks.Kill) -> None:
    attacks.killed_and_heard_of_later(on, kill)


@pytest.mark.soak
@each_scope
def test_a_query_is_killed_while_another_one_has_its_prefix(on: Scene, options: dict[str, str]) -> None:
    attacks.two_queries_with_one_prefix(on, options)


@pytest.mark.soak
def test_commits_arrive_when_the_coordinator_has_aborted(on: Scene) -> None:
    attacks.commits_after_the_timeout(on)


@pytest.mark.soak
def test_spark_changes_the_task_count_of_a_partly_committed_batch(on: Scene) -> None:
    refused = attacks.tasks_changed(on, TASK)

    assert refused is not None, "rows of other tasks would be written again"
    assert "begun with 2 tasks but is now planned with 1" in refused


@pytest.mark.soak
def test_spark_changes_the_number_of_tasks_of_a_whole_batch(on: Scene) -> None:
    assert attacks.tasks_changed(on, BATCH) is None
