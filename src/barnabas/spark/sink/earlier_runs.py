"""Fences the transactional ids that earlier runs of a query left behind.

A killed run leaves open transactions. The tasks of the next run take their own ids, which aborts what is open
there. They do not take ids of slots that the new run does not have or that now have no rows, of another
scope, or of another prefix. Those transactions would block read_committed readers until
transaction.timeout.ms, and a driver that is still alive could commit them.

So before the first commit of a run the driver lists the ids of the query and fences those that its tasks do
not own. Then it reads their marks: they show everything that was committed before the fence, and nothing can
be committed after it. The coordinators are asked instead of the record of runs, because a run that dies in
its first micro-batch has recorded nothing. The record is used if brokers cannot list transactions (before
Kafka 3.0).
"""

import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from barnabas.client.admin.call import PartlyRefused
from barnabas.client.admin.transactions import TransactionListing, TransactionState
from barnabas.client.blocking.admin import Admin
from barnabas.client.errors import UnsupportedByBroker
from barnabas.client.producer.transaction import OpenTransaction
from barnabas.client.producer.transaction_errors import FencedBeforeItsEnd
from barnabas.protocol.error_codes import ErrorCode
from barnabas.spark.options.sink import SinkOptions
from barnabas.spark.sink.claims import claim_of
from barnabas.spark.sink.ids import FoundIds, batch_marks_group, ids_of_query, pattern_of_query, slot_id
from barnabas.spark.sink.markers import NO_MARK, Mark, last_marks, notes_of
from barnabas.spark.sink.runs import Record

logger = logging.getLogger(__name__)

# A producer of the sink initializes its id, runs one transaction and closes. An id in one of these states
# therefore has no owner that could still write.
_DONE: Final = frozenset({TransactionState.COMPLETE_ABORT, TransactionState.COMPLETE_COMMIT})


@dataclass(frozen=True)
class EarlierRuns:
    """Marks of fenced ids: of slots by id, of whole micro-batches by prefix."""

    slots: dict[str, Mark]
    # The prefix of each slot's id.
    prefixes: dict[str, str]
    batches: dict[str, Mark]

    def slots_since(self, batch: int) -> dict[str, Mark]:
        """Return the marks of slots that have committed this micro-batch or a later one."""
        return {name: mark for name, mark in self.slots.items() if mark.batch >= batch}

    def has_whole(self, batch: int) -> bool:
        """Whether the micro-batch was committed as a whole, by transactionScope=batch."""
        return any(mark.batch >= batch for mark in self.batches.values())


def check_still_open(admin: Admin, opened: Iterable[OpenTransaction]) -> None:
    """Raise FencedBeforeItsEnd if a newer run has taken one of these ids."""
    mine = {one.transactional_id: one for one in opened}
    try:
        described = admin.describe_transactions(mine)
    except UnsupportedByBroker:
        # Before Kafka 3.0. Ending a transaction that is no longer open fails anyway.
        return
    for name, one in mine.items():
        found = described[name]
        now = (found.state, found.producer_id, found.producer_epoch)
        if now != (TransactionState.ONGOING, one.producer_id, one.epoch):
            raise FencedBeforeItsEnd(one, is_v2=False, in_doubt=False)


def fence_earlier_runs(
    admin: Admin, options: SinkOptions, query: str, record: Record, own: Collection[str]
) -> EarlierRuns:
    """Fence the ids of earlier runs and return their marks. Skips `own`, the ids of this run's tasks."""
    prefix = options.id_prefix
    recorded = {slot_id(prefix, query, slot) for slot in range(record.tasks)} - set(own)
    listed = _list(admin, query, options.checkpoint)
    found = ids_of_query(listed or (), query, options.checkpoint)
    if listed is None:
        states = dict.fromkeys(recorded, TransactionState.UNKNOWN)
    else:
        # Listing misses ids whose coordinator is just moving to another broker.
        states = _states(admin, recorded - listed.keys())
        for name in (*found.slots, *_ids_of_batches(admin, query, found, listed)):
            states[name] = listed[name].state
    pending = sorted(name for name, state in states.items() if state not in _DONE and name not in own)
    if pending:
        admin.fence_producers(pending, transaction_timeout_ms=options.timeout_ms)
        logger.info("ids of earlier runs fenced ids=%s", ",".join(pending))
    slots = {**dict.fromkeys(recorded, prefix), **found.slots}
    groups = {each: batch_marks_group(each, query) for each in {prefix, *found.prefixes}}
    of_batches = last_marks(admin, sorted(groups.values()))
    return EarlierRuns(
        slots=last_marks(admin, sorted(slots.keys() - set(own))),
        prefixes=slots,
        batches={each: of_batches[group] for each, group in groups.items()},
    )


def _list(admin: Admin, query: str, checkpoint: str | None) -> Mapping[str, TransactionListing] | None:
    """List the transactions of the query, and possibly others. None if brokers cannot list transactions."""
    try:
        return admin.list_transactions(pattern=pattern_of_query(query, checkpoint))
    except UnsupportedByBroker:
        logger.debug("brokers cannot filter transactions by pattern, listing all")
    try:
        # Brokers before Kafka 4.1 cannot filter by transactional id.
        return admin.list_transactions()
    except UnsupportedByBroker as error:
        logger.warning("cannot list transactions, fencing only recorded ids error=%s", error)
        return None


def _states(admin: Admin, ids: Collection[str]) -> dict[str, TransactionState]:
    """Return the states of the ids that exist. The id of a slot that never had rows does not."""
    try:
        described = admin.describe_transactions(ids)
    except PartlyRefused as partly:
        if any(each.code is not ErrorCode.TRANSACTIONAL_ID_NOT_FOUND for each in partly.refused.values()):
            raise
        described = partly.done
    return {name: each.state for name, each in described.items()}


def _ids_of_batches(
    admin: Admin, query: str, found: FoundIds, listed: Mapping[str, TransactionListing]
) -> Iterable[str]:
    """Yield the ids named by the checkpoint that this query has used, and the ids of their claims.

    A prefix belongs to the query if its group has the query's marks. Before the first commit there is no
    mark; then it does if a task of the query has claimed its part of the open transaction.
    """
    if not found.prefixes:
        return
    groups = {prefix: batch_marks_group(prefix, query) for prefix in found.prefixes}
    marks = last_marks(admin, sorted(groups.values()), is_stable=False)
    owned = {prefix for prefix, group in groups.items() if marks[group] != NO_MARK}
    open_batches = {
        prefix: name
        for prefix, name in found.batches.items()
        if prefix not in owned and listed[name].state is TransactionState.ONGOING
    }
    described = admin.describe_transactions(open_batches.values())
    for prefix, name in open_batches.items():
        claim = claim_of(described[name].producer_id, described[name].producer_epoch, query)
        if claim in notes_of(admin, found.claims.get(prefix, ())):
            owned.add(prefix)
    for prefix in sorted(owned):
        yield from found.claims.get(prefix, ())
        if prefix in found.batches:
            yield found.batches[prefix]
