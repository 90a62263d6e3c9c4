"""Requests of a transactional producer to the transaction and group coordinators: one attempt each.

An error code is raised as Refused; transaction_manager.py decides about retries and consequences.
"""

from collections.abc import Collection, Mapping
from typing import Any, Final

from barnabas.base.ids import TopicPartition
from barnabas.client.cluster import Cluster
from barnabas.client.connection import Connection
from barnabas.client.errors import Refused, UnsupportedByBroker, refused
from barnabas.client.group.coordinator import Coordinator
from barnabas.client.group.offsets import Committer, OffsetAndMetadata
from barnabas.client.group.subscription import by_topic
from barnabas.client.producer.stamp import Identity
from barnabas.client.producer.transaction import NOTHING_PREPARED, PreparedTransaction
from barnabas.client.producer.transaction_state import V1_UNTIL
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    EndTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

_NO_IDENTITY: Final = Identity(-1, -1)
# First InitProducerId version that carries the current producer id and epoch.
_IDENTITY_FROM: Final = 3
# First InitProducerId version with two-phase commit. (KIP-939)
_TWO_PHASE_FROM: Final = 6
# Last AddPartitionsToTxn version for clients; later ones are for brokers.
_ADD_PARTITIONS_UNTIL: Final = 3


class NoCoordinator(Refused):
    """FindCoordinator failed, so the request was not sent to the coordinator."""


class TransactionCoordinator(Coordinator):
    """The coordinator of a transactional id; looked up like that of a group."""

    key_type = 1
    key_noun = "transactional.id"

    def _lookup_error(self, code: int, about: str, message: str | None) -> Refused:
        return NoCoordinator(ErrorCode.of(code), about=about)

    def _found(self, node: int) -> None:
        self._node = node


