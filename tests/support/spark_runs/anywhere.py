"""A small Spark job that reads a topic and copies it in every way the sink knows, wherever Spark runs.

    python -m support.spark_runs.anywhere '{"address": ..., "source": ..., "targets": [...], ...}'

`remote` is for Spark Connect, `master` for the other kind of session. The last line that it prints is JSON.
"""

import json
import os
import sys
import time
from typing import Any, Final

from pyspark.sql import SparkSession

from barnabas.base.java import use_java
from barnabas.spark.lag import LagListener, QueryLag

GUARANTEES: Final[list[dict[str, str]]] = [
    {},
    {"deliveryGuarantee": "exactly-once"},
    {"deliveryGuarantee": "exactly-once", "transactionScope": "batch"},
]
_LAG_S_MAX: Final = 30


def main(orders: dict[str, Any]) -> None:
    use_java()
    builder = SparkSession.builder.config("spark.ui.enabled", "false")
    for name, value in orders.get("settings", {}).items():
        builder = builder.config(name, value)
    remote, master = orders.get("remote"), orders.get("master")
    spark = (builder.remote(remote) if remote else builder.master(master)).getOrCreate()
    options = {"kafka.bootstrap.servers": orders["address"]}
    lags: list[QueryLag] = []
    spark.streams.addListener(LagListener(lags.append, bootstrap_servers=orders["address"]))
    source = {**options, "subscribe": orders["source"], "startingOffsets": "earliest"}
    count = spark.read.format("barnabas").options(**source).load().count()
    for number, (target, guarantee) in enumerate(zip(orders["targets"], GUARANTEES, strict=False)):
        rows = spark.readStream.format("barnabas").options(**source).load().select("value", "partition")
        query = (
            rows.repartition(2, "partition")
            .writeStream.format("barnabas")
            .options(**options, **guarantee, topic=target)
            .option("checkpointLocation", f"{orders['directory']}/checkpoint-{number}")
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    end = time.monotonic() + _LAG_S_MAX
    while len(lags) < len(orders["targets"]) and time.monotonic() < end:
        time.sleep(0.1)
    told = {
        "count": count,
        "session": f"{type(spark).__module__}.{type(spark).__name__}",
        "lags": [lag.records for lag in lags],
        "java": os.environ.get("JAVA_HOME"),
    }
    print(json.dumps(told), flush=True)
    if remote:
        # Spark 4.3 may wait for ever for itself there, if an event is on its way to a listener that is
        # taken away. Its server ends when this process does.
        os._exit(0)
    spark.stop()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
