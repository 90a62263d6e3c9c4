"""The blocking producer."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self, TypeVar

from barnabas.client.blocking.delivery import Delivery, QueuedRecord
from barnabas.client.blocking.mirror import mirrored, start_client
from barnabas.client.blocking.record_queue import RecordQueue
from barnabas.client.deadline import Deadline, close_timeout_ms
from barnabas.client.errors import Closed
from barnabas.client.ports import ClientPorts
from barnabas.client.producer.producer import Producer as AsyncProducer
from barnabas.client.producer.transaction import Group, Offsets, OpenTransaction, PreparedTransaction
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
        """Commit the offsets of a group atomically with the transaction."""
        # Call the blocking consumer in this thread, not in the producer's loop.
        who = group if isinstance(group, str | tuple) else group.group_metadata()
        self._run(lambda: self._inner.send_offsets(offsets, who))

    def prepare(self) -> PreparedTransaction:
        """Experimental: see Producer.prepare_transaction(). The block then no longer ends it."""
        return self._run(self._inner.prepare)

    def __enter__(self) -> "Transaction":
        self._run(self._inner.__aenter__)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._run(lambda: self._inner.__aexit__(kind, error, trace))


class Producer:
    """Started by the constructor. Thread-safe; records of each thread stay in order."""

    def __init__(
        self,
        settings: Mapping[str, object] | None = None,
        /,
        *,
        ports: ClientPorts | None = None,
        **named: object,
    ) -> None:
        self._thread, self._client = start_client(
            "producer", lambda: AsyncProducer(settings, ports=ports, **named)
        )
        self._queue = self._thread.run(self._new_queue())

    async def _new_queue(self) -> RecordQueue:
        return RecordQueue(self._thread, self._client)

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
        """Queue a record. Waits only for memory, and raises BufferFull after max.block.ms.

        The delivery reports all other errors, for example an unknown topic.
        """
        # Copy the headers: the user may change the list before the loop reads it.
        record = QueuedRecord(topic, value, key, partition, timestamp_ms, tuple(headers) if headers else ())
        delivery = Delivery(self._queue, record=record)
        self._queue.put(delivery, record)
        return delivery

    def send_table(
        self, topic: str, table: "pa.Table | pa.RecordBatch", *, partition: int | None = None
    ) -> list[Delivery]:
        """Queue the rows of an Arrow table after all earlier records; return one delivery per batch."""

        async def send() -> list[Delivery]:
            await self._queue.wait_until_forwarded()
            sent = await self._client.send_table(topic, table, partition=partition)
            return [Delivery(self._queue, inner=each) for each in sent]

        return self._thread.run(send())

    def flush(self, timeout: float | None = None) -> None:
        """Wait until all records are delivered or have failed; TimeoutError after `timeout` seconds."""

        async def flush() -> None:
            async with asyncio.timeout(timeout):
                await self._queue.wait_until_forwarded()
                await self._client.flush()

        self._thread.run(flush())

    partitions_for = mirrored(AsyncProducer.partitions_for)

    # Transactions

    def transaction(self) -> Transaction:
        """For `with`: begin on entry, commit on exit, abort if the block raises."""
        return Transaction(self._run_after_queue, self._client)

    def init_transactions(self, keep_prepared: bool = False) -> PreparedTransaction:
        """Get a producer id, and fence older producers of this transactional.id. begin() does so if needed.

        Experimental: with `keep_prepared` a prepared transaction is returned instead of aborted.
        """
        return self._thread.run(self._client.init_transactions(keep_prepared))

    def begin_transaction(self) -> None:
        self._run_after_queue(self._client.begin_transaction)

    def send_offsets_to_transaction(self, offsets: Offsets, group: Group) -> None:
        """Commit the offsets of a group atomically with the transaction."""
        self.transaction().send_offsets(offsets, group)

    def commit_transaction(self) -> None:
        """Flush all records and commit. MustAbort if any record failed: then nothing was committed."""
        self._run_after_queue(self._client.commit_transaction)

    def abort_transaction(self) -> None:
        """Abort: read_committed consumers see no record of the transaction."""
        self._run_after_queue(self._client.abort_transaction)

    def prepare_transaction(self) -> PreparedTransaction:
        """Experimental: flush all records. Then only complete, commit and abort are possible."""
        return self._run_after_queue(self._client.prepare_transaction)

    def complete_transaction(self, prepared: PreparedTransaction | str) -> None:
        """Experimental: commit if `prepared` is the prepared transaction, otherwise abort it."""
        self._run_after_queue(lambda: self._client.complete_transaction(prepared))

    def hand_over_transaction(self) -> OpenTransaction | None:
        """Flush all records, and leave the transaction open for another process to end.

        None if the transaction is empty. Otherwise this producer can only be closed: see the async Producer.
        """
        return self._run_after_queue(self._client.hand_over_transaction)

    def open_transaction_for_others(self) -> OpenTransaction:
        """Begin a transaction and hand it over empty, for other producers to join."""
        return self._run_after_queue(self._client.open_transaction_for_others)

    def join_transaction(self, opened: OpenTransaction) -> None:
        """Join the open transaction of another producer: see the rules at the async Producer."""
        self._run_after_queue(lambda: self._client.join_transaction(opened))

    def _run_after_queue(self, call: Callable[[], Awaitable[T]]) -> T:
        """Call it after all queued records are forwarded to the producer."""

        async def there() -> T:
            await self._queue.wait_until_forwarded()
            return await call()

        return self._thread.run(there())

    def close(self, timeout_ms: float | None = None) -> None:
        """Deliver all records, for at most `timeout_ms`; the rest fail with Closed.

        An open transaction is aborted, but not a prepared one or one that was handed over.
        """
        if self._thread.closed:
            return

        async def finish() -> None:
            deadline = None if timeout_ms is None else Deadline(timeout_ms)
            try:
                await self._queue.close(deadline)
            finally:
                await self._client.close(None if deadline is None else deadline.remaining_ms)

        try:
            self._thread.run(finish())
        except Closed:
            # Another thread has closed it.
            return
        finally:
            self._thread.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(close_timeout_ms(kind))
