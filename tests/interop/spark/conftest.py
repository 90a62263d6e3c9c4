"""One Spark with Spark's own Kafka connector beside ours, and one broker for both."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.process.our_broker import OurBroker
from support.spark.kafka_jars import spark_kafka_jars

SETTINGS = {
    "transaction.state.log.num.partitions": 2,
    "offsets.topic.num.partitions": 2,
    "log.cleaner.backoff.ms": 200,
    # A topic that is not there stays away, unless a test makes it.
    "auto.create.topics.enable": "false",
}


@pytest.fixture(scope="package")
def spark() -> Iterator[SparkSession]:
    jars = spark_kafka_jars()
    # Else the workers run with whatever python3 is first in the PATH.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.jars", ",".join(map(str, jars)))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="package")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory: Path = tmp_path_factory.mktemp("broker")
    with OurBroker(directory, settings=SETTINGS).running() as where:
        yield where
