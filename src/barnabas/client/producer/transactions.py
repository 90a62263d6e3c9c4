"""Begins a producer's transactions, adds partitions and offsets to them, and handles their errors.

transaction_state.py is the state machine, transaction_verdicts.py interprets error codes. This module,
initializing.py and endings.py carry the decisions out.
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
from barnabas.client.producer.additions import Additions
from barnabas.client.producer.batch import Batch
from barnabas.client.producer.endings import Endings
from barnabas.client.producer.handing_over import HandingOver
from barnabas.client.producer.initializing import Initializing
from barnabas.client.producer.outcomes import SOON_MS
from barnabas.client.producer.partition_queue import PartitionQueue
from barnabas.client.producer.settings import ProducerSettings
from barnabas.client.producer.stamp import Identity
from barnabas.client.producer.transaction_errors import (
    MustAbort,
    NoTransaction,
    OffsetsInDoubt,
    SequenceLost,
    TransactionAborted,
    TransactionError,
    TransactionOpen,
    TransactionsFailed,
)
from barnabas.client.producer.transaction_requests import TransactionRequests
from barnabas.client.producer.transaction_state import Phase, TransactionState
from barnabas.client.producer.transaction_verdicts import Verdict, verdict_within
from barnabas.client.shared import SharedWork
from barnabas.protocol.error_codes import ErrorCode

if TYPE_CHECKING:
    from barnabas.client.producer.sender import Sender

logger = logging.getLogger(__name__)
T = TypeVar("T")

# The coordinator's transaction timeout for a producer with two-phase commit.
UNLIMITED_MS: Final = 0x7FFFFFFF
# The group does not know this member or generation: another member may own its partitions.
_NOT_THE_MEMBER: Final = frozenset(
    {
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.REBALANCE_IN_PROGRESS,
    }
)


class Transactions:
    """Create it for a producer with a transactional.id, in a running loop.

    `on_gate` is called with whether records are accepted now.
    """

    def __init__(
        self,
        cluster: Cluster,
        settings: ProducerSettings,
        sender: "Sender",
        on_gate: Callable[[bool], None],
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
        self.additions = Additions(self)
        self.initializing = Initializing(self)
        self.endings = Endings(self)
        self.handing_over = HandingOver(self)
        self._clock = cluster.ports.clock
        self._on_gate = on_gate
        self._backoff = Backoff(
            first_ms=min(SOON_MS, max(1, settings.retry_backoff_ms)),
            max_ms=settings.retry_backoff_max_ms,
            rng=cluster.ports.rng,
        )
        self._dropping = False
        on_gate(False)

    async def close(self) -> None:
        """Stop all tasks. An open transaction stays open until the coordinator aborts it."""
        await self.shared.close()
        await self.requests.close()

    def changed(self) -> None:
        self._on_gate(self.state.phase is Phase.OPEN)

    async def ask(self, what: str, attempt: Callable[[], Awaitable[T]], deadline: Deadline) -> T:
        """Retry until a final response or the deadline."""
        return await retry(attempt, deadline=deadline, backoff=self._backoff, what=what)

    def deadline(self) -> Deadline:
        return Deadline(self.settings.max_block_ms)

    def now_ms(self) -> int:
        return self._clock.monotonic_ms()

    # Begin

    async def begin(self) -> None:
        """Begin a transaction after the previous one; repeat its EndTxn if the outcome is unknown."""
        if self.state.is_unended or self.state.phase is Phase.PREPARED:
            raise TransactionOpen(self.state.id)
        await self.endings.known()
        await self.initializing.run()
        is_v2 = await self.ask("transaction.version", self.requests.speaks_v2, self.deadline())
        self.state.begin(self.now_ms(), is_v2=is_v2)
        self.changed()

    # Partitions and offsets

    def admits(self, queue: PartitionQueue) -> bool:
        """Whether batches of this partition may be sent now. If not, the queue is scheduled later."""
        state = self.state
        if not state.sends:
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
            self.check_still(number)
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
            self.check_still(number)
            raise self._offsets_failed(error, left) from error
        finally:
            if not taken and self.state.number == number:
                # A request may still be in flight. A new epoch makes it harmless.
                self.state.needs_epoch = True
                if self.state.sends:
                    self.must_abort(OffsetsInDoubt(group.group_id))

    def _offsets_failed(self, error: ClientError, left: Collection[TopicPartition]) -> TransactionError:
        if not isinstance(error, Refused):
            return self.must_abort(error)
        if error.code in _NOT_THE_MEMBER:
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
            self.check_still(number)
            await self.requests.add_group(identity, group.group_id)

        async def commit_offsets() -> None:
            self.check_still(number)
            await self.requests.commit_offsets(identity, group, left, is_v2=state.is_v2)

        if not state.is_v2 and group.group_id not in state.groups:
            await self.ask("ADD_OFFSETS_TO_TXN", add_group, deadline)
            state.exists = True
            state.groups.add(group.group_id)
        await self.ask("TXN_OFFSET_COMMIT", commit_offsets, deadline)

    def check_still(self, number: int) -> None:
        """Raise unless transaction `number` is open: a call that waited must not continue in another."""
        if self.state.number != number or not self.state.sends:
            self.state.check("this call")
            raise NoTransaction("this call", "its transaction has ended in the meantime")

    # Errors

    def refused(self, error: Refused) -> TransactionError:
        """Return the user's error for a rejected addition to the transaction."""
        if not error.retriable:
            match verdict_within(error.code, is_v2=self.state.is_v2):
                case Verdict.FENCED:
                    return self.fenced()
                case Verdict.BROKEN:
                    return self.broken(error)
                case Verdict.FORGOTTEN:
                    self.state.is_forgotten = True
        return self.must_abort(error)

    def must_abort(
        self, because: BaseException, *, tp: TopicPartition | None = None, records: int = 0
    ) -> MustAbort:
        trouble = self.state.must_abort(because, self.now_ms(), tp=tp, records=records)
        self.changed()
        self._drop_soon()
        return trouble

    def fenced(self) -> TransactionError:
        logger.warning("producer fenced transactional_id=%s", self.state.id)
        error = self.state.fence(self.now_ms())
        self.changed()
        self._drop_soon()
        return error

    def broken(self, because: ClientError) -> TransactionError:
        error = TransactionsFailed(self.state.id, because, in_doubt=self.state.may_be_committed)
        self.state.break_down(error)
        self.changed()
        self._drop_soon()
        return error

    def batch_failed(self, batch: Batch, error: Exception) -> None:
        """A batch of the transaction failed, or its outcome is unknown."""
        if batch.numbered:
            self.state.needs_epoch = True
        if not self.state.sends:
            return
        if isinstance(error, Refused) and error.code is not ErrorCode.INVALID_PRODUCER_EPOCH:
            verdict = verdict_within(error.code, is_v2=self.state.is_v2)
            if verdict is Verdict.FENCED:
                self.fenced()
                return
            if verdict is Verdict.BROKEN:
                self.broken(error)
                return
        self.must_abort(error, tp=batch.queue.tp, records=batch.count)

    def send_failed(self, error: BaseException, number: int | None = None) -> None:
        """A record was not taken: even if the user ignores that, the rest must not be committed."""
        if isinstance(error, TransactionError | NoTransaction) or number not in (None, self.state.number):
            return
        if self.state.sends:
            self.must_abort(error)

    def _drop_soon(self) -> None:
        """Fail unsent batches in the next loop iteration: the caller may be iterating over them."""
        if not self._dropping:
            self._dropping = True
            asyncio.get_running_loop().call_soon(self._drop_rest)

    def _drop_rest(self) -> None:
        self._dropping = False
        if not self.state.sends:
            self.drop()

    def drop(self) -> None:
        """Fail all batches that are not in flight."""
        state = self.state
        error = state.broken or state.trouble or TransactionAborted(state.id)
        for batch in list(self.sender.accumulator.incomplete):
            # Failing one batch may have failed others.
            if not batch.in_flight and not batch.done:
                self.sender.outcomes.fail(batch, error)

    # The interface of IdentityKeeper: see identity.py

    @property
    def current(self) -> Identity | None:
        return self.state.identity

    def want(self, instead_of: Identity | None) -> None:
        """The producer id can no longer be used in a partition: the next transaction gets a new epoch."""
        self.state.needs_epoch = True
        if self.state.sends:
            self.must_abort(SequenceLost())
