"""Exactly-once writers with one transaction per micro-batch: all of its rows become visible together.

The driver opens the transaction when Spark pickles the writer for the tasks (__getstate__, and not __init__,
which also runs in the process that commits and would fence the transaction). The tasks join the transaction,
and the driver writes the mark and commits.

Each partition must be written by one attempt of one task: all producers number their records from 0, so a
broker takes records of a second writer for duplicates. Of several attempts of a task only the first that has
rows may write (claims.py), and the driver rejects a batch in which two tasks wrote to one partition.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from barnabas.base.ids import TopicPartition
from barnabas.client.blocking.admin import Admin
from barnabas.client.blocking.producer import Producer
from barnabas.client.producer.transaction import OpenTransaction
from barnabas.client.producer.transaction_errors import MustAbort, SequenceLost
from barnabas.spark.failures import log_failed_write, message_first
from barnabas.spark.options.client_settings import admin_settings
from barnabas.spark.options.sink import SinkOptions
from barnabas.spark.options.values import BadOption
from barnabas.spark.sink.availability import check_brokers, check_topic
from barnabas.spark.sink.claims import NotOneWriter, claim_task
from barnabas.spark.sink.earlier_runs import check_still_open, fence_earlier_runs
from barnabas.spark.sink.ids import batch_id, batch_marks_group, claim_id
from barnabas.spark.sink.markers import NO_MARK, Mark, last_mark, mark_in_transaction
from barnabas.spark.sink.replays import check_not_in_parts
from barnabas.spark.sink.rows import by_topic
from barnabas.spark.sink.runs import UNKNOWN_RUN, Record, read_record, write_record
from barnabas.spark.sink.sending import Sending
from barnabas.spark.sink.transactions import abort_transactions, explain_timeout
from barnabas.spark.task_context import stream_task, task_number

_ONE_TASK: Final = (
    "with transactionScope=batch all rows of a partition must be in one task; call repartition() on the "
    "column partition"
)


@dataclass(frozen=True)
class OpenBatch:
    """The open transaction, sent to the tasks. Its timeout starts at the first record, after `since_s`."""

    transaction: OpenTransaction
    since_s: float


@dataclass(frozen=True)
class PartWritten(WriterCommitMessage):
    """The commit message of a task; `written` is empty if the batch was already committed."""

    query: str
    opened: OpenBatch
    task: int
    written: frozenset[TopicPartition]
    run: str = UNKNOWN_RUN
    # The run that wrote the previous mark.
    last_run: str = UNKNOWN_RUN


def open_batch(options: SinkOptions, name: str) -> OpenBatch:
    """Open the transaction of a micro-batch on the driver. Aborts an open transaction with the same id."""
    check_brokers(options.producer, options.connect_ms)
    with Producer({**options.producer, "transactional.id": name}) as producer:
        return OpenBatch(producer.open_transaction_for_others(), time.time())


def write_part(
    options: SinkOptions,
    batches: Iterator[pa.RecordBatch],
    opened: OpenBatch,
    query: str,
    batch: int,
    task: int,
    run: str = UNKNOWN_RUN,
) -> PartWritten:
    name = opened.transaction.transactional_id
    check_brokers(options.producer, options.connect_ms)
    with Admin(admin_settings(options.producer)) as admin:
        mark = _last_mark_of(admin, options, name, query)
    last_run = _run_of(mark)
    filled = (one for one in batches if one.num_rows > 0)
    first = None if mark.batch >= batch else next(filled, None)
    if first is None:
        for _ in filled:
            pass
        return PartWritten(query, opened, task, frozenset(), run, last_run)
    topic, _ = next(by_topic(first, options.topic))
    check_topic(options.producer, topic, options.connect_ms)
    claim_task(options, opened.transaction, task, topic, query)
    with (
        explain_timeout(options, opened.since_s),
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
                raise NotOneWriter(f"another task has written to the same partition: {_ONE_TASK}") from error
            raise
    return PartWritten(query, opened, task, frozenset(sending.written), run, last_run)


def _last_mark_of(admin: Admin, options: SinkOptions, name: str, query: str) -> Mark:
    mark = last_mark(admin, batch_marks_group(options.id_prefix, query))
    # Earlier releases stored marks in a group named like the transactional id. Only this query's marks count
    # there: a new query with the same checkpoint location numbers its batches from 0 again.
    return last_mark(admin, name, note=query) if mark == NO_MARK else mark


def _note(query: str, run: str) -> str:
    return f"{query} {run}"


def _run_of(mark: Mark) -> str:
    """Return the run of a mark. Marks of earlier releases name only the query."""
    return mark.note.partition(" ")[2] or UNKNOWN_RUN


def commit_parts(options: SinkOptions, parts: list[PartWritten], batch: int) -> None:
    writers: dict[TopicPartition, int] = {}
    for part in parts:
        for tp in sorted(part.written):
            if tp in writers:
                raise NotOneWriter(f"{tp} was written by tasks {writers[tp]} and {part.task}: {_ONE_TASK}")
            writers[tp] = part.task
    if not parts:
        return
    query, run, opened = parts[0].query, parts[0].run, parts[0].opened
    name = opened.transaction.transactional_id
    with explain_timeout(options, opened.since_s):
        # The tasks have read the previous mark, so later batches of a run need no request for this.
        if any(part.last_run != run for part in parts) and _begin_run(options, parts, batch):
            abort_parts(options, parts)
            return
        if not writers:
            return
        with Producer({**options.producer, "transactional.id": name}) as producer:
            producer.join_transaction(opened.transaction)
            mark = Mark(batch, _note(query, run), min(writers).topic)
            group = batch_marks_group(options.id_prefix, query)
            producer.send_offsets_to_transaction(mark_in_transaction(mark), group)
            producer.commit_transaction()


def _begin_run(options: SinkOptions, parts: Sequence[PartWritten], batch: int) -> bool:
    """Fence earlier runs before the first commit of this one. True if one of them has committed the batch.

    Raises SlotsChanged if part of the batch was committed by transactionScope=task.
    """
    query, run, opened = parts[0].query, parts[0].run, parts[0].opened.transaction
    name = opened.transactional_id
    with Admin(admin_settings(options.producer)) as admin:
        record = read_record(admin, options.id_prefix, query)
        if record.last_run == run:
            return False
        written = [part for part in parts if part.written]
        if written:
            check_still_open(admin, [opened])
        own = {name, *(claim_id(name, part.task) for part in written)}
        earlier = fence_earlier_runs(admin, options, query, record, own)
        check_not_in_parts(batch, earlier.slots_since(batch))
        if earlier.has_whole(batch):
            return True
        of_rows = min((min(part.written).topic for part in written), default=None)
        topic = record.topic or options.topic or of_rows
        if topic is not None:
            # Batches without rows leave no mark, so the record holds the run.
            write_record(admin, options.id_prefix, query, Record(batch, len(parts), (run,), topic))
        return False


def abort_parts(options: SinkOptions, messages: Sequence[WriterCommitMessage | None]) -> None:
    parts = [one for one in messages if isinstance(one, PartWritten) and one.written]
    abort_transactions(options, [part.opened.transaction for part in parts[:1]])


def _of_tasks(messages: list[WriterCommitMessage | None]) -> list[PartWritten]:
    parts = [one for one in messages if isinstance(one, PartWritten)]
    assert len(parts) == len(messages), "every task sends a commit message"
    return parts


class _Opening:
    """Opens the transaction once, when the writer is pickled for the tasks."""

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
            raise BadOption("transactionScope", "batch requires the sink option checkpointLocation")
        self._options = options
        self._name = batch_id(options.id_prefix, options.checkpoint)
        self._opened = None

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        task = stream_task()
        assert self._opened is not None, "the driver opens it when it pickles the writer"
        with log_failed_write():
            return write_part(
                self._options, iterator, self._opened, task.query, task.batch, task.number, task.run
            )

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        with log_failed_write():
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
        assert self._opened is not None, "the driver opens it when it pickles the writer"
        with log_failed_write():
            return write_part(self._options, iterator, self._opened, self._query, 0, task_number())

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        with log_failed_write():
            commit_parts(self._options, _of_tasks(messages), 0)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        abort_parts(self._options, messages)
