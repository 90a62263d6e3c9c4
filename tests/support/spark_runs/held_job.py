"""A Spark job whose queries stop in the middle of a micro-batch: their first task does not end.

    python -m support.spark_runs.held_job '{"address": ..., "queries": [...]}'

It runs until it is killed. By then the sink has all rows of a query except those of one Arrow batch.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from support.spark_runs.copying import start_copy

# So small that a task that has not ended has sent most of its rows.
ROWS_IN_BATCH: Final = 100
BATCH_ID: Final = "streaming.sql.batchId"
FOR_EVER_S: Final = 600


def main(orders: dict[str, Any]) -> None:
    # A task of every query waits.
    threads = len(orders["queries"]) + 2
    spark = (
        SparkSession.builder.master(f"local[{threads}]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", ROWS_IN_BATCH)
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    queries: list[StreamingQuery] = []
    for each in orders["queries"]:
        queries.append(start_copy(spark, orders["address"], each, held=held_from(each["held"])))
    while all(query.isActive for query in queries):
        time.sleep(0.1)
    for query in queries:
        # One of them has failed.
        query.awaitTermination(0)
    raise SystemExit("a query has ended")


def held_from(first: int) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """From this micro-batch on."""

    def held(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        context = TaskContext.get()
        assert context is not None
        if context.partitionId() == 0 and int(context.getLocalProperty(BATCH_ID) or 0) >= first:
            time.sleep(FOR_EVER_S)

    return held


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
