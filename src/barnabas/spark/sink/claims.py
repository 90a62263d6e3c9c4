"""Claims that let only one attempt of a task write into a transaction shared by several tasks.

Spark retries tasks and whole stages while earlier attempts may still run. It restarts the attempt numbers
with each stage attempt, and tells a task only its own. So each attempt claims its task in a small transaction
with the task's own transactional.id. Initializing the id fences earlier attempts that have not claimed yet; a
claim that is already committed is found. At most one of several concurrent attempts succeeds.
"""

import time
from typing import Final

from barnabas.base.errors import BarnabasError
from barnabas.client.blocking.admin import Admin
from barnabas.client.blocking.producer import Producer
from barnabas.client.errors import Refused
from barnabas.client.producer.transaction import OpenTransaction
from barnabas.client.producer.transaction_errors import FENCED, MustAbort, ProducerFenced, TransactionError
from barnabas.protocol.error_codes import ErrorCode
from barnabas.spark.options.client_settings import admin_settings
from barnabas.spark.options.sink import SinkOptions
from barnabas.spark.sink.ids import claim_id
from barnabas.spark.sink.markers import NO_MARK, Mark, last_mark, mark_in_transaction
from barnabas.spark.sink.transactions import explain_timeout

# INVALID_TXN_STATE: a newer attempt first has our transaction aborted and gets the id after that. A commit in
# between finds no open transaction.
_TAKEN: Final = FENCED | {ErrorCode.INVALID_TXN_STATE}


class NotOneWriter(BarnabasError):
    """Two tasks, or two attempts of one, would write to the same partition in one transaction."""


def claim_of(producer_id: int, epoch: int, query: str) -> str:
    """Return the text of a claim: transaction and query. Every micro-batch has another epoch or id."""
    return f"{producer_id}/{epoch}/{query}"


def claim_task(options: SinkOptions, opened: OpenTransaction, task: int, topic: str, query: str) -> None:
    """Raise NotOneWriter if another attempt has claimed the task. `topic` is any that the task writes to."""
    name = claim_id(opened.transactional_id, task)
    claim = claim_of(opened.producer_id, opened.epoch, query)
    with Producer({**options.producer, "transactional.id": name}) as producer:
        producer.init_transactions()
        with Admin(admin_settings(options.producer)) as admin:
            if last_mark(admin, name, note=claim) != NO_MARK:
                raise _tried_again(task)
        # The mark is an offset, which needs an existing topic: have brokers create it if they do so.
        producer.partitions_for(topic)
        try:
            with explain_timeout(options, time.time()):
                producer.begin_transaction()
                producer.send_offsets_to_transaction(mark_in_transaction(Mark(0, claim, topic)), name)
                producer.commit_transaction()
        except TransactionError as error:
            if _is_taken(error):
                raise _tried_again(task) from error
            raise


def _is_taken(error: TransactionError) -> bool:
    """Whether another attempt has taken the id and thereby aborted the transaction."""
    if isinstance(error, MustAbort) and isinstance(error.because, Refused):
        return error.because.code in _TAKEN
    return isinstance(error, ProducerFenced)


def _tried_again(task: int) -> NotOneWriter:
    return NotOneWriter(f"another attempt of task {task} writes to the same transaction: restart the query")
