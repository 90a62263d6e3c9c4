"""The public producer.

    async with Producer(bootstrap_servers="localhost:9092") as producer:
        delivery = await producer.send("orders", b"value", key=b"k")
        placed = await delivery

send() waits only for the metadata of a new topic and for buffer memory. Await the returned Delivery for the
outcome of the record. Records of a partition are written in the order in which they were sent.

    async with Producer(bootstrap_servers="localhost:9092", transactional_id="orders-1") as producer:
        async with producer.transaction() as transaction:
            await producer.send("orders", b"value")
            await transaction.send_offsets(consumer.delivered, consumer)
"""

import asyncio
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from barnabas.client.cluster import Cluster
from barnabas.client.deadline import Deadline, close_timeout_ms
from barnabas.client.errors import Closed
from barnabas.client.ports import ClientPorts
from barnabas.client.producer.accumulator import RECORDS_PER_YIELD
from barnabas.client.producer.delivery import BatchDelivery, Delivered, Delivery
from barnabas.client.producer.errors import NotStarted, ProducerCrashed, TopicNotReady
from barnabas.client.producer.sender import Sender
from barnabas.client.producer.settings import producer_settings
from barnabas.client.producer.transaction import (
    Group,
    Offsets,
    OpenTransaction,
    PreparedTransaction,
    Transaction,
)
from barnabas.client.producer.transaction_errors import NotTransactional
from barnabas.client.shared import to_its_end
from barnabas.records.record import Header

if TYPE_CHECKING:
    import pyarrow as pa

    from barnabas.client.producer.transaction_manager import TransactionManager

__all__ = ["BatchDelivery", "Delivered", "Delivery", "Producer"]


