"""The transactions of a producer: initialize, begin or join, add partitions and offsets, and handle errors.

transaction_state.py is the state machine, transaction_errors.py interprets error codes,
transaction_completion.py ends transactions.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import TYPE_CHECKING, Final, TypeVar

from barnabas.base.ids import TopicPartition
from barnabas.client.cluster import Cluster
from barnabas.client.deadline import Backoff, Deadline, retry
from barnabas.client.errors import ClientError, Closed, Refused
from barnabas.client.group.errors import CommitFailed
from barnabas.client.group.offsets import Committer, OffsetAndMetadata
from barnabas.client.producer.batch import Batch
from barnabas.client.producer.outcomes import CONCURRENT_TRANSACTIONS_RETRY_MS
from barnabas.client.producer.queues import PartitionQueue
from barnabas.client.producer.settings import ProducerSettings
from barnabas.client.producer.stamp import Identity
from barnabas.client.producer.transaction import OpenTransaction, PreparedTransaction
from barnabas.client.producer.transaction_completion import TransactionCompletion
from barnabas.client.producer.transaction_errors import (
    FENCED,
    NOT_THE_MEMBER,
    MustAbort,
    NoTransaction,
    OffsetsInDoubt,
    SequenceLost,
    TransactionAborted,
    TransactionError,
    TransactionOpen,
    TransactionsFailed,
    TwoPhaseCommitOff,
    Verdict,
    verdict_within,
)
from barnabas.client.producer.transaction_requests import TransactionRequests
from barnabas.client.producer.transaction_state import Phase, TransactionState
from barnabas.client.shared import SharedWork
from barnabas.protocol.error_codes import ErrorCode

if TYPE_CHECKING:
    from barnabas.client.producer.sender import Sender

logger = logging.getLogger(__name__)
T = TypeVar("T")

# The coordinator's transaction timeout for a producer with two-phase commit.
UNLIMITED_MS: Final = 0x7FFFFFFF
_INIT: Final = "init"


class TransactionManager:
    """Create it for a producer with a transactional.id, in a running loop.

    `on_transaction` is called with whether records are accepted now.
    """

    def __init__(
        self,
        cluster: Cluster,
        settings: ProducerSettings,
        sender: "Sender",
        on_transaction: Callable[[bool], None],
    ) -> None:
        assert settings.transactional_id is not None, "the producer is not transactional"
        two_phase = settings.transaction_two_phase_commit_enable
        self.state = TransactionState(
            settings.transactional_id, UNLIMITED_MS if two_phase else settings.transaction_timeout_ms
        )
        self.settings = settings
        self.sender = sender
        self.shared = SharedWork()
        self.requests = TransactionRequests(
            cluster, settings.transactional_id, settings.transaction_timeout_ms, two_phase=two_phase
        )
        # Serializes send_offsets(); a commit waits for it.
        self.offsets_turn = asyncio.Lock()
        self.additions = PartitionAdditions(self)
        self.completion = TransactionCompletion(self)
        self._clock = cluster.ports.clock
        self._on_transaction = on_transaction
        self._backoff = Backoff(
            first_ms=min(CONCURRENT_TRANSACTIONS_RETRY_MS, max(1, settings.retry_backoff_ms)),
            max_ms=settings.retry_backoff_max_ms,
            rng=cluster.ports.rng,
        )
        self._dropping = False
        on_transaction(False)

    async def close(self) -> None:
        """Stop all tasks. An open transaction stays open until the coordinator aborts it."""
        await self.shared.close()
        await self.requests.close()

    def changed(self) -> None:
        self._on_transaction(self.state.phase is Phase.OPEN)

    async def ask(self, what: str, attempt: Callable[[], Awaitable[T]], deadline: Deadline) -> T:
        """Retry until a final response or the deadline."""
        return await retry(attempt, deadline=deadline, backoff=self._backoff, what=what)

    def deadline(self) -> Deadline:
        return Deadline(self.settings.max_block_ms)

    def now_ms(self) -> int:
        return self._clock.monotonic_ms()

    # Initialize, begin and join

    async def initialize(self, *, keep_prepared: bool = False) -> PreparedTransaction:
        """Get a producer id unless there is one.

        The coordinator aborts a transaction that a predecessor left open. With two-phase commit it can be
        kept: it is returned, and must be completed before the next one begins. (KIP-939, experimental)
        """
        self.state.check_usable()
        if self.state.phase is Phase.HANDED_OVER:
            # A new epoch would fence the processes that write into or end the transaction.
            raise NoTransaction("another transaction", self.state.phase.value)
        if keep_prepared:
            self.check_two_phase("init_transactions(keep_prepared=True)")
        if self.state.phase is Phase.NEW:
            await self.shared.join(_INIT, lambda: self._initialize(keep_prepared=keep_prepared))
        return self.state.prepared

    def check_two_phase(self, what: str) -> None:
        if not self.settings.transaction_two_phase_commit_enable:
            raise TwoPhaseCommitOff(what)

    async def _initialize(self, *, keep_prepared: bool) -> None:
        previous = self.state.identity
        try:
            identity, prepared = await self.ask(
                "INIT_PRODUCER_ID",
                lambda: self.requests.init(previous, keep_prepared=keep_prepared),
                self.deadline(),
            )
        except Refused as error:
            if error.code in FENCED:
                raise self.fence() from error
            raise
        logger.info("producer id assigned transactional_id=%s id=%d epoch=%d", self.state.id, *identity)
        self.state.initialized(identity)
        if prepared:
            logger.info("prepared transaction kept transactional_id=%s prepared=%s", self.state.id, prepared)
            self.state.adopt_prepared(prepared, self.now_ms())

    async def begin(self) -> None:
        """Begin a transaction after the previous one; repeat its EndTxn if the outcome is unknown."""
        if self.state.is_unended or self.state.phase is Phase.PREPARED:
            raise TransactionOpen(self.state.id)
        await self.completion.wait_until_ended()
        await self.initialize()
        is_v2 = await self._is_v2()
        self.state.begin(self.now_ms(), is_v2=is_v2)
        self.changed()

    async def _is_v2(self) -> bool:
        return await self.ask("transaction.version", self.requests.speaks_v2, self.deadline())

    async def open_for_others(self) -> OpenTransaction:
        """Begin a transaction under an unused epoch and hand it over at once."""
        await self.begin()
        if not self.state.is_fresh:
            # In version 1 all transactions share one epoch. A joined producer counts from 0, so a partition
            # that has seen these sequences under this epoch would drop the records as duplicates.
            self.state.begin_anew()
            self.changed()
            await self.begin()
            assert self.state.is_fresh, "a new epoch is fresh"
        self.state.flush("open_transaction_for_others()")
        self.changed()
        return self.state.hand_over()

    async def join(self, opened: OpenTransaction) -> None:
        """Continue a transaction as if it had begun here. The first write fails if it is no longer open.

        The coordinator is not involved: any process with the OpenTransaction can write into it and end it. If
        nobody ends it, the coordinator aborts it after its timeout, or when the next producer initializes the
        transactional id.
        """
        if opened.transactional_id != self.state.id:
            raise ValueError(f"cannot join the {opened}: this producer has transactional.id {self.state.id}")
        if opened.producer_id < 0 or opened.epoch < 0:
            raise ValueError(f"invalid producer id or epoch: {opened}")
        self._check_uninitialized()
        is_v2 = await self._is_v2()
        self._check_uninitialized()
        identity = Identity(opened.producer_id, opened.epoch)
        logger.info("transaction joined transactional_id=%s id=%d epoch=%d", self.state.id, *identity)
        self.state.join(identity, self.now_ms(), is_v2=is_v2)
        self.changed()

    def _check_uninitialized(self) -> None:
        """Raise if this producer has called InitProducerId: that fenced the transaction it would join."""
        phase = self.state.phase
        self.state.check_usable()
        if phase is not Phase.NEW or self.shared.is_running(_INIT):
            why = "this producer is already initialized" if phase in (Phase.NEW, Phase.READY) else None
            raise NoTransaction("join", why or phase.value)

    # Partitions and offsets

    def admits(self, queue: PartitionQueue) -> bool:
        """Whether batches of this partition may be sent now. If not, the queue is scheduled later."""
        state = self.state
        if not state.may_send:
            self._drop_soon()
            return False
        if queue.tp in state.partitions:
            return True
        if not state.is_v2:
            self.additions.want(queue)
            return False
        # Produce adds the partition implicitly.
        state.partitions.add(queue.tp)
        state.may_exist = True
        return True

    async def send_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: Committer
    ) -> None:
        """Add offsets to the transaction; MustAbort if that failed or is in doubt."""
        self.state.check("send_offsets()")
        number = self.state.number
        async with self.offsets_turn:
            self.check_same_transaction(number)
            if offsets:
                await self._send_offsets(dict(offsets), group, number)

    async def _send_offsets(
        self, left: dict[TopicPartition, OffsetAndMetadata], group: Committer, number: int
    ) -> None:
        self.state.may_exist = True
        taken = False
        try:
            await self._add_offsets(left, group, number)
            taken = True
        except (Closed, TransactionError, NoTransaction):
            raise
        except ClientError as error:
            # The transaction may have ended: its error must not affect the next one.
            self.check_same_transaction(number)
            raise self._offsets_failed(error, left) from error
        finally:
            if not taken and self.state.number == number:
                # A request may still be in flight. A new epoch makes it harmless.
                self.state.needs_epoch = True
                if self.state.may_send:
                    self.must_abort(OffsetsInDoubt(group.group_id))

    def _offsets_failed(self, error: ClientError, left: Collection[TopicPartition]) -> TransactionError:
        if not isinstance(error, Refused):
            return self.must_abort(error)
        if error.code in NOT_THE_MEMBER:
            why = f"the member id or generation is stale: {error.code.name}"
            return self.must_abort(CommitFailed(left, why))
        return self.refused(error)

    async def _add_offsets(
        self, left: dict[TopicPartition, OffsetAndMetadata], group: Committer, number: int
    ) -> None:
        state, deadline = self.state, self.deadline()
        identity = state.identity
        assert identity is not None, "an open transaction has a producer id"

        async def add_group() -> None:
            self.check_same_transaction(number)
            await self.requests.add_group(identity, group.group_id)

        async def commit_offsets() -> None:
            self.check_same_transaction(number)
            await self.requests.commit_offsets(identity, group, left, is_v2=state.is_v2)

        if not state.is_v2 and group.group_id not in state.groups:
            await self.ask("ADD_OFFSETS_TO_TXN", add_group, deadline)
            state.exists = True
            state.groups.add(group.group_id)
        await self.ask("TXN_OFFSET_COMMIT", commit_offsets, deadline)

    def check_same_transaction(self, number: int) -> None:
        """Raise unless transaction `number` is open: a call that waited must not continue in another."""
        if self.state.number != number or not self.state.may_send:
            self.state.check("this call")
            raise NoTransaction("this call", "its transaction has ended in the meantime")

    # Errors

    def refused(self, error: Refused) -> TransactionError:
        """Return the user's error for a rejected addition to the transaction."""
        if not error.retriable:
            match verdict_within(error.code, is_v2=self.state.is_v2):
                case Verdict.FENCED:
                    return self.fence()
                case Verdict.BROKEN:
                    return self.fail(error)
                case Verdict.FORGOTTEN:
                    self.state.is_forgotten = True
        return self.must_abort(error)

    def must_abort(
        self, because: BaseException, *, tp: TopicPartition | None = None, records: int = 0
    ) -> MustAbort:
        error = self.state.must_abort(because, self.now_ms(), tp=tp, records=records)
        self.changed()
        self._drop_soon()
        return error

    def fence(self) -> TransactionError:
        logger.warning("producer fenced transactional_id=%s", self.state.id)
        error = self.state.fence(self.now_ms())
        self.changed()
        self._drop_soon()
        return error

    def fail(self, because: ClientError) -> TransactionError:
        error = TransactionsFailed(self.state.id, because, in_doubt=self.state.may_be_committed)
        self.state.fail(error)
        self.changed()
        self._drop_soon()
        return error

    def batch_failed(self, batch: Batch, error: Exception) -> None:
        """A batch of the transaction failed, or its outcome is unknown."""
        if batch.numbered:
            self.state.needs_epoch = True
        if not self.state.may_send:
            return
        if isinstance(error, Refused) and error.code is not ErrorCode.INVALID_PRODUCER_EPOCH:
            verdict = verdict_within(error.code, is_v2=self.state.is_v2)
            if verdict is Verdict.FENCED:
                self.fence()
                return
            if verdict is Verdict.BROKEN:
                self.fail(error)
                return
        self.must_abort(error, tp=batch.queue.tp, records=batch.count)

    def send_failed(self, error: BaseException, number: int | None = None) -> None:
        """A record was not taken: even if the user ignores that, the rest must not be committed."""
        if isinstance(error, TransactionError | NoTransaction) or number not in (None, self.state.number):
            return
        if self.state.may_send:
            self.must_abort(error)

    def _drop_soon(self) -> None:
        """Fail unsent batches in the next loop iteration: the caller may be iterating over them."""
        if not self._dropping:
            self._dropping = True
            asyncio.get_running_loop().call_soon(self._drop_rest)

    def _drop_rest(self) -> None:
        self._dropping = False
        if not self.state.may_send:
            self.drop()

    def drop(self) -> None:
        """Fail all batches that are not in flight."""
        state = self.state
        error = state.fatal_error or state.abort_reason or TransactionAborted(state.id)
        for batch in list(self.sender.accumulator.incomplete):
            # Failing one batch may have failed others.
            if not batch.in_flight and not batch.done:
                self.sender.outcomes.fail(batch, error)

    # The interface of IdentityKeeper (identity.py), which a producer without transactions uses

    @property
    def current(self) -> Identity | None:
        return self.state.identity

    def want(self, instead_of: Identity | None) -> None:
        """The producer id can no longer be used in a partition: the next transaction gets a new epoch."""
        self.state.needs_epoch = True
        if self.state.may_send:
            self.must_abort(SequenceLost())


