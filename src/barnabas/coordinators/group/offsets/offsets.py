"""Committed offsets of all groups of a shard: OffsetCommit, and the records of offsets.

An OffsetCommit writes a record for each partition, or none if the group refuses it. The handler has checked
that the topics exist. Transactional commits are in txn_commits.py, OffsetFetch in reads.py, and OffsetDelete
and expiry in removal.py.
"""

from collections.abc import Callable, Iterable, Set
from typing import Final

from barnabas.coordinators.decision.outcome import (
    Caller,
    Now,
    Outcome,
    Record,
    ReplyTo,
    answered,
)
from barnabas.coordinators.group.classic.group import ClassicGroup
from barnabas.coordinators.group.context import ShardContext
from barnabas.coordinators.group.group import Group, GroupError
from barnabas.coordinators.group.offsets.load import Loader
from barnabas.coordinators.group.offsets.pending import PendingOffsets
from barnabas.coordinators.group.offsets.reads import OffsetReader
from barnabas.coordinators.group.offsets.record import NO_EXPIRY, OffsetRecord, metadata_length, pack_fields
from barnabas.coordinators.group.offsets.removal import OffsetRemover
from barnabas.coordinators.group.offsets.table import OffsetTable
from barnabas.coordinators.group.offsets.txn_commits import (
    PendingOffset,
    TransactionEnd,
    decide_txn_commit,
    refused_txn_commit,
)
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
)
from barnabas.protocol.messages.transactions import TxnOffsetCommitRequest
from barnabas.records.control import TRANSACTION_MARKERS, ControlType, read_control_type
from barnabas.records.header import NO_PRODUCER_ID

# From this version of OffsetCommit on an unknown group is GROUP_ID_NOT_FOUND. (KIP-848)
_NOT_FOUND_FROM: Final = 9
_NO_RETENTION: Final = -1
_NONE: Final[ErrorCode] = ErrorCode.NONE


class Offsets:
    """The committed offsets of a shard.

    `new_group` creates a group that only commits. `apply_group_record` applies the records of groups.
    """

    def __init__(
        self,
        context: ShardContext,
        new_group: Callable[[str], Group],
        apply_group_record: Callable[[Record], None],
    ) -> None:
        self._context: Final = context
        self._new_group: Final = new_group
        self._apply_group_record: Final = apply_group_record
        self._table: Final = OffsetTable()
        self._pending: Final = PendingOffsets()
        self._reader: Final = OffsetReader(context, self._table, self._pending)
        self._remover: Final = OffsetRemover(context, self._table, self._pending)
        self._loader: Final = Loader(self._table)

    @property
    def count(self) -> int:
        """The number of committed offsets."""
        return self._table.count

    # Requests

    def commit(self, request: OffsetCommitRequest, caller: Caller, to: ReplyTo, now: Now) -> Outcome:
        try:
            return self._decide_commit(request, caller, to, now)
        except GroupError as refused:
            return answered(to, _refused_commit(request, refused.code))

    def _decide_commit(self, request: OffsetCommitRequest, caller: Caller, to: ReplyTo, now: Now) -> Outcome:
        """The records and the answer. GroupError if the group refuses the whole commit.

        Too long metadata is an error of its partition only; the others are committed.
        """
        group = self._group_for_commit(request, caller, now)
        has_expiry = request.retention_time_ms != _NO_RETENTION
        expire_ms = _expire_ms(request.retention_time_ms, now) if has_expiry else NO_EXPIRY
        outcome = Outcome(is_tentative=True)
        topics = []
        for topic in request.topics:
            partitions = []
            for partition in topic.partitions:
                code = _NONE
                metadata = partition.committed_metadata or ""
                if metadata and metadata_length(metadata) > self._context.settings.offset_metadata_bytes_max:
                    code = ErrorCode.OFFSET_METADATA_TOO_LARGE
                else:
                    if group is not None and not isinstance(group, ClassicGroup):
                        group.check_commit_of(
                            topic.topic_id,
                            partition.partition_index,
                            request.generation_id_or_member_epoch,
                            request.member_id,
                        )
                    value = pack_fields(
                        partition.committed_offset,
                        partition.committed_leader_epoch,
                        metadata,
                        now.ms,
                        expire_ms,
                        topic.topic_id,
                    )
                    outcome.write(
                        OffsetRecord(request.group_id, topic.name, partition.partition_index, value)
                    )
                partitions.append(
                    OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=code)
                )
            topics.append(
                OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=partitions)
            )
        outcome.answer(to, OffsetCommitResponse(topics=topics))
        return outcome

    def _group_for_commit(self, request: OffsetCommitRequest, caller: Caller, now: Now) -> Group | None:
        """The group, after its checks; None if the first record will create one without members."""
        group = self._context.groups.get(request.group_id)
        member_id, instance_id = request.member_id, request.group_instance_id
        generation, version = request.generation_id_or_member_epoch, caller.version
        if group is None:
            if generation < 0:
                return None
            code = (
                ErrorCode.GROUP_ID_NOT_FOUND if version >= _NOT_FOUND_FROM else ErrorCode.ILLEGAL_GENERATION
            )
            raise GroupError(code, f"Group {request.group_id} not found.")
        if isinstance(group, ClassicGroup):
            # The same as below for the most common class: compiled code needs no attribute lookups.
            group.check_commit(member_id, instance_id, generation, is_txn=False, version=version)
            if member_id:
                group.extend_session(member_id, now)
        else:
            group.check_commit(member_id, instance_id, generation, is_txn=False, version=version)
            if member_id:
                group.extend_session(member_id, now)
        return group

    def commit_in_transaction(
        self, request: TxnOffsetCommitRequest, caller: Caller, to: ReplyTo, now: Now
    ) -> Outcome:
        try:
            return decide_txn_commit(self._context, request, caller, to, now)
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

    def apply(self, record: Record) -> None:
        """Apply a record of an Outcome. Most are commits, so this is the shard's apply()."""
        if isinstance(record, OffsetRecord):
            if record.value is not None and record.group not in self._context.groups:
                self._new_group(record.group)
            self._change(record)
        elif isinstance(record, PendingOffset):
            self._pend(record.producer_id, record.offset)
        elif isinstance(record, TransactionEnd):
            self.end_transaction(record.producer_id, commit=record.commit)
        else:
            self._apply_group_record(record)

    def _pend(self, producer_id: int, record: OffsetRecord) -> None:
        """Hold a transactional commit until the transaction ends. A tombstone applies immediately."""
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
        elif self._pending.by_group:
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
        if group_id not in self._context.groups:
            self._new_group(group_id)

    def _change(self, record: OffsetRecord) -> None:
        group, topic, partition, value = record.group, record.topic, record.partition, record.value
        if value is None:
            self._table.remove(group, topic, partition)
            self._pending.remove(group, topic, partition)
        else:
            self._table.put(group, topic, partition, value)
            if self._pending.by_group:
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


def _refused_commit(request: OffsetCommitRequest, code: ErrorCode) -> OffsetCommitResponse:
    """The response with the same code for every partition."""
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(partition_index=one.partition_index, error_code=code)
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _expire_ms(retention_ms: int, now: Now) -> int:
    """The expiry of commits in versions 2 to 4, which may set their own retention."""
    # Wraps around at 64 bits, as in Kafka.
    return (now.ms + retention_ms + 2**63) % 2**64 - 2**63