class Producer:
    """Settings by Kafka's names in a mapping, or as keywords with underscores for dots."""

    def __init__(
        self,
        settings: Mapping[str, object] | None = None,
        /,
        *,
        ports: ClientPorts | None = None,
        **named: object,
    ) -> None:
        self.settings, self._partitioner = producer_settings(settings, named)
        self._ports = ports
        self._cluster: Cluster | None = None
        self._sender: Sender | None = None
        self._closing = False
        # Whether records are rejected: the producer is closing, or transactional without an open transaction.
        self._rejects_records = False
        self._crash: ProducerCrashed | None = None

    async def start(self) -> None:
        """Connect to a broker; BrokerUnavailable or NotKafka if default.api.timeout.ms passes first."""
        if self._closing:
            raise Closed("the producer")
        assert self._cluster is None, "the producer is already started"
        self._cluster = Cluster(self.settings, self._ports)
        sender = Sender(
            self._cluster,
            self.settings,
            self._partitioner,
            on_crash=self._crashed,
            on_transaction=self._transaction_changed,
        )
        try:
            await self._cluster.start()
        except BaseException:
            # The cluster has closed itself, so start() may be called again.
            self._cluster = None
            raise
        sender.start()
        self._sender = sender

    async def __aenter__(self) -> "Producer":
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close(close_timeout_ms(kind))

    # Records

    async def send(
        self,
        topic: str,
        value: bytes | None = None,
        key: bytes | None = None,
        *,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Sequence[Header] = (),
    ) -> Delivery:
        """Queue a record. BufferFull or UnknownTopic after max.block.ms. If this raises, it was not taken."""
        sender = self._sender
        if sender is None or self._rejects_records:
            sender = self._accepting()
        accumulator = sender.accumulator
        if accumulator.until_yield <= 0:
            # Yield, so that batches are sent while more records come. All concurrent callers yield here,
            # so records keep their order.
            await asyncio.sleep(0)
            accumulator.until_yield = RECORDS_PER_YIELD
            if self._rejects_records:
                self._accepting()
        try:
            delivery = accumulator.append(topic, value, key, partition, timestamp_ms, headers)
        except Exception as error:
            self._not_taken(error)
            raise
        if delivery is None:
            return await self._send_waiting(topic, value, key, partition, timestamp_ms, headers)
        return delivery

    def try_send(
        self,
        topic: str,
        value: bytes | None = None,
        key: bytes | None = None,
        *,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Sequence[Header] = (),
    ) -> Delivery:
        """Like send(), but raise BufferFull or TopicNotReady instead of waiting."""
        sender = self._accepting()
        try:
            delivery = sender.accumulator.append(topic, value, key, partition, timestamp_ms, headers)
        except Exception as error:
            self._not_taken(error)
            raise
        if delivery is not None:
            return delivery
        accumulator = sender.accumulator
        into = accumulator.topics.get(topic)
        if into is not None and into.known and (partition is None or 0 <= partition < into.count):
            raise accumulator.memory.full(accumulator.size_of(value, key, headers), 0)
        sender.look_up_soon(topic)
        raise TopicNotReady(topic)

    async def send_table(
        self, topic: str, table: "pa.Table | pa.RecordBatch", *, partition: int | None = None
    ) -> list[BatchDelivery]:
        """Queue the rows of an Arrow table: column value, optionally key, timestamp, headers, partition.

        Return one delivery per batch. If buffer memory is not free within max.block.ms, `deliveries` of the
        BufferFull error are those of the rows taken before.
        """
        transactions = self._accepting().transactions
        number = 0 if transactions is None else transactions.state.number
        try:
            # Imported late: it needs pyarrow.
            from barnabas.client.producer.tables import TableSender

            return await TableSender(self._running, self._accepting, number).send(topic, table, partition)
        except BaseException as error:
            # Some rows may have been taken; a partial table must not be committed.
            self._not_taken(error, number)
            raise

    async def flush(self) -> None:
        """Send all queued records at once, and wait until each is delivered or has failed."""
        await self._running().flush()

    async def partitions_for(self, topic: str) -> int:
        """Return the partition count of a topic. A missing topic is created as by send(), or UnknownTopic."""
        deadline = Deadline(self.settings.max_block_ms)
        return (await self._running().wait_for_topic(topic, None, deadline)).count

    @property
    def buffered_bytes(self) -> int:
        """Bytes of buffer.memory in use."""
        return 0 if self._sender is None else self._sender.accumulator.memory.used

    # Transactions

    def transaction(self) -> Transaction:
        """For `async with`: begin on entry, commit on exit, abort if the block raises."""
        return Transaction(self)

    async def init_transactions(self, keep_prepared: bool = False) -> PreparedTransaction:
        """Get a producer id, and fence older producers of this transactional.id. begin() does so if needed.

        A transaction that an older producer left open is aborted. With `keep_prepared` (experimental, for
        two-phase commit) it is kept and returned, and must be completed before the next one begins.
        """
        return await self._transactions().initialize(keep_prepared=keep_prepared)

    async def begin_transaction(self) -> None:
        await self._transactions().begin()

    async def send_offsets_to_transaction(self, offsets: Offsets, group: Group) -> None:
        """Commit the offsets of a group atomically with the transaction."""
        from barnabas.client.group.offsets import Committer, offsets_given

        transactions = self._transactions()
        if isinstance(group, str):
            group = Committer(group, -1, "", None)
        committer = group if isinstance(group, Committer) else group.group_metadata()
        await transactions.send_offsets(offsets_given(offsets), committer)

    async def commit_transaction(self) -> None:
        """Flush all records and commit. MustAbort if any record failed: then nothing was committed.

        After OutcomeUnknown, repeat the call.
        """
        await self._transactions().completion.commit()

    async def abort_transaction(self) -> None:
        """Drop unsent records and abort: read_committed consumers see no record of the transaction."""
        await self._transactions().completion.abort()

    async def prepare_transaction(self) -> PreparedTransaction:
        """Experimental: flush all records, and guarantee that the transaction can be committed or aborted.

        From here on only complete, commit and abort are possible, in this producer or in a later one with the
        same transactional.id. Store the result atomically with the changes of the external system. MustAbort
        if any record failed.
        """
        return await self._transactions().completion.prepare()

    async def complete_transaction(self, prepared: PreparedTransaction | str) -> None:
        """Experimental: commit if `prepared` is the prepared transaction, otherwise abort it.

        `prepared` is the stored value, or its text. After OutcomeUnknown, repeat the call.
        """
        if isinstance(prepared, str):
            prepared = PreparedTransaction.parse(prepared)
        await self._transactions().completion.complete(prepared)

    async def hand_over_transaction(self) -> OpenTransaction | None:
        """Flush all records, and leave the transaction open for another process to end.

        Admin.end_transactions() ends it, in any process. After this call the producer can only be closed,
        which does not end the transaction. MustAbort if any record failed. None if the transaction is empty:
        nothing has to be ended, and this producer continues as after a commit. A joined transaction never
        returns None.
        """
        return await self._transactions().completion.hand_over()

    async def open_transaction_for_others(self) -> OpenTransaction:
        """Begin a transaction and hand it over empty, for other producers to join.

        After this call the producer can only be closed, which does not end the transaction.
        """
        return await self._transactions().open_for_others()

    async def join_transaction(self, opened: OpenTransaction) -> None:
        """Join the open transaction of another producer, instead of init and begin.

        transactional.id must equal that of `opened`, otherwise ValueError. Everything else works as in any
        open transaction; close() aborts it for all producers, unless it was handed over. Rules for joining:

        - Only one of the producers writes to a partition, and joins only once. All of them count sequences
          from 0, so the records of a second one would be rejected, or dropped silently as duplicates.
        - End the transaction only after all others have handed it over. Later records are rejected; in
          version 1 of transactions they begin another one, which the next EndTxn under this epoch ends, too.
        - After an abort no producer can continue, and no record of any producer is visible.
        """
        await self._transactions().join(opened)

    # Close

    async def close(self, timeout_ms: float | None = None) -> None:
        """Deliver all records, for at most `timeout_ms`; the rest fail with Closed.

        An open transaction is aborted, but not a prepared one or one that was handed over. Without a timeout,
        close() ends after delivery.timeout.ms at the latest. If cancelled, it closes without delivering.
        """
        self._closing = self._rejects_records = True
        try:
            if self._sender is not None and self._crash is None:
                self._sender.accumulator.memory.refuse_waiters(lambda: Closed("the producer"))
                async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000):
                    if self._sender.transactions is not None:
                        await self._sender.transactions.completion.end_all()
                    await self._sender.flush()
                    await self._sender.confirm_unacknowledged()
        except TimeoutError:
            pass
        finally:
            await to_its_end(self._end())

    async def _end(self) -> None:
        if self._sender is not None:
            await self._sender.close()
        await self._disconnect()
        if self._sender is not None:
            self._sender.fail_all(lambda: Closed("the producer"))

    async def _disconnect(self) -> None:
        if self._cluster is not None:
            await self._cluster.close()

    # Records that wait for metadata or memory

    async def _send_waiting(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int | None,
        timestamp_ms: int | None,
        headers: Sequence[Header],
    ) -> Delivery:
        transactions = self._accepting().transactions
        number = 0 if transactions is None else transactions.state.number
        deadline = Deadline(self.settings.max_block_ms)
        try:
            while True:
                sender = self._accepting()
                accumulator = sender.accumulator
                if transactions is not None:
                    transactions.check_same_transaction(number)
                await sender.wait_for_topic(topic, partition, deadline)
                size = accumulator.size_of(value, key, headers)
                await accumulator.memory.take(size, deadline)
                delivery = None
                try:
                    is_same = transactions is None or transactions.state.number == number
                    if is_same and not self._rejects_records:
                        delivery = accumulator.append(
                            topic, value, key, partition, timestamp_ms, headers, reserved=True
                        )
                finally:
                    if delivery is None:
                        accumulator.memory.release(size)
                # None if the topic was deleted while this waited for memory.
                if delivery is not None:
                    return delivery
        except Exception as error:
            self._not_taken(error, number)
            raise

    def _not_taken(self, error: BaseException, number: int | None = None) -> None:
        """A record of transaction `number` was not taken."""
        if self._sender is not None and self._sender.transactions is not None:
            self._sender.transactions.send_failed(error, number)

    # States in which records or calls are rejected

    def _accepting(self) -> Sender:
        """Return the sender, or raise why no record can be taken now."""
        sender = self._running()
        if sender.transactions is not None:
            sender.transactions.state.check("send()")
        return sender

    def _running(self) -> Sender:
        """Return the sender, or raise if the producer is not running."""
        if self._crash is not None:
            raise self._crash.with_traceback(None)
        if self._closing:
            raise Closed("the producer")
        if self._sender is None:
            raise NotStarted()
        return self._sender

    def _transactions(self) -> "TransactionManager":
        transactions = self._running().transactions
        if transactions is None:
            raise NotTransactional()
        return transactions

    def _transaction_changed(self, is_open: bool) -> None:
        self._rejects_records = self._closing or not is_open

    def _crashed(self, error: BaseException) -> None:
        """An internal task failed, which is a bug: fail all records instead of leaving them pending."""
        if self._crash is None:
            self._crash = ProducerCrashed(error)
            if self._sender is not None:
                self._sender.fail_all(lambda: ProducerCrashed(error))