class PartitionAdditions:
    """AddPartitionsToTxn, which version 1 of transactions requires before the first batch of a partition.

    One request is in flight at a time and carries all partitions requested by then. A partition's batches
    wait in its queue, which is scheduled once the coordinator has added the partition.
    """

    def __init__(self, manager: TransactionManager) -> None:
        self._manager = manager
        self._wanted: dict[PartitionQueue, None] = {}
        self._task: asyncio.Task[None] | None = None

    def want(self, queue: PartitionQueue) -> None:
        self._wanted[queue] = None
        if self._task is None:
            self._task = self._manager.sender.start_task(self._run())

    async def stop(self) -> None:
        """Stop adding partitions: a request after the end of the transaction would begin another one."""
        self._wanted.clear()
        if self._task is not None:
            # A request may be in flight. A new epoch makes it harmless.
            self._manager.state.needs_epoch = True
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None

    async def _run(self) -> None:
        try:
            while self._wanted:
                queues, self._wanted = list(self._wanted), {}
                await self._add(queues)
        finally:
            self._task = None

    async def _add(self, queues: list[PartitionQueue]) -> None:
        manager, state = self._manager, self._manager.state
        identity = state.identity
        if not state.may_send or identity is None:
            return
        tps = {queue.tp for queue in queues}
        state.may_exist = True
        try:
            await manager.ask(
                "ADD_PARTITIONS_TO_TXN",
                lambda: manager.requests.add_partitions(identity, tps),
                manager.deadline(),
            )
        except Closed:
            return
        except ClientError as error:
            state.needs_epoch = True
            if isinstance(error, Refused):
                manager.refused(error)
            else:
                manager.must_abort(error)
            return
        state.exists = True
        state.partitions |= tps
        for queue in queues:
            if queue.batches:
                manager.sender.schedule(queue)
