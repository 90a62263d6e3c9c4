"""Exactly once, a transaction for each task: the rows of a task are seen together.

A task is a slot. It takes the slot's transactional.id, which fences whoever had it and aborts what was left;
if the slot's mark says that this micro-batch is written it only reads its rows; else it writes them and the
mark, and leaves the transaction open. The driver ends all of them when every task is done. If it dies on the
way, Spark plans the same micro-batch again: what was committed is passed over, and the rest is written.

So a row must come to the same slot again. A number of slots that has changed is refused.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import uuid4

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from barnabas.base.errors import BarnabasError
from barnabas.client.blocking.admin import Admin
from barnabas.client.blocking.producer import Producer
from barnabas.client.errors import ClientError
from barnabas.client.producer.handed_over import OpenTransaction
from barnabas.spark.options.client_settings import admin_settings
from barnabas.spark.options.sink import SinkOptions
from barnabas.spark.sink.markers import NO_MARK, Mark, last_mark, mark_in_transaction, set_mark
from barnabas.spark.sink.reaching import reach
from barnabas.spark.sink.sending import Sending
from barnabas.spark.sink.telling import logger, told_on_failure
from barnabas.spark.sink.timing import told_if_too_long

QUERY_ID: Final = "sql.streaming.queryId"
BATCH_ID: Final = "streaming.sql.batchId"


class SlotsChanged(BarnabasError):
    """A micro-batch that was written in part is planned otherwise now."""


@dataclass(frozen=True)
class SlotWritten(WriterCommitMessage):
    """What a task tells the driver. Nothing is open if it had no rows, or they were written before."""

    query: str
    topic: str | None
    opened: OpenTransaction | None
    open_since_s: float


def write_slot(
    options: SinkOptions, batches: Iterator[pa.RecordBatch], query: str, batch: int, slot: int
) -> SlotWritten:
    filled = (one for one in batches if one.num_rows > 0)
    first = next(filled, None)
    if first is None:
        return SlotWritten(query, None, None, 0.0)
    name = f"{options.id_prefix}-{query}-{slot}"
    reach(options.producer, options.connect_ms)
    with Producer({**options.producer, "transactional.id": name}) as producer:
        producer.init_transactions()
        with Admin(admin_settings(options.producer)) as admin:
            mark = last_mark(admin, name)
        if mark.batch >= batch:
            logger.info("written before slot=%s batch=%d", name, batch)
            for _ in filled:
                pass
            return SlotWritten(query, mark.topic, None, 0.0)
        since_s = time.time()
        with told_if_too_long(options, since_s):
            producer.begin_transaction()
            sending = Sending(producer, options)
            sending.send([first])
            sending.send(filled)
            topic = min(sending.written).topic
            producer.send_offsets_to_transaction(mark_in_transaction(Mark(batch, "", topic)), name)
            return SlotWritten(query, topic, producer.hand_over_transaction(), since_s)


def commit_slots(options: SinkOptions, slots: Sequence[SlotWritten], batch: int) -> None:
    """All tasks are done. After this they are seen, or this fails and the batch is planned again."""
    topics = [one.topic for one in slots if one.topic is not None]
    if not topics:
        return
    opened = [one.opened for one in slots if one.opened is not None]
    with Admin(admin_settings(options.producer)) as admin:
        _check_count(admin, options, slots[0].query, Mark(batch, str(len(slots)), topics[0]))
        since_s = min((one.open_since_s for one in slots if one.opened is not None), default=time.time())
        with told_if_too_long(options, since_s):
            admin.end_transactions(opened, commit=True)


def _check_count(admin: Admin, options: SinkOptions, query: str, now: Mark) -> None:
    """Noted before anything is committed: whoever comes again must come with as many slots."""
    group = f"{options.id_prefix}-{query}"
    before = last_mark(admin, group)
    if before.batch == now.batch and before.note != now.note:
        raise SlotsChanged(
            f"batch {now.batch} was begun with {before.note} tasks and is planned with {now.note} now: rows "
            "that are written would be written again; run it with as many as before (shuffle partitions, and "
            "spark.sql.adaptive.streaming.stateless.enabled=false)"
        )
    if before == NO_MARK or before.batch < now.batch:
        set_mark(admin, group, now)


def abort_slots(options: SinkOptions, slots: Sequence[WriterCommitMessage | None]) -> None:
    """Some tasks failed: what the others left open goes now rather than when its time is over."""
    opened = [one.opened for one in slots if isinstance(one, SlotWritten) and one.opened is not None]
    if not opened:
        return
    try:
        with Admin(admin_settings(options.producer)) as admin:
            admin.end_transactions(opened, commit=False)
    except ClientError as error:
        logger.warning("not aborted because=%s; the coordinator will when its time is over", error)


def _of_tasks(messages: Sequence[WriterCommitMessage | None]) -> list[SlotWritten]:
    slots = [one for one in messages if isinstance(one, SlotWritten)]
    assert len(slots) == len(messages), "every task tells what it did"
    return slots


class SlotStreamWriter(DataSourceStreamArrowWriter):
    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        context = TaskContext.get()
        assert context is not None, "write() runs in a task"
        query, batch = context.getLocalProperty(QUERY_ID), context.getLocalProperty(BATCH_ID)
        assert query is not None, "Spark tells tasks which query they belong to"
        assert batch is not None, "Spark tells tasks which batch they belong to"
        with told_on_failure():
            return write_slot(self._options, iterator, query, int(batch), context.partitionId())

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        with told_on_failure():
            commit_slots(self._options, _of_tasks(messages), batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        abort_slots(self._options, messages)


class SlotBatchWriter(DataSourceArrowWriter):
    """A batch query is a stream of one batch, with a name of its own."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        self._query = str(uuid4())

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        context = TaskContext.get()
        assert context is not None, "write() runs in a task"
        with told_on_failure():
            return write_slot(self._options, iterator, self._query, 0, context.partitionId())

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        with told_on_failure():
            commit_slots(self._options, _of_tasks(messages), 0)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        abort_slots(self._options, messages)
