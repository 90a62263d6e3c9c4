"""Runs the demo pipeline until all clicks are cleaned, landed and counted, then runs an SQL query on them.

    python -m barnabas.spark.demo.job '{"master": "local[2]", "address": ..., ...}'

Events go to stdout, one JSON object per line; everything else, including Spark's log, goes to stderr.
"""

import json
import sys
import time
from collections.abc import Sequence
from typing import Final

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.records import OffsetSpec
from barnabas.client.blocking.admin import Admin
from barnabas.spark.demo.pipeline import Orders, start_cleaning, start_counting, start_landing
from barnabas.spark.offsets import Offsets, from_json
from barnabas.spark.session import start_session

_POLL_S: Final = 0.2
_CATCH_UP_S_MAX: Final = 120

QUESTION: Final = """\
SELECT date_format(span.start, 'd MMM HH:mm') AS since, max_by(page, clicks) AS page, max(clicks) AS clicks
FROM (SELECT window(at, '6 hours') AS span, page, count(*) AS clicks FROM clicks GROUP BY span, page)
GROUP BY span ORDER BY span"""


def main(orders: Orders) -> None:
    spark = new_session(orders)
    _tell("started")
    clean = start_cleaning(spark, orders)
    # Start one stream after the other: streams of one session that started at the same time have failed,
    # rarely, with "Task not serializable", apparently because their first micro-batches modify shared state.
    while clean.isActive and clean.lastProgress is None:
        time.sleep(_POLL_S)
    followers = [start_landing(spark, orders), start_counting(spark, orders)]
    _tell("all started")
    while clean.isActive:
        _check(followers)
        time.sleep(_POLL_S)
    _check([clean])
    _tell("cleaned")
    catch_up(followers, orders)
    for query in followers:
        query.stop()
    spark.read.parquet(orders.parquet).createOrReplaceTempView("clicks")
    answer = spark.sql(QUESTION)
    _tell("answer", query=QUESTION, columns=answer.columns, rows=[list(row) for row in answer.collect()])
    spark.stop()


def new_session(orders: Orders) -> SparkSession:
    return start_session(
        SparkSession.builder.appName("barnabas-demo")
        .master(orders.master)
        # The job is short: optimizing compilation in the JVM takes longer than it saves.
        .config(
            "spark.driver.extraJavaOptions", f'-XX:TieredStopAtLevel=1 "-Djava.io.tmpdir={orders.scratch}"'
        )
        .config("spark.local.dir", orders.scratch)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.bindAddress", orders.host)
        .config("spark.driver.host", orders.host)
        .config("spark.sql.session.timeZone", "UTC")
        # As many tasks as cores; each has its own transaction.
        .config("spark.sql.shuffle.partitions", "2")
    )


def catch_up(queries: Sequence[StreamingQuery], orders: Orders) -> None:
    """Wait until the queries have read all clean clicks and emitted their results."""
    deadline = time.monotonic() + _CATCH_UP_S_MAX
    with Admin(bootstrap_servers=orders.address) as admin:
        ends = _ends(admin, orders.clean)
    for query in queries:
        while True:
            # Also waits for the micro-batch without records that follows an advanced watermark.
            query.processAllAvailable()
            if _reached(query) == ends:
                break
            if time.monotonic() > deadline:
                raise SystemExit(
                    f"{query.name} is at {_reached(query)} after {_CATCH_UP_S_MAX} s, not {ends}"
                )
            time.sleep(_POLL_S)


def _ends(admin: Admin, topic: str) -> Offsets:
    """Return the end offsets, including transactions that are being committed."""
    partitions = admin.describe_topic(topic).partitions
    tps = [TopicPartition(topic, one.partition) for one in partitions]
    listed = admin.list_offsets(dict.fromkeys(tps, int(OffsetSpec.LATEST)))
    return {tp: one.offset or 0 for tp, one in listed.items()}


def _reached(query: StreamingQuery) -> Offsets | None:
    progress = query.lastProgress
    if progress is None or progress["sources"][0]["endOffset"] is None:
        return None
    told = progress["sources"][0]["endOffset"]
    return from_json(told if isinstance(told, str) else json.dumps(told))


def _check(queries: Sequence[StreamingQuery]) -> None:
    for query in queries:
        error = query.exception()
        if error is not None:
            raise error


def _tell(event: str, **facts: object) -> None:
    sys.stdout.write(json.dumps({"event": event, **facts}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(Orders(**json.loads(sys.argv[1])))
