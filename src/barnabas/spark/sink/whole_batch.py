"""Exactly once, one transaction for a micro-batch: all of its rows are seen together.

The driver opens it where Spark makes the writer for a micro-batch and sends it to the tasks (__getstate__,
and not __init__, which the process that commits runs as well: it would fence the transaction). The tasks
join it, and the driver writes the mark and ends it.

Every partition must be written by one task, once: all count their records from 0, so that a broker takes what
a second one writes for a repetition. So of several tries of a task the first that has rows writes, and the
others fail (claims.py); and the driver refuses a batch in which two tasks have written to one partition.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from barnabas.base.ids import TopicPartition
from barnabas.client.blocking.admin import Admin
from barnabas.client.blocking.producer import Producer
from barnabas.client.errors import ClientError
from barnabas.client.producer.handed_over import OpenTransaction
from barnabas.client.producer.transaction_errors import MustAbort, SequenceLost
from barnabas.spark.failing import message_first
from barnabas.spark.options.client_settings import admin_settings
from barnabas.spark.options.errors import BadOption
from barnabas.spark.options.sink import SinkOptions
from barnabas.spark.sink.claims import NotOneWriter, claim_task
from barnabas.spark.sink.markers import NO_MARK, Mark, last_mark, mark_in_transaction
from barnabas.spark.sink.reaching import reach, reach_topic
from barnabas.spark.sink.rows import by_topic
from barnabas.spark.sink.sending import Sending
from barnabas.spark.sink.slots import BATCH_ID, QUERY_ID
from barnabas.spark.sink.telling import logger, told_on_failure
from barnabas.spark.sink.timing import told_if_too_long

_ONE_TASK: Final = (
    "with transactionScope=batch all rows of a partition must be in one task, as by repartition() on the "
    "column partition"
)


@dataclass(frozen=True)
class OpenBatch:
    """What the driver tells the tasks. Its time counts from the first record, which comes a little later."""

    transaction: OpenTransaction
    since_s: float


@dataclass(frozen=True)
class PartWritten(WriterCommitMessage):
    """What a task tells the driver: nothing if the batch was written before."""

    query: str
    opened: OpenBatch
    task: int
    written: frozenset[TopicPartition]


def open_batch(options: SinkOptions, name: str) -> OpenBatch:
    """On the driver, for the tasks of one micro-batch; whatever was left under the name is aborted."""
    reach(options.producer, options.connect_ms)
    with Producer({**options.producer, "transactional.id": name}) as producer:
        return OpenBatch(producer.open_transaction_for_others(), time.time())


def write_part(
    options: SinkOptions,
    batches: Iterator[pa.RecordBatch],
    opened: OpenBatch,
    query: str,
    batch: int,
    task: int,
) -> PartWritten:
    name = opened.transaction.transactional_id
    reach(options.producer, options.connect_ms)
    with Admin(admin_settings(options.producer)) as admin:
        is_written = _last_mark_of(admin, options, name, query).batch >= batch
    filled = (one for one in batches if one.num_rows > 0)
    first = None if is_written else next(filled, None)
    if first is None:
        for _ in filled:
            pass
        return PartWritten(query, opened, task, frozenset())
    topic, _ = next(by_topic(first, options.topic))
    reach_topic(options.producer, topic, options.connect_ms)
    claim_task(options, opened.transaction, task, topic)
    with (
        told_if_too_long(options, opened.since_s),
        Producer({**options.producer, "transactional.id": name}) as producer,
    ):
        producer.join_transaction(opened.transaction)
        sending = Sending(producer, options)
        try:
            sending.send([first])
            sending.send(filled)
            producer.hand_over_transaction()
        except MustAbort as error:
            if isinstance(error.because, SequenceLost):
                raise NotOneWriter(f"another task writes to the same partitions: {_ONE_TASK}") from error
            raise
    return PartWritten(query, opened, task, frozenset(sending.written))


def _marks_group(options: SinkOptions, query: str) -> str:
    """By the id of the query, which is in its checkpoint, and not by where that is: it may be moved."""
    return f"{options.id_prefix}-{query}-batch"


def _last_mark_of(admin: Admin, options: SinkOptions, name: str, query: str) -> Mark:
    # Of this query: one that begins anew in the same place counts its batches from 0 again.
    mark = last_mark(admin, _marks_group(options, query), note=query)
    # Marks were in a group named as the transactions are, before they had one of their own.
    return last_mark(admin, name, note=query) if mark == NO_MARK else mark


def commit_parts(options: SinkOptions, parts: list[PartWritten], batch: int) -> None:
    writers: dict[TopicPartition, int] = {}
    for part in parts:
        for tp in sorted(part.written):
            if tp in writers:
                raise NotOneWriter(f"{tp} was written by tasks {writers[tp]} and {part.task}: {_ONE_TASK}")
            writers[tp] = part.task
    if not writers:
        return
    opened = parts[0].opened
    name = opened.transaction.transactional_id
    with (
        told_if_too_long(options, opened.since_s),
        Producer({**options.producer, "transactional.id": name}) as producer,
    ):
        producer.join_transaction(opened.transaction)
        mark = Mark(batch, parts[0].query, min(writers).topic)
        group = _marks_group(options, parts[0].query)
        producer.send_offsets_to_transaction(mark_in_transaction(mark), group)
        producer.commit_transaction()


def abort_parts(options: SinkOptions, messages: list[WriterCommitMessage | None]) -> None:
    parts = [one for one in messages if isinstance(one, PartWritten) and one.written]
    if not parts:
        return
    try:
        with Admin(admin_settings(options.producer)) as admin:
            admin.end_transactions([parts[0].opened.transaction], commit=False)
    except ClientError as error:
        logger.warning("not aborted because=%s; the coordinator will when its time is over", error)


def _of_tasks(messages: list[WriterCommitMessage | None]) -> list[PartWritten]:
    parts = [one for one in messages if isinstance(one, PartWritten)]
    assert len(parts) == len(messages), "every task tells what it did"
    return parts


class _Opening:
    """Opens the transaction when it is sent to the tasks, once."""

    _options: SinkOptions
    _name: str
    _opened: OpenBatch | None

    @message_first()
    def __getstate__(self) -> dict[str, Any]:
        if self._opened is None:
            self._opened = open_batch(self._options, self._name)
        return self.__dict__


class WholeStreamWriter(_Opening, DataSourceStreamArrowWriter):
    def __init__(self, options: SinkOptions) -> None:
        if options.checkpoint is None:
            raise BadOption(
                "transactionScope", "batch needs checkpointLocation among the options of the sink"
            )
        self._options = options
        self._name = f"{options.id_prefix}-{options.checkpoint}"
        self._opened = None

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        context = TaskContext.get()
        assert context is not None, "write() runs in a task"
        query, batch = context.getLocalProperty(QUERY_ID), context.getLocalProperty(BATCH_ID)
        assert query is not None, "Spark tells tasks which query they belong to"
        assert batch is not None, "Spark tells tasks which batch they belong to"
        assert self._opened is not None, "it came from the driver"
        with told_on_failure():
            return write_part(self._options, iterator, self._opened, query, int(batch), context.partitionId())

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        with told_on_failure():
            commit_parts(self._options, _of_tasks(messages), batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        abort_parts(self._options, messages)


class WholeBatchWriter(_Opening, DataSourceArrowWriter):
    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        self._query = str(uuid4())
        self._name = f"{options.id_prefix}-{self._query}"
        self._opened = None

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        context = TaskContext.get()
        assert context is not None, "write() runs in a task"
        assert self._opened is not None, "it came from the driver"
        with told_on_failure():
            return write_part(self._options, iterator, self._opened, self._query, 0, context.partitionId())

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        with told_on_failure():
            commit_parts(self._options, _of_tasks(messages), 0)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        abort_parts(self._options, messages)
