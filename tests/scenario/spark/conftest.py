"""One Spark session for all tests here, because it takes seconds to start."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from barnabas.client.admin.features import FeatureUpdate, UpgradeType
from barnabas.client.blocking import Admin
from barnabas.spark.source.consumer_cache import close_all
from barnabas.testing import Broker
from support.process.our_broker import OurBroker
from support.spark.here import why_no_spark


@pytest.fixture(scope="module", autouse=True)
def nothing_kept() -> Iterator[None]:
    """Close consumers that tests cached as a worker would; they would keep looking for stopped brokers."""
    yield
    close_all()


@pytest.fixture(scope="package")
def spark() -> Iterator[SparkSession]:
    if (reason := why_no_spark()) is not None:
        pytest.skip(reason)
    # Otherwise workers run with the first python3 on PATH.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    yield session
    session.stop()


@pytest.fixture(scope="package")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory: Path = tmp_path_factory.mktemp("broker")
    settings = {"transaction.state.log.num.partitions": 2, "offsets.topic.num.partitions": 2}
    with OurBroker(directory, settings=settings).running() as where:
        yield where


@pytest.fixture(scope="module", params=[1, 2], ids=["version1", "version2"])
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """Sink options for writers without Spark, for both versions of transactions, with a short timeout."""
    settings = {
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": 50,
        "transaction.state.log.num.partitions": 2,
        "offsets.topic.num.partitions": 2,
    }
    with Broker(settings) as broker, Admin(bootstrap_servers=broker.bootstrap) as admin:
        if request.param == 1:
            first = FeatureUpdate(level=1, type=UpgradeType.SAFE_DOWNGRADE)
            admin.update_features({"transaction.version": first})
        assert admin.describe_features().finalized["transaction.version"].last == request.param
        yield broker
