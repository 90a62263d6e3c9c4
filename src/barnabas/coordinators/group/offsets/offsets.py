"""Committed offsets of all groups of a shard.

apply() changes plain commits; pend() and end_transaction() those of transactions. replay() loads both.
"""

from collections.abc import Callable, Iterable, Set
from typing import Final

from barnabas.coordinators.decision.outcome import Caller, Now, Outcome, Record, ReplyTo, answered
from barnabas.coordinators.group.errors import GroupError
from barnabas.coordinators.group.ground import Ground, Group
from barnabas.coordinators.group.offsets.commits import decide_commit, refused_commit
from barnabas.coordinators.group.offsets.load import Loader
from barnabas.coordinators.group.offsets.pending import PendingOffsets
from barnabas.coordinators.group.offsets.reads import OffsetReader
from barnabas.coordinators.group.offsets.record import OffsetRecord
from barnabas.coordinators.group.offsets.removal import OffsetRemover
from barnabas.coordinators.group.offsets.table import OffsetTable
from barnabas.coordinators.group.offsets.txn_commits import decide_txn_commit, refused_txn_commit
from barnabas.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
)
from barnabas.protocol.messages.transactions import TxnOffsetCommitRequest
from barnabas.records.control import TRANSACTION_MARKERS, ControlType, read_control_type
from barnabas.records.header import NO_PRODUCER_ID


class Offsets:
    """The committed offsets of a shard. `new_group` creates a group that only commits."""

    def __init__(self, ground: Ground, new_group: Callable[[str], Group]) -> None:
        self._ground: Final = ground
        self._new_group: Final = new_group
        self._table: Final = OffsetTable()
        self._pending: Final = PendingOffsets()
        self._reader: Final = OffsetReader(ground, self._table, self._pending)
        self._remover: Final = OffsetRemover(ground, self._table, self._pending)
        self._loader: Final = Loader(self._table)

    @property
    def count(self) -> int:
        """The number of committed offsets."""
        return self._table.count

    # Requests

    def commit(self, request: OffsetCommitRequest, caller: Caller, to: ReplyTo, now: Now) -> Outcome:
        try:
            return decide_commit(self._ground, request, caller, to, now)
        except GroupError as refused:
            return answered(to, refused_commit(request, refused.code))

    def commit_in_transaction(
        self, request: TxnOffsetCommitRequest, caller: Caller, to: ReplyTo, now: Now
    ) -> Outcome:
        try:
            return decide_txn_commit(self._ground, request, caller, to, now)
        except GroupError as refused:
            return answered(to, refused_txn_commit(request, refused.code))

    def fetch(self, asked: OffsetFetchRequestGroup, *, require_stable: bool) -> OffsetFetchResponseGroup:
        return self._reader.read(asked, require_stable=require_stable)

    def delete(self, request: OffsetDeleteRequest, to: ReplyTo) -> Outcome:
        try:
            records, response = self._remover.deleted(request)
        except GroupError as refused:
            return answered(to, OffsetDeleteResponse(error_code=refused.code, topics=[]))
        outcome = _written(records)
        outcome.answer(to, response)
        return outcome

    # Removal

    def forget(self, group_id: str) -> list[Record]:
        """Tombstones for all offsets of a group, including pending ones."""
        return list(self._remover.all_of(group_id))

    def expire(self, now: Now) -> Outcome:
        """Tombstones for expired offsets and empty groups. May need several calls: see has_more_to_expire."""
        return _written(self._remover.expired(now))

    @property
    def has_more_to_expire(self) -> bool:
        return self._remover.has_more

    def topics_deleted(self, names: Set[str]) -> Outcome:
        return _written(self._remover.of_deleted_topics(names))

    # Records

    def apply(self, record: OffsetRecord) -> None:
        if record.value is not None:
            self._make_group(record.group)
        self._change(record)

    def pend(self, producer_id: int, records: Iterable[OffsetRecord]) -> None:
        """Hold transactional commits until the transaction ends. Tombstones apply immediately."""
        for record in records:
            if record.value is not None:
                self._make_group(record.group)
            self._hold(producer_id, record)

    def end_transaction(self, producer_id: int, *, commit: bool) -> None:
        for group, topic, partition, value in self._pending.end(producer_id, commit=commit):
            self._table.put(group, topic, partition, value)

    def replay(self, batch: bytes) -> list[tuple[bytes, bytes | None]]:
        """Apply the commits of one whole batch of the log, and return the other records.

        Malformed, without any change, if the batch or a commit in it is invalid. Commits of unknown versions
        are among the other records. Groups are created in loaded(), because their own records may follow.
        """
        loader = self._loader
        loader.scan(batch)
        if loader.is_control:
            self._replay_markers(loader.producer_id, loader.others)
            return []
        if loader.producer_id != NO_PRODUCER_ID:
            for commit in loader.commits():
                self._hold(loader.producer_id, OffsetRecord(*commit))
        elif self._pending:
            for commit in loader.commits():
                self._change(OffsetRecord(*commit))
        else:
            loader.store()
        return loader.others

    def loaded(self) -> None:
        """The log has been replayed: create the groups that have only offsets."""
        self._loader.forget()
        for group_id in (*self._table.groups(), *self._pending.groups()):
            self._make_group(group_id)

    def durable(self) -> object:
        """The state that the records describe, as a comparable value."""
        committed = {group: self._table.of_group(group) for group in self._table.groups()}
        return committed, sorted(self._pending.entries(), key=lambda entry: entry[1].fields()[:3])

    def _make_group(self, group_id: str) -> None:
        if group_id not in self._ground.groups:
            self._new_group(group_id)

    def _change(self, record: OffsetRecord) -> None:
        group, topic, partition, value = record.group, record.topic, record.partition, record.value
        if value is None:
            self._table.remove(group, topic, partition)
            self._pending.remove(group, topic, partition)
        else:
            self._table.put(group, topic, partition, value)
            if self._pending:
                self._pending.supersede(group, topic, partition)

    def _hold(self, producer_id: int, record: OffsetRecord) -> None:
        if record.value is None:
            self._change(record)
        else:
            self._pending.add(producer_id, record.group, record.topic, record.partition, record.value)

    def _replay_markers(self, producer_id: int, records: Iterable[tuple[bytes, bytes | None]]) -> None:
        for key, _ in records:
            kind = read_control_type(key)
            if kind in TRANSACTION_MARKERS:
                self.end_transaction(producer_id, commit=kind == ControlType.COMMIT)


def _written(records: Iterable[Record]) -> Outcome:
    """An outcome of independent tombstones."""
    outcome = Outcome(is_divisible=True)
    outcome.records.extend(records)
    return outcome
