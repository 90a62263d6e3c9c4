"""A Spark job as users write it: from one topic to another, until it is ended, or until nothing is left.

    python -m support.spark_runs.job '{"address": ..., "checkpoint": ..., ...}'

It prints a line for every micro-batch.
"""

import json
import sys
import time
from typing import Any, Final

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

# A worker or a broker that dies may end a query: a supervisor would start it again.
_STARTS_MAX: Final = 50
# A traceback of Python within one of Java, and the reason is at its end.
_TOLD_CHARS_MAX: Final = 8000


def main(orders: dict[str, Any]) -> None:
    spark = (
        SparkSession.builder.master("local[2,4]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        # It is killed before careful compiling would pay.
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    for _ in range(_STARTS_MAX):
        query = start(spark, orders)
        try:
            follow(query)
            return
        except StreamingQueryException as error:
            print("failed", str(error).replace("\n", " ")[:_TOLD_CHARS_MAX], flush=True)
    raise SystemExit("it fails again and again")


def start(spark: SparkSession, orders: dict[str, Any]) -> StreamingQuery:
    reader = (
        spark.readStream.format("barnabas")
        .option("kafka.bootstrap.servers", orders["address"])
        .option("subscribe", orders["source"])
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", orders["limit"])
    )
    rows = reader.load().selectExpr("value", "partition")
    if orders["options"].get("transactionScope") == "batch":
        rows = rows.repartition(2, "partition")
    writer = (
        rows.writeStream.format("barnabas")
        .option("kafka.bootstrap.servers", orders["address"])
        .option("topic", orders["target"])
        .option("checkpointLocation", orders["checkpoint"])
        .options(**orders["options"])
    )
    return (writer.trigger(availableNow=True) if orders["ends"] else writer).start()


def follow(query: StreamingQuery) -> None:
    seen = -1
    while query.isActive:
        progress = query.lastProgress
        if progress is not None and progress["batchId"] > seen and progress["numInputRows"] > 0:
            seen = progress["batchId"]
            print("batch", seen, flush=True)
        time.sleep(0.05)
    query.awaitTermination()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
