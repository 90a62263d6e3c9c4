"""The query, run, micro-batch and attempt of a task, from Spark's task context."""

from typing import Final, NamedTuple

from pyspark import TaskContext

QUERY_ID: Final = "sql.streaming.queryId"
BATCH_ID: Final = "streaming.sql.batchId"
# Spark has no property for the run id, but uses it as the group of a stream's jobs.
RUN_ID: Final = "spark.jobGroup.id"


class StreamTask(NamedTuple):
    """Ids of a task. A restart keeps `query` and changes `run`."""

    query: str
    run: str
    batch: int
    number: int


def query_id() -> str | None:
    """Return the id of the streaming query. None outside a task and in a batch query."""
    context = TaskContext.get()
    return None if context is None else context.getLocalProperty(QUERY_ID)


def is_retry() -> bool:
    """Whether this is a further attempt of a task. False outside a task."""
    context = TaskContext.get()
    return context is not None and context.attemptNumber() > 0


def task_number() -> int:
    return _context().partitionId()


def stream_task() -> StreamTask:
    context = _context()
    query, batch = context.getLocalProperty(QUERY_ID), context.getLocalProperty(BATCH_ID)
    run = context.getLocalProperty(RUN_ID)
    assert query is not None, f"Spark sets {QUERY_ID}"
    assert batch is not None, f"Spark sets {BATCH_ID}"
    assert run is not None, f"Spark sets {RUN_ID}"
    return StreamTask(query, run, int(batch), context.partitionId())


def _context() -> TaskContext:
    context = TaskContext.get()
    assert context is not None, "write() runs in a task"
    return context
