"""The producer for scripts and threads."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, TypeVar

from barnabas.client.blocking.delivery import Delivery, Handed
from barnabas.client.blocking.handover import Handover
from barnabas.client.blocking.mirror import Blocking, mirrored
from barnabas.client.deadline import Deadline
from barnabas.client.ending import close_timeout_ms
from barnabas.client.errors import Closed
from barnabas.client.ports import ClientPorts
from barnabas.client.producer.handed_over import OpenTransaction
from barnabas.client.producer.prepared import PreparedTransaction
from barnabas.client.producer.producer import Producer as AsyncProducer
from barnabas.client.producer.transaction import Group, Offsets
from barnabas.client.producer.transaction import Transaction as AsyncTransaction
from barnabas.records.record import Header

if TYPE_CHECKING:
    import pyarrow as pa


T = TypeVar("T")


class _Runs(Protocol):
    def __call__(self, call: Callable[[], Awaitable[T]]) -> T: ...


class Transaction:
    """One transaction of a producer; `with` begins and ends it."""

    def __init__(self, run: _Runs, producer: AsyncProducer) -> None:
        self._run = run
        self._inner: AsyncTransaction = producer.transaction()

    def send_offsets(self, offsets: Offsets, group: Group) -> None:
        """Commit these offsets of a group with the transaction, or not at all."""
        # A consumer for scripts answers here, in its own thread, and not in the producer's loop.
        who = group if isinstance(group, str | tuple) else group.group_metadata()
        self._run(lambda: self._inner.send_offsets(offsets, who))

    def prepare(self) -> PreparedTransaction:
        """Experimental: see Producer.prepare_transaction(). The block does not end it any more."""
        return self._run(self._inner.prepare)

    def __enter__(self) -> "Transaction":
        self._run(self._inner.__aenter__)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._run(lambda: self._inner.__aexit__(kind, error, trace))


class Producer(Blocking[AsyncProducer]):
    """Ready when it is made. May be used by several threads at once; each one's records stay in order."""

    def __init__(
        self,
        settings: Mapping[str, object] | None = None,
        /,
        *,
        ports: ClientPorts | None = None,
        **named: object,
    ) -> None:
        super().__init__(lambda: AsyncProducer(settings, ports=ports, **named))
        self._handover = self._thread.run(self._new_handover())

    partitions_for = mirrored(AsyncProducer.partitions_for)

    async def _new_handover(self) -> Handover:
        return Handover(self._thread, self._client)

    def send(
        self,
        topic: str,
        value: bytes | None = None,
        key: bytes | None = None,
        *,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Sequence[Header] = (),
    ) -> Delivery:
        """Hand a record over. It waits for room only, at most max.block.ms, and then raises BufferFull.

        Everything else that is wrong, as a topic that is not there, the delivery tells.
        """
        # A copy: the loop looks at it later, and by then the user may have changed the list.
        record = Handed(topic, value, key, partition, timestamp_ms, tuple(headers) if headers else ())
        delivery = Delivery(self._handover, record=record)
        self._handover.put(delivery, record)
        return delivery

    def send_table(
        self, topic: str, table: "pa.Table | pa.RecordBatch", *, partition: int | None = None
    ) -> list[Delivery]:
        """The rows of an Arrow table, in order after what was sent before; one delivery a batch."""

        async def send() -> list[Delivery]:
            await self._handover.moved()
            sent = await self._client.send_table(topic, table, partition=partition)
            return [Delivery(self._handover, inner=each) for each in sent]

        return self._thread.run(send())

    def flush(self, timeout: float | None = None) -> None:
        """Wait until all that was sent is delivered or has failed; TimeoutError after so many seconds."""

        async def flush() -> None:
            async with asyncio.timeout(timeout):
                await self._handover.moved()
                await self._client.flush()

        self._thread.run(flush())

    # Transactions

    def transaction(self) -> Transaction:
        """For `with`: begun at its beginning, committed at its end, aborted if the block raises."""
        return Transaction(self._run_after_moving, self._client)

    def init_transactions(self, keep_prepared: bool = False) -> PreparedTransaction:
        """Get a producer id, and fence an older producer of this name. The first begin does it by itself.

        Experimental: with `keep_prepared` what the older one left open is not aborted, but returned.
        """
        return self._thread.run(self._client.init_transactions(keep_prepared))

    def begin_transaction(self) -> None:
        self._run_after_moving(self._client.begin_transaction)

    def send_offsets_to_transaction(self, offsets: Offsets, group: Group) -> None:
        """Commit these offsets of a group with the transaction, or not at all."""
        self.transaction().send_offsets(offsets, group)

    def prepare_transaction(self) -> PreparedTransaction:
        """Experimental: wait for all that was sent. Then only complete, commit and abort are possible."""
        return self._run_after_moving(self._client.prepare_transaction)

    def complete_transaction(self, prepared: PreparedTransaction | str) -> None:
        """Experimental: commit if this is the transaction that is prepared, and abort it otherwise."""
        self._run_after_moving(lambda: self._client.complete_transaction(prepared))

    def hand_over_transaction(self) -> OpenTransaction | None:
        """Wait for all that was sent, and leave the transaction open for somebody else to end.

        None if nothing is in it. Otherwise this producer can only be closed: see the async one.
        """
        return self._run_after_moving(self._client.hand_over_transaction)

    def open_transaction_for_others(self) -> OpenTransaction:
        """Begin a transaction and hand it over with nothing in it, for others to join."""
        return self._run_after_moving(self._client.open_transaction_for_others)

    def join_transaction(self, opened: OpenTransaction) -> None:
        """Write into the open transaction of another producer: the async one says by which rules."""
        self._run_after_moving(lambda: self._client.join_transaction(opened))

    def commit_transaction(self) -> None:
        """Wait for all that was sent, and commit. MustAbort if any of it failed: nothing was committed."""
        self._run_after_moving(self._client.commit_transaction)

    def abort_transaction(self) -> None:
        """Who reads committed records sees none of what was sent."""
        self._run_after_moving(self._client.abort_transaction)

    def _run_after_moving(self, call: Callable[[], Awaitable[T]]) -> T:
        """After what was sent before it, which belongs to this transaction or to none."""

        async def there() -> T:
            await self._handover.moved()
            return await call()

        return self._thread.run(there())

    def close(self, timeout_ms: float | None = None) -> None:
        """Deliver what was sent, within the time if one is given; what is left then fails with Closed.

        A transaction that is open is aborted, but not if it is prepared or handed over.
        """
        if self._thread.closed:
            return

        async def finish() -> None:
            deadline = None if timeout_ms is None else Deadline(timeout_ms)
            try:
                await self._handover.close(deadline)
            finally:
                await self._client.close(None if deadline is None else deadline.remaining_ms)

        try:
            self._thread.run(finish())
        except Closed:
            # Another thread closes it, too, and was faster.
            return
        finally:
            self._thread.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(close_timeout_ms(kind))