class TransactionRequests:
    def __init__(
        self, cluster: Cluster, transactional_id: str, timeout_ms: int, *, two_phase: bool = False
    ) -> None:
        self._cluster = cluster
        self._id = transactional_id
        self._timeout_ms = timeout_ms
        self._two_phase = two_phase
        self._coordinator = TransactionCoordinator(cluster, transactional_id)
        # The coordinator of the group that offsets were last sent for.
        self._group: tuple[str, Coordinator] | None = None

    async def close(self) -> None:
        await self._coordinator.close()
        if self._group is not None:
            await self._group[1].close()

    def _check(self, code: int, about: str = "") -> None:
        if code != ErrorCode.NONE:
            self._coordinator.check(code)
            raise refused(code, about=about or f"transactional.id {self._id}")

    async def speaks_v2(self) -> bool:
        """Whether the cluster has version 2 of transactions, according to the coordinator's ApiVersions."""
        return _speaks_v2(await self._coordinator.connection())

    async def init(
        self, previous: Identity | None, *, keep_prepared: bool = False
    ) -> tuple[Identity, PreparedTransaction]:
        """Get a producer id for this transactional id, or the next epoch of the `previous` one.

        Also return the prepared transaction of this id, if there is one and `keep_prepared` is set.
        """
        connection = await self._coordinator.connection()
        if self._two_phase:
            _check_two_phase(connection)
        if connection.version_of(ApiKey.INIT_PRODUCER_ID) < _IDENTITY_FROM:
            previous = None
        producer_id, epoch = previous or _NO_IDENTITY
        # If the coordinator moves to an older broker in between, encoding fails, because a field that the
        # older version lacks is not left out silently.
        answer = await self._coordinator.ask(
            InitProducerIdRequest(
                transactional_id=self._id,
                transaction_timeout_ms=self._timeout_ms,
                producer_id=producer_id,
                producer_epoch=epoch,
                enable2_pc=self._two_phase,
                keep_prepared_txn=keep_prepared,
            )
        )
        if keep_prepared and answer.error_code == ErrorCode.UNSUPPORTED_VERSION:
            raise _lacks(connection, "the broker cannot keep prepared transactions (Kafka 4.3 cannot either)")
        with_what = (
            "transaction.two.phase.commit.enable (the broker must enable it, too)"
            if self._two_phase
            else f"transaction.timeout.ms={self._timeout_ms}"
        )
        self._check(answer.error_code, f"transactional.id {self._id} with {with_what}")
        prepared = (
            PreparedTransaction(answer.ongoing_txn_producer_id, answer.ongoing_txn_producer_epoch)
            if keep_prepared
            else NOTHING_PREPARED
        )
        return Identity(answer.producer_id, answer.producer_epoch), prepared

    async def add_partitions(self, identity: Identity, tps: Collection[TopicPartition]) -> None:
        """All of them or none."""
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._id,
            v3_and_below_producer_id=identity.producer_id,
            v3_and_below_producer_epoch=identity.epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=topic, partitions=numbers)
                for topic, numbers in by_topic(tps).items()
            ],
        )
        answer = await self._coordinator.ask(request, newest=_ADD_PARTITIONS_UNTIL)
        codes = {
            TopicPartition(topic.name, row.partition_index): row.partition_error_code
            for topic in answer.results_by_topic_v3_and_below
            for row in topic.results_by_partition
        }
        # Report OPERATION_NOT_ATTEMPTED last: it does not say what was wrong.
        not_tried = ErrorCode.OPERATION_NOT_ATTEMPTED
        for tp in sorted(tps, key=lambda each: codes.get(each, ErrorCode.NONE) == not_tried):
            self._check(codes.get(tp, ErrorCode.UNKNOWN_SERVER_ERROR), f"partition {tp} in a transaction")

    async def add_group(self, identity: Identity, group_id: str) -> None:
        answer = await self._coordinator.ask(
            AddOffsetsToTxnRequest(
                transactional_id=self._id,
                producer_id=identity.producer_id,
                producer_epoch=identity.epoch,
                group_id=group_id,
            )
        )
        self._check(answer.error_code, f"group {group_id} in a transaction")

    async def end(self, identity: Identity, *, commit: bool, is_v2: bool) -> Identity | None:
        """Send EndTxn. In version 2, return producer id and epoch of the next transaction."""
        answer = await self._coordinator.ask(
            EndTxnRequest(
                transactional_id=self._id,
                producer_id=identity.producer_id,
                producer_epoch=identity.epoch,
                committed=commit,
            ),
            newest=None if is_v2 else V1_UNTIL[ApiKey.END_TXN],
        )
        self._check(answer.error_code)
        return Identity(answer.producer_id, answer.producer_epoch) if answer.producer_id >= 0 else None

    # The coordinator of a group

    async def commit_offsets(
        self,
        identity: Identity,
        group: Committer,
        left: dict[TopicPartition, OffsetAndMetadata],
        *,
        is_v2: bool,
    ) -> None:
        """Remove committed offsets from `left`."""
        coordinator = await self._coordinator_of(group.group_id)
        answer = await coordinator.ask(
            TxnOffsetCommitRequest(
                transactional_id=self._id,
                group_id=group.group_id,
                producer_id=identity.producer_id,
                producer_epoch=identity.epoch,
                generation_id=group.generation,
                member_id=group.member_id,
                group_instance_id=group.instance_id,
                topics=_offset_rows(left),
            ),
            newest=None if is_v2 else V1_UNTIL[ApiKey.TXN_OFFSET_COMMIT],
        )
        codes: dict[TopicPartition, int] = {
            TopicPartition(topic.name, row.partition_index): row.error_code
            for topic in answer.topics
            for row in topic.partitions
        }
        worst: tuple[TopicPartition, int] | None = None
        for tp in list(left):
            # A partition missing in the response is not committed.
            code = codes.get(tp, ErrorCode.UNKNOWN_SERVER_ERROR)
            if code == ErrorCode.NONE:
                del left[tp]
            elif worst is None or ErrorCode.of(worst[1]).retriable:
                worst = tp, code
        if worst is not None:
            coordinator.check(worst[1])
            raise refused(worst[1], about=f"offset of {worst[0]} for group {group.group_id}")

    async def _coordinator_of(self, group_id: str) -> Coordinator:
        before = self._group
        if before is not None and before[0] == group_id:
            return before[1]
        coordinator = Coordinator(self._cluster, group_id)
        self._group = group_id, coordinator
        if before is not None:
            await before[1].close()
        return coordinator


def _speaks_v2(connection: Connection) -> bool:
    _, newest = connection.finalized_features.get("transaction.version", (0, 0))
    return newest >= 2 and all(
        connection.version_of(key) > until for key, until in V1_UNTIL.items() if key is not ApiKey.PRODUCE
    )


def _check_two_phase(connection: Connection) -> None:
    """Check before InitProducerId: an older broker would abort the prepared transaction."""
    if connection.version_of(ApiKey.INIT_PRODUCER_ID) < _TWO_PHASE_FROM:
        raise _lacks(connection, "the broker must set unstable.api.versions.enable=true")
    if not _speaks_v2(connection):
        # In version 1 all transactions share one epoch, so a stored identity would match the next one, too.
        raise _lacks(connection, "the cluster must have transaction.version=2")


def _lacks(connection: Connection, why: str) -> UnsupportedByBroker:
    return UnsupportedByBroker("two-phase commit (INIT_PRODUCER_ID version 6)", connection.address, why)


def _offset_rows(offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> list[Any]:
    return [
        TxnOffsetCommitRequestTopic(
            name=topic,
            partitions=[
                TxnOffsetCommitRequestPartition(
                    partition_index=number,
                    committed_offset=one.offset,
                    committed_leader_epoch=one.leader_epoch,
                    committed_metadata=one.metadata,
                )
                for number in numbers
                for one in (offsets[TopicPartition(topic, number)],)
            ],
        )
        for topic, numbers in by_topic(offsets).items()
    ]
