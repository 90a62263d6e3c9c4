"""The attacks of tests/scenario/spark/test_killed_drivers.py, on Apache Kafka."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from support.kafka.broker import KafkaBroker
from support.kafka.tools import kafka_tools
from support.spark_runs import attacks
from support.spark_runs.attacks import Scene
from support.spark_runs.process import DriverProcess
from support.wire.holding_proxy import HoldingProxy

SETTINGS = {
    **attacks.SETTINGS,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "group.initial.rebalance.delay.ms": 0,
}


@pytest.fixture(scope="module")
def module_scene(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    directory = tmp_path_factory.mktemp("attacked")
    with HoldingProxy() as proxy:
        settings = {**SETTINGS, **proxy.settings}
        broker = KafkaBroker(kafka_tools(), directory, settings=settings)
        broker.format()
        with attacks.scene(spark, broker, proxy, directory) as scene:
            yield scene


@pytest.fixture
def on(module_scene: Scene) -> Iterator[Scene]:
    yield module_scene
    module_scene.forget()


def test_of_two_live_drivers_the_first_is_fenced(on: Scene) -> None:
    attacks.two_live_drivers(on)


def test_workers_are_killed_when_they_have_written(on: Scene) -> None:
    attacks.workers_killed(on)


def test_the_broker_is_killed_while_commits_are_on_their_way(on: Scene) -> None:
    attacks.broker_killed(on)


@pytest.mark.parametrize(
    "kill", [DriverProcess.kill_driver, DriverProcess.kill_python], ids=["jvm", "python"]
)
def test_the_driver_is_killed_between_two_commits(on: Scene, kill: attacks.Kill) -> None:
    attacks.killed_between_two_commits(on, kill)


def test_commits_of_a_dead_driver_arrive_while_its_successor_writes(on: Scene) -> None:
    attacks.killed_and_heard_of_later(on, DriverProcess.end)


def test_the_driver_and_the_broker_are_killed_while_transactions_are_open(on: Scene) -> None:
    attacks.all_killed(on)
