"""The lag of a running query: from the Prometheus endpoint, and from its last progress."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest
from pyspark.sql import SparkSession

from barnabas.client.blocking import Admin, Producer
from barnabas.spark.lag import lag_of
from barnabas.spark.prometheus import TABLE, PrometheusLagListener
from support.prometheus_text import Family, read_exposition

RECORDS = {0: 30, 1: 10}
LIMIT = 20
# The limit is shared by backlog: 15 and 5 are read.
LEFT = {"0": 15.0, "1": 5.0}
WAIT_S_MAX = 60
ANSWER_S_MAX = 10


@pytest.fixture
def listener(spark: SparkSession, address: str) -> Iterator[PrometheusLagListener]:
    found = PrometheusLagListener(0, bootstrap_servers=address)
    spark.streams.addListener(found)
    yield found
    spark.streams.removeListener(found)
    found.close()


def scrape(listener: PrometheusLagListener) -> dict[str, Family]:
    host, port = listener.address
    with urlopen(f"http://{host}:{port}/metrics", timeout=ANSWER_S_MAX) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        return read_exposition(answer.read())


def scrape_until(
    listener: PrometheusLagListener, condition: Callable[[dict[str, Family]], bool]
) -> dict[str, Family]:
    end = time.monotonic() + WAIT_S_MAX
    while not condition(found := scrape(listener)):
        assert time.monotonic() < end, found
        time.sleep(0.1)
    return found


def by_partition(family: Family) -> dict[str, float]:
    return {dict(labels)["partition"]: value for (_, labels), value in family.samples.items()}


def test_prometheus_sees_a_query_from_its_first_batch_to_its_end(
    spark: SparkSession, address: str, listener: PrometheusLagListener, tmp_path: Path
) -> None:
    topic = "lagging"
    with Admin(bootstrap_servers=address) as admin:
        admin.create_topic(topic, partitions=len(RECORDS))
    with Producer(bootstrap_servers=address) as producer:
        for partition, records in RECORDS.items():
            for _ in range(records):
                producer.send(topic, b"x", partition=partition)
    began = time.time()
    query = (
        spark.readStream.format("barnabas")
        .option("kafka.bootstrap.servers", address)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", str(LIMIT))
        .load()
        .writeStream.format("noop")
        .queryName("slow")
        .option("checkpointLocation", str(tmp_path))
        # After one micro-batch the query does not read for an hour.
        .trigger(processingTime="1 hour")
        .start()
    )
    try:
        found = scrape_until(listener, lambda seen: "barnabas_spark_batch_id" in seen)
        lag = lag_of(query.lastProgress)
    finally:
        query.stop()

    assert set(found) == {metric.name for metric, _ in TABLE}
    assert by_partition(found["barnabas_spark_lag_records"]) == LEFT
    assert all(
        0 < age < time.time() - began + 1
        for age in by_partition(found["barnabas_spark_lag_seconds"]).values()
    )
    [(labels, batch)] = [
        (dict(of), value) for (_, of), value in found["barnabas_spark_batch_id"].samples.items()
    ]
    assert (labels, batch) == ({"query_id": str(query.id), "query": "slow"}, 0)
    assert lag is not None
    expected = {
        "minOffsetsBehindLatest": "5",
        "maxOffsetsBehindLatest": "15",
        "avgOffsetsBehindLatest": "10.0",
    }
    assert lag.metrics == expected
    scrape_until(listener, lambda left: left.keys() == {"barnabas_spark_queries"})
