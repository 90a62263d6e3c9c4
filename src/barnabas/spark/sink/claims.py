"""Who writes the rows of a task into a transaction of several tasks: the first that asks, and nobody else.

Spark tries a task again, tries a whole stage again, and leaves tasks of the try before running meanwhile; it
counts tries for each stage anew, and tells tasks only of their own. So they claim the task, in a transaction
of its own transactional.id: whoever comes with it fences those who came before and have not claimed yet, and
sees the claim of one who has. Of several at once one has it.
"""

import time
from typing import Final

from barnabas.base.errors import BarnabasError
from barnabas.client.blocking.admin import Admin
from barnabas.client.blocking.producer import Producer
from barnabas.client.errors import Refused
from barnabas.client.producer.handed_over import OpenTransaction
from barnabas.client.producer.transaction_errors import MustAbort, ProducerFenced, TransactionError
from barnabas.client.producer.transaction_verdicts import FENCED
from barnabas.protocol.error_codes import ErrorCode
from barnabas.spark.options.client_settings import admin_settings
from barnabas.spark.options.sink import SinkOptions
from barnabas.spark.sink.ids import claim_id
from barnabas.spark.sink.markers import NO_MARK, Mark, last_mark, mark_in_transaction
from barnabas.spark.sink.timing import told_if_too_long

# The last: who comes has the transaction aborted first, and gets the id when that is done. A commit just in
# between is told that there is nothing left to commit.
_TAKEN: Final = FENCED | {ErrorCode.INVALID_TXN_STATE}


class NotOneWriter(BarnabasError):
    """A partition that two tasks, or two tries of one, would write to in one transaction."""


def claim_of(producer_id: int, epoch: int, query: str) -> str:
    """What a claim says: which transaction it is for, and whose. Every micro-batch has other numbers."""
    return f"{producer_id}/{epoch}/{query}"


def claim_task(options: SinkOptions, opened: OpenTransaction, task: int, topic: str, query: str) -> None:
    """NotOneWriter if another try of the task has it. `topic` is any that the task writes to."""
    name = claim_id(opened.transactional_id, task)
    claim = claim_of(opened.producer_id, opened.epoch, query)
    with Producer({**options.producer, "transactional.id": name}) as producer:
        producer.init_transactions()
        with Admin(admin_settings(options.producer)) as admin:
            if last_mark(admin, name, note=claim) != NO_MARK:
                raise _tried_again(task)
        # The mark is an offset, and that of a topic that brokers make by themselves needs it to be there.
        producer.partitions_for(topic)
        try:
            with told_if_too_long(options, time.time()):
                producer.begin_transaction()
                producer.send_offsets_to_transaction(mark_in_transaction(Mark(0, claim, topic)), name)
                producer.commit_transaction()
        except TransactionError as error:
            if _is_taken(error):
                raise _tried_again(task) from error
            raise


def _is_taken(error: TransactionError) -> bool:
    """Whether another one has come with the id, and had the transaction aborted."""
    if isinstance(error, MustAbort) and isinstance(error.because, Refused):
        return error.because.code in _TAKEN
    return isinstance(error, ProducerFenced)


def _tried_again(task: int) -> NotOneWriter:
    return NotOneWriter(f"another attempt of task {task} writes to the same transaction: restart the query")
