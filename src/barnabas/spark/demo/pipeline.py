"""Clicks, cleaned, landed and counted: three streams, with topics in between.

    clicks -> clean -> clean-clicks -> land  -> Parquet
                    -> dropped      -> count -> clicks-per-hour

Each keeps a checkpoint, and may be killed at any time: what it writes to topics it writes exactly once, and
Spark's Parquet files have a log of their own that says which of them count.
"""

from pathlib import Path
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery


class Orders(NamedTuple):
    """Where everything is. `most` is how many records a micro-batch of the first stream reads."""

    master: str
    host: str
    address: str
    directory: str
    # For what Spark itself puts down, and leaves when it is killed.
    scratch: str
    most: int
    group: str
    clicks: str
    clean: str
    dropped: str
    hours: str
    # How far behind the newest event a stream still waits for others, in Spark's words.
    watermark: str

    def checkpoint(self, stream: str) -> str:
        return str(Path(self.directory) / "checkpoints" / stream)

    @property
    def parquet(self) -> str:
        return str(Path(self.directory) / "parquet")


def start_cleaning(spark: SparkSession, orders: Orders) -> StreamingQuery:
    """What is sound and new goes to one topic; what cannot be used to another, with the reason as a header.

    It ends when all that was there when it began is done.
    """
    read = (
        spark.readStream.format("barnabas")
        .option("kafka.bootstrap.servers", orders.address)
        .option("subscribe", orders.clicks)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", orders.most)
        # Progress is committed to this group, so that `barnabas consumer-groups` shows the lag.
        .option("kafka.group.id", orders.group)
        .load()
    )
    fields = "id string, user string, page string, at string, broken string"
    parsed = read.withColumn(
        "event", f.from_json(f.col("value").cast("string"), fields, {"columnNameOfCorruptRecord": "broken"})
    ).withColumn("at", f.try_to_timestamp("event.at"))
    judged = parsed.withColumn("reason", _reason())
    # By its id an event is the same as another. What is broken has none: each of those is one of its own.
    place = f.concat_ws("-", f.lit("record"), "partition", "offset")
    unique = (
        judged.withColumn("identity", f.when(f.col("reason").isNull(), f.col("event.id")).otherwise(place))
        # Time of arrival: an event that is sent again comes soon after, and ids need not be kept for ever.
        .withWatermark("timestamp", orders.watermark)
        .dropDuplicatesWithinWatermark(["identity"])
    )
    return (
        unique.select(*_record(orders))
        .writeStream.format("barnabas")
        .queryName("clean")
        .option("kafka.bootstrap.servers", orders.address)
        .option("deliveryGuarantee", "exactly-once")
        # So that its transactions are known from others in `barnabas transactions list`.
        .option("transactionalIdPrefix", orders.group)
        .option("checkpointLocation", orders.checkpoint("clean"))
        .trigger(availableNow=True)
        .start()
    )


def _reason() -> Column:
    """Why an event is taken out; null if it is not."""
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
    """Clicks of each page in each hour, told once: when no more are expected for it."""
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
        # What a transaction wrote that is not committed does not exist.
        .option("kafka.isolation.level", "read_committed")
        .load()
    )
    event = f.from_json(f.col("value").cast("string"), "id string, user string, page string, at timestamp")
    return read.select(event.alias("event")).select("event.*")
