"""Three streams, connected by topics, that clean, land and count clicks.

    clicks -> clean -> clean-clicks -> land  -> Parquet
                    -> dropped      -> count -> clicks-per-hour

Each stream has a checkpoint and may be killed at any time: it writes to topics exactly once, and Spark keeps
a log of the Parquet files that are committed.
"""

from pathlib import Path
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery


class Orders(NamedTuple):
    """Addresses, paths and names. `most` is the maxOffsetsPerTrigger of the first stream."""

    master: str
    host: str
    address: str
    directory: str
    # For Spark's temporary files, which remain if it is killed.
    scratch: str
    most: int
    group: str
    clicks: str
    clean: str
    dropped: str
    hours: str
    # Delay of the watermark, as Spark writes durations.
    watermark: str

    def checkpoint(self, stream: str) -> str:
        return str(Path(self.directory) / "checkpoints" / stream)

    @property
    def parquet(self) -> str:
        return str(Path(self.directory) / "parquet")


def start_cleaning(spark: SparkSession, orders: Orders) -> StreamingQuery:
    """Write valid, new events to one topic and the others to another, with the reason as a header.

    The query ends when it has processed all records that existed when it started.
    """
    read = (
        spark.readStream.format("barnabas")
        .option("kafka.bootstrap.servers", orders.address)
        .option("subscribe", orders.clicks)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", orders.most)
        # Commit progress to this group, so that `barnabas consumer-groups` shows the lag.
        .option("kafka.group.id", orders.group)
        .load()
    )
    fields = "id string, user string, page string, at string, broken string"
    parsed = read.withColumn(
        "event", f.from_json(f.col("value").cast("string"), fields, {"columnNameOfCorruptRecord": "broken"})
    ).withColumn("at", f.try_to_timestamp("event.at"))
    judged = parsed.withColumn("reason", _reason())
    # Valid events are deduplicated by id. Rejected ones get a unique identity, so that all are kept.
    place = f.concat_ws("-", f.lit("record"), "partition", "offset")
    unique = (
        judged.withColumn("identity", f.when(f.col("reason").isNull(), f.col("event.id")).otherwise(place))
        # Watermark on arrival time: a duplicate arrives soon after, so ids can be dropped after a while.
        .withWatermark("timestamp", orders.watermark)
        .dropDuplicatesWithinWatermark(["identity"])
    )
    return (
        unique.select(*_record(orders))
        .writeStream.format("barnabas")
        .queryName("clean")
        .option("kafka.bootstrap.servers", orders.address)
        .option("deliveryGuarantee", "exactly-once")
        # Identifies the query's transactions in `barnabas transactions list`.
        .option("transactionalIdPrefix", orders.group)
        .option("checkpointLocation", orders.checkpoint("clean"))
        .trigger(availableNow=True)
        .start()
    )


def _reason() -> Column:
    """Why an event is rejected; null if it is valid."""
    return (
        f.when(f.col("event").isNull() | f.col("event.broken").isNotNull(), "not JSON")
        .when(f.col("event.id").isNull(), "no id")
        .when(f.col("at").isNull(), "no time")
        .when(f.col("at") < f.col("timestamp") - f.expr("INTERVAL 1 HOUR"), "late")
    )


def _record(orders: Orders) -> list[Column]:
    is_clean = f.col("reason").isNull()
    event = f.to_json(f.struct("event.id", "event.user", "event.page", "at"))
    header = f.struct(f.lit("reason").alias("key"), f.encode("reason", "UTF-8").alias("value"))
    return [
        f.when(is_clean, orders.clean).otherwise(orders.dropped).alias("topic"),
        f.col("key"),
        f.when(is_clean, f.encode(event, "UTF-8")).otherwise(f.col("value")).alias("value"),
        f.when(~is_clean, f.array(header)).alias("headers"),
    ]


def start_landing(spark: SparkSession, orders: Orders) -> StreamingQuery:
    return (
        _clean_clicks(spark, orders)
        .writeStream.format("parquet")
        .queryName("land")
        .option("path", orders.parquet)
        .option("checkpointLocation", orders.checkpoint("land"))
        .trigger(processingTime="1 second")
        .start()
    )


def start_counting(spark: SparkSession, orders: Orders) -> StreamingQuery:
    """Count clicks per page and hour; each count is written once, when the watermark passes its hour."""
    counted = (
        _clean_clicks(spark, orders)
        .withWatermark("at", orders.watermark)
        .groupBy(f.window("at", "1 hour").alias("hour"), "page")
        .count()
    )
    told = f.to_json(f.struct(f.col("hour.start").alias("hour"), "page", f.col("count").alias("clicks")))
    return (
        counted.select(f.col("page").alias("key"), told.alias("value"))
        .writeStream.format("barnabas")
        .queryName("count")
        .option("kafka.bootstrap.servers", orders.address)
        .option("topic", orders.hours)
        .option("deliveryGuarantee", "exactly-once")
        .option("checkpointLocation", orders.checkpoint("count"))
        .trigger(processingTime="1 second")
        .start()
    )


def _clean_clicks(spark: SparkSession, orders: Orders) -> DataFrame:
    read = (
        spark.readStream.format("barnabas")
        .option("kafka.bootstrap.servers", orders.address)
        .option("subscribe", orders.clean)
        .option("startingOffsets", "earliest")
        # Skip records of aborted and open transactions.
        .option("kafka.isolation.level", "read_committed")
        .load()
    )
    event = f.from_json(f.col("value").cast("string"), "id string, user string, page string, at timestamp")
    return read.select(event.alias("event")).select("event.*")
