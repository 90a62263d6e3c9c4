"""A driver in a process of its own, which starts queries as it is told and lives until it is killed.

    python -m support.spark_runs.driver '{"settings": {"spark.master": "local[2]"}}'

Each line of its input holds the orders of one query, as JSON. It prints what becomes of each of them:
`ready`, then `started NAME`, `ended NAME` or `failed NAME: REASON`.
"""

import json
import sys
import threading
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from support.spark_runs.attacked import start_query


def main(orders: dict[str, Any]) -> None:
    builder = (
        SparkSession.builder.master("local[2,4]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
    )
    for name, value in orders.get("settings", {}).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    print("ready", flush=True)
    for line in sys.stdin:
        query = start_query(spark, json.loads(line))
        print(f"started {query.name}", flush=True)
        threading.Thread(target=follow, args=(query,), daemon=True).start()


def follow(query: StreamingQuery) -> None:
    name = query.name
    try:
        query.awaitTermination()
    except StreamingQueryException as error:
        print(f"failed {name}: {str(error).replace(chr(10), ' ')}", flush=True)
        return
    print(f"ended {name}", flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
