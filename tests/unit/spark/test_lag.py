"""The lag of a query, computed from Spark's progress."""

from barnabas.base.ids import TopicPartition
from barnabas.spark.lag import PartitionLag, QueryLag, lag_of
from support.spark.events import QUERY, RUN, progress


def test_lag_is_the_distance_to_the_latest_offsets() -> None:
    lag = lag_of(progress({"clicks": {"0": 23, "1": 5}}, {"clicks": {"0": 30, "1": 5}}))

    partitions = {TopicPartition("clicks", 0): PartitionLag(7), TopicPartition("clicks", 1): PartitionLag(0)}
    assert lag == QueryLag(QUERY, "counts", 4, partitions, run_id=RUN)


def test_lag_has_the_metrics_of_sparks_own_source() -> None:
    lag = lag_of(progress({"clicks": {"0": 23, "1": 5}}, {"clicks": {"0": 30, "1": 5}}))

    assert lag is not None
    assert lag.metrics == {
        "minOffsetsBehindLatest": "0",
        "maxOffsetsBehindLatest": "7",
        "avgOffsetsBehindLatest": "3.5",
    }


def test_a_source_of_another_format_has_no_lag() -> None:
    assert lag_of(progress({"rowsPerSecond": 1}, None)) is None
    assert lag_of(None) is None
