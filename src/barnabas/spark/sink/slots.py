"""Exactly-once writers with one transaction per task: the rows of a task become visible together.

Each task number is a slot with its own transactional.id. Initializing the id fences the previous owner and
aborts its transaction. If the slot's mark shows that the micro-batch is already committed, the task discards
its rows; otherwise it writes the rows and the mark, and leaves the transaction open. The driver commits all
transactions when every task is done. If the driver dies in between, Spark replays the micro-batch: committed
slots are skipped, the others are written again.

So once a slot is committed, a replay must send each row to the same slot, and another number of slots is
rejected. Ids of slots that the new run does not use are fenced before its first commit (earlier_runs.py).
"""

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from uuid import uuid4

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from barnabas.client.blocking.admin import Admin
from barnabas.client.blocking.producer import Producer
from barnabas.client.producer.transaction import OpenTransaction
from barnabas.spark.failures import log_failed_write
from barnabas.spark.options.client_settings import admin_settings
from barnabas.spark.options.sink import SinkOptions
from barnabas.spark.sink.availability import check_brokers
from barnabas.spark.sink.earlier_runs import check_still_open, fence_earlier_runs
from barnabas.spark.sink.ids import slot_id
from barnabas.spark.sink.markers import NO_MARK, Mark, last_mark, mark_in_transaction
from barnabas.spark.sink.replays import check_same_plan
from barnabas.spark.sink.runs import UNKNOWN_RUN, Record, read_record, write_record
from barnabas.spark.sink.sending import Sending
from barnabas.spark.sink.transactions import abort_transactions, explain_timeout
from barnabas.spark.task_context import stream_task, task_number

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class SlotWritten(WriterCommitMessage):
    """The commit message of a task. `opened` is None if it had no rows, or they were already committed."""

    query: str
    run: str
    slot: int
    topic: str | None
    opened: OpenTransaction | None
    open_since_s: float
    # The slot's mark, if it shows that the rows were already committed.
    before: Mark = NO_MARK


def write_slot(
    options: SinkOptions,
    batches: Iterator[pa.RecordBatch],
    query: str,
    batch: int,
    slot: int,
    run: str = UNKNOWN_RUN,
) -> SlotWritten:
    filled = (one for one in batches if one.num_rows > 0)
    first = next(filled, None)
    if first is None:
        return SlotWritten(query, run, slot, None, None, 0.0)
    name = slot_id(options.id_prefix, query, slot)
    check_brokers(options.producer, options.connect_ms)
    with Producer({**options.producer, "transactional.id": name}) as producer:
        producer.init_transactions()
        with Admin(admin_settings(options.producer)) as admin:
            mark = last_mark(admin, name)
        if mark.batch >= batch:
            logger.info("batch already committed slot=%s batch=%d", name, batch)
            for _ in filled:
                pass
            return SlotWritten(query, run, slot, mark.topic, None, 0.0, before=mark)
        since_s = time.time()
        with explain_timeout(options, since_s):
            producer.begin_transaction()
            sending = Sending(producer, options)
            sending.send([first])
            sending.send(filled)
            topic = min(sending.written).topic
            producer.send_offsets_to_transaction(mark_in_transaction(Mark(batch, run, topic)), name)
            return SlotWritten(query, run, slot, topic, producer.hand_over_transaction(), since_s)


def commit_slots(options: SinkOptions, slots: Sequence[SlotWritten], batch: int) -> None:
    """Commit the transactions of all tasks. If this fails, Spark replays the micro-batch."""
    if not slots:
        return
    with Admin(admin_settings(options.producer)) as admin, _explain_timeout(options, slots):
        is_written = begin_commit(admin, options, slots, batch)
        admin.end_transactions(_opened(slots), commit=not is_written)


def end_slots(options: SinkOptions, slots: Sequence[SlotWritten]) -> None:
    """Commit the transactions of a batch query, which has no earlier run and is never replayed."""
    with Admin(admin_settings(options.producer)) as admin, _explain_timeout(options, slots):
        admin.end_transactions(_opened(slots), commit=True)


def begin_commit(admin: Admin, options: SinkOptions, slots: Sequence[SlotWritten], batch: int) -> bool:
    """Record the batch as being committed. True if it was already committed by transactionScope=batch.

    Raises SlotsChanged if a run with another plan has committed part of it.
    """
    prefix, query, run = options.id_prefix, slots[0].query, slots[0].run
    record = read_record(admin, prefix, query)
    runs: tuple[str, ...] = (run,)
    if record.last_run != run or record.batch >= batch:
        check_still_open(admin, _opened(slots))
        own = {slot_id(prefix, query, one.slot) for one in slots if one.topic is not None}
        earlier = fence_earlier_runs(admin, options, query, record, own)
        if earlier.has_whole(batch):
            logger.info("batch already committed scope=batch query=%s batch=%d", query, batch)
            return True
        taken = {slot_id(prefix, query, one.slot): one.before for one in slots if one.before != NO_MARK}
        written = {**earlier.slots_since(batch), **taken}
        check_same_plan(batch, len(slots), record, written, earlier.prefixes, prefix)
        if written:
            # The runs that committed these slots had the same plan.
            runs = (*record.runs, run)
            batch = max(batch, record.batch)
    elif not any(one.topic for one in slots):
        return False
    topic = record.topic or options.topic or next((one.topic for one in slots if one.topic is not None), None)
    if topic is not None:
        write_record(admin, prefix, query, Record(batch, len(slots), runs, topic))
    return False


def _opened(slots: Sequence[WriterCommitMessage | None]) -> list[OpenTransaction]:
    return [one.opened for one in slots if isinstance(one, SlotWritten) and one.opened is not None]


def _explain_timeout(options: SinkOptions, slots: Sequence[SlotWritten]) -> AbstractContextManager[None]:
    since_s = min((one.open_since_s for one in slots if one.opened is not None), default=time.time())
    return explain_timeout(options, since_s)


def abort_slots(options: SinkOptions, slots: Sequence[WriterCommitMessage | None]) -> None:
    """Abort the transactions of a failed batch, as far as tasks have opened them."""
    abort_transactions(options, _opened(slots))


def _of_tasks(messages: Sequence[WriterCommitMessage | None]) -> list[SlotWritten]:
    slots = [one for one in messages if isinstance(one, SlotWritten)]
    assert len(slots) == len(messages), "every task sends a commit message"
    return slots


class SlotStreamWriter(DataSourceStreamArrowWriter):
    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        task = stream_task()
        with log_failed_write():
            return write_slot(self._options, iterator, task.query, task.batch, task.number, task.run)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        with log_failed_write():
            commit_slots(self._options, _of_tasks(messages), batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        abort_slots(self._options, messages)


class SlotBatchWriter(DataSourceArrowWriter):
    """Treats a batch query as a stream of one micro-batch with a unique id: no earlier run, and no replay."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        self._query = str(uuid4())

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        with log_failed_write():
            return write_slot(self._options, iterator, self._query, 0, task_number())

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        with log_failed_write():
            end_slots(self._options, _of_tasks(messages))

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        abort_slots(self._options, messages)
