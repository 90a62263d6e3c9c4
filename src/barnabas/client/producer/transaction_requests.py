"""The requests of a transactional producer to its coordinator and to those of groups: one try each.

A refusal is raised as Refused; whether it is asked again, and what it means, is transactions.py's business.
"""

from collections.abc import Collection, Mapping
from typing import Any, Final

from barnabas.base.ids import TopicPartition
from barnabas.client.cluster import Cluster
from barnabas.client.connection import Connection
from barnabas.client.errors import BrokerUnavailable, ClientError, Refused, UnsupportedByBroker, refused
from barnabas.client.group.coordinator import Coordinator
from barnabas.client.group.offsets import Committer, OffsetAndMetadata
from barnabas.client.group.subscription import by_topic
from barnabas.client.producer.prepared import NOTHING_PREPARED, PreparedTransaction
from barnabas.client.producer.stamp import Identity
from barnabas.client.producer.transaction_verdicts import ADD_PARTITIONS_UNTIL, V1_UNTIL
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.classic_groups import FindCoordinatorRequest
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

_TRANSACTIONS: Final = 1
_SEVERAL_FROM: Final = 4
_NO_IDENTITY: Final = Identity(-1, -1)
# From here on InitProducerId says who the producer was, so that it is not taken for another one.
_WHO_FROM: Final = 3
# From here on it asks for two-phase commit. (KIP-939)
_TWO_PHASE_FROM: Final = 6


class NoCoordinator(Refused):
    """Nobody says who the coordinator is: what it would have answered is not known."""


class TransactionCoordinator(Coordinator):
    """The broker that keeps a transactional id; found, and found again, as that of a group is."""

    async def _ask_around(self) -> int:
        key = self._group_id
        connection = await self._cluster.any_connection()
        version = connection.version_of(ApiKey.FIND_COORDINATOR)
        request = (
            FindCoordinatorRequest(key_type=_TRANSACTIONS, coordinator_keys=[key])
            if version >= _SEVERAL_FROM
            else FindCoordinatorRequest(key_type=_TRANSACTIONS, key=key)
        )
        timeout_ms = self._cluster.settings.request_timeout_ms
        answer = await connection.ask(request, timeout_ms=timeout_ms, version=version)
        told = next(iter(answer.coordinators), None) if version >= _SEVERAL_FROM else answer
        if told is None:
            raise BrokerUnavailable(
                [connection.address], f"its response has no entry for transactional.id {key}"
            )
        if told.error_code != ErrorCode.NONE:
            raise NoCoordinator(ErrorCode.of(told.error_code), about=f"transactional.id {key}")
        if told.node_id not in self._cluster.metadata.nodes:
            await self._cluster.refresh([])
        self._node = int(told.node_id)
        return self._node

    async def connection(self) -> Connection:
        node = await self._find()
        try:
            return await self._cluster.connection(node)
        except ClientError as error:
            self._forget(node, error)
            raise


class TransactionRequests:
    def __init__(
        self, cluster: Cluster, transactional_id: str, timeout_ms: int, *, two_phase: bool = False
    ) -> None:
        self._cluster = cluster
        self._id = transactional_id
        self._timeout_ms = timeout_ms
        self._two_phase = two_phase
        self._coordinator = TransactionCoordinator(cluster, transactional_id)
        # Of the group that offsets were sent to last.
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
        """Whether the cluster has version 2 of transactions, as the coordinator said on being connected."""
        return _speaks_v2(await self._coordinator.connection())

    async def init(self, was: Identity | None, *, keep: bool = False) -> tuple[Identity, PreparedTransaction]:
        """A producer id for this transactional id, or the next epoch if it `was` somebody before.

        With it, the transaction that was prepared under it, if there is one and it is to be kept.
        """
        connection = await self._coordinator.connection()
        if self._two_phase:
            _check_two_phase(connection)
        if connection.version_of(ApiKey.INIT_PRODUCER_ID) < _WHO_FROM:
            was = None
        producer_id, epoch = was or _NO_IDENTITY
        # If another broker is asked after all, one that does not know what is asked for here, then the
        # request is not written: a field that it lacks is not left out.
        answer = await self._coordinator.ask(
            InitProducerIdRequest(
                transactional_id=self._id,
                transaction_timeout_ms=self._timeout_ms,
                producer_id=producer_id,
                producer_epoch=epoch,
                enable2_pc=self._two_phase,
                keep_prepared_txn=keep,
            )
        )
        if keep and answer.error_code == ErrorCode.UNSUPPORTED_VERSION:
            raise _lacks(connection, "the broker cannot keep prepared transactions (Kafka 4.3 cannot either)")
        with_what = (
            "transaction.two.phase.commit.enable (the broker must enable it, too)"
            if self._two_phase
            else f"transaction.timeout.ms={self._timeout_ms}"
        )
        self._check(answer.error_code, f"transactional.id {self._id} with {with_what}")
        kept = (
            PreparedTransaction(answer.ongoing_txn_producer_id, answer.ongoing_txn_producer_epoch)
            if keep
            else NOTHING_PREPARED
        )
        return Identity(answer.producer_id, answer.producer_epoch), kept

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
        answer = await self._coordinator.ask(request, newest=ADD_PARTITIONS_UNTIL)
        told = {
            TopicPartition(topic.name, row.partition_index): row.partition_error_code
            for topic in answer.results_by_topic_v3_and_below
            for row in topic.results_by_partition
        }
        # Those that were not tried say nothing of the reason.
        not_tried = ErrorCode.OPERATION_NOT_ATTEMPTED
        for tp in sorted(tps, key=lambda each: told.get(each, ErrorCode.NONE) == not_tried):
            self._check(told.get(tp, ErrorCode.UNKNOWN_SERVER_ERROR), f"partition {tp} in a transaction")

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
        """In version 2, under which numbers the next transaction goes."""
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
        """Takes from `left` what was taken."""
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
            # A broker that leaves one out has not said that it was taken.
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
    """Before anything is asked: a broker that does not know of it would abort what is prepared."""
    if connection.version_of(ApiKey.INIT_PRODUCER_ID) < _TWO_PHASE_FROM:
        raise _lacks(connection, "the broker must set unstable.api.versions.enable=true")
    if not _speaks_v2(connection):
        # In version 1 all transactions of a producer have one epoch: what is stored would fit the next, too.
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
