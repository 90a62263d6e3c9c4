"""What Spark tells a task of the query that it belongs to."""

from typing import Final, NamedTuple

from pyspark import TaskContext

QUERY_ID: Final = "sql.streaming.queryId"
BATCH_ID: Final = "streaming.sql.batchId"
# A stream's jobs have the id of its run as their group. There is no property of its own for it.
RUN_ID: Final = "spark.jobGroup.id"


class StreamTask(NamedTuple):
    """`query` stays the same when a query is started again, `run` does not."""

    query: str
    run: str
    batch: int
    number: int


def task_number() -> int:
    return _context().partitionId()


def stream_task() -> StreamTask:
    context = _context()
    query, batch = context.getLocalProperty(QUERY_ID), context.getLocalProperty(BATCH_ID)
    run = context.getLocalProperty(RUN_ID)
    assert query is not None, "Spark tells tasks which query they belong to"
    assert batch is not None, "Spark tells tasks which batch they belong to"
    assert run is not None, "Spark tells tasks which run they belong to"
    return StreamTask(query, run, int(batch), context.partitionId())


def _context() -> TaskContext:
    context = TaskContext.get()
    assert context is not None, "write() runs in a task"
    return context
