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
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType

from barnabas.base.ids import TopicPartition
from barnabas.client.cluster import Cluster
from barnabas.client.deadline import Backoff, Deadline, close_timeout_ms
from barnabas.client.errors import ClientError, Closed, UnknownTopic
from barnabas.client.ports import ClientPorts
from barnabas.client.producer.accumulator import BREATH
from barnabas.client.producer.delivery import BatchDelivery, Delivered, Delivery, finished
from barnabas.client.producer.errors import NotStarted, ProducerCrashed, TopicNotReady
from barnabas.client.producer.sender import Sender
from barnabas.client.producer.settings import producer_settings
from barnabas.client.producer.table_calls import TableCalls
from barnabas.client.producer.topic_queues import TopicQueues
from barnabas.client.producer.transaction import TransactionCalls
from barnabas.client.shared import to_its_end
from barnabas.records.record import Header

__all__ = ["BatchDelivery", "Delivered", "Delivery", "Producer"]


class Producer(TransactionCalls, TableCalls):
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
        self._barred = False
        self._crash: ProducerCrashed | None = None

    # Start and close

    async def start(self) -> None:
        """Connect to a broker; BrokerUnavailable or NotKafka if default.api.timeout.ms passes first."""
        if self._closing:
            raise Closed("the producer")
        assert self._cluster is None, "the producer is already started"
        self._cluster = Cluster(self.settings, self._ports)
        sender = Sender(
            self._cluster, self.settings, self._partitioner, on_crash=self._crashed, on_gate=self._gate
        )
        try:
            await self._cluster.start()
        except BaseException:
            # The cluster has closed itself, so start() may be called again.
            self._cluster = None
            raise
        sender.start()
        self._sender = sender

    async def close(self, timeout_ms: float | None = None) -> None:
        """Deliver all records, for at most `timeout_ms`; the rest fail with Closed.

        An open transaction is aborted, but not a prepared one or one that was handed over. Without a timeout,
        close() ends after delivery.timeout.ms at the latest. If cancelled, it closes without delivering.
        """
        self._closing = self._barred = True
        try:
            if self._sender is not None and self._crash is None:
                self._sender.accumulator.memory.refuse_waiters(lambda: Closed("the producer"))
                async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000):
                    if self._sender.transactions is not None:
                        await self._sender.transactions.endings.end_all()
                    await self._finish_all(self._sender)
                    await self._sender.heard()
        except TimeoutError:
            pass
        finally:
            await to_its_end(self._end())

    async def _end(self) -> None:
        if self._sender is not None:
            await self._sender.close()
        await self._disconnect()
        self._give_up(lambda: Closed("the producer"))

    async def _disconnect(self) -> None:
        if self._cluster is not None:
            await self._cluster.close()

    async def __aenter__(self) -> "Producer":
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close(close_timeout_ms(kind))

    def _crashed(self, error: BaseException) -> None:
        """An internal task failed, which is a bug: fail all records instead of leaving them pending."""
        if self._crash is None:
            self._crash = ProducerCrashed(error)
            self._give_up(lambda: ProducerCrashed(error))

    def _give_up(self, error: Callable[[], Exception]) -> None:
        if self._sender is None:
            return
        accumulator = self._sender.accumulator
        accumulator.topics.clear()
        accumulator.memory.refuse_waiters(error)
        for batch in list(accumulator.incomplete):
            if batch.in_flight:
                batch.queue.returned(batch)
            accumulator.finish(batch, error())

    def _gate(self, is_open: bool) -> None:
        self._barred = self._closing or not is_open

    def _taking(self) -> Sender:
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

    # Sending

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
        if sender is None or self._barred:
            sender = self._taking()
        accumulator = sender.accumulator
        if accumulator.breath <= 0:
            # Yield, so that batches are sent while more records come. All concurrent callers yield here,
            # so records keep their order.
            await asyncio.sleep(0)
            accumulator.breath = BREATH
            if self._barred:
                self._taking()
        try:
            delivery = accumulator.append(topic, value, key, partition, timestamp_ms, headers)
        except Exception as error:
            self._not_taken(error)
            raise
        if delivery is None:
            return await self._send_patiently(topic, value, key, partition, timestamp_ms, headers)
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
        sender = self._taking()
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

    async def _send_patiently(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int | None,
        timestamp_ms: int | None,
        headers: Sequence[Header],
    ) -> Delivery:
        transactions = self._taking().transactions
        number = 0 if transactions is None else transactions.state.number
        deadline = Deadline(self.settings.max_block_ms)
        try:
            while True:
                accumulator = self._taking().accumulator
                if transactions is not None:
                    transactions.check_still(number)
                await self._topic(topic, partition, deadline)
                size = accumulator.size_of(value, key, headers)
                await accumulator.memory.take(size, deadline)
                delivery = None
                try:
                    if not self._barred and (transactions is None or transactions.state.number == number):
                        delivery = accumulator.append(
                            topic, value, key, partition, timestamp_ms, headers, granted=True
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

    def _not_taken(self, error: Exception, number: int | None = None) -> None:
        """A record of transaction `number` was not taken."""
        if self._sender is not None and self._sender.transactions is not None:
            self._sender.transactions.send_failed(error, number)

    async def _topic(self, name: str, partition: int | None, deadline: Deadline) -> TopicQueues:
        """Wait until the topic and the partition are known; UnknownTopic at the deadline."""
        if partition is not None and partition < 0:
            raise ValueError(f"partition {partition} is negative")
        sender = self._running()
        assert self._cluster is not None, "the producer is not started"
        backoff = Backoff(
            first_ms=self.settings.retry_backoff_ms,
            max_ms=self.settings.retry_backoff_max_ms,
            rng=self._cluster.ports.rng,
        )
        failures = 0
        while True:
            known = await self._cluster.topic(name, deadline, create=True)
            into = sender.accumulator.topic(name)
            sender.take_metadata()
            if not into.known:
                sender.take_topic(into, known)
            if partition is None or partition < into.count:
                return into
            failures += 1
            wait_ms = backoff.wait_ms(failures)
            if wait_ms >= deadline.remaining_ms:
                raise UnknownTopic(
                    about=f"partition {TopicPartition(name, partition)}",
                    message=f"the topic has {into.count} partitions",
                )
            await asyncio.sleep(wait_ms / 1000)
            with suppress(ClientError, TimeoutError):
                # Ignore a failed refresh: the next round tries again or raises at the deadline.
                async with asyncio.timeout_at(deadline.at):
                    await self._cluster.refresh([name])

    async def partitions_for(self, topic: str) -> int:
        """Return the partition count of a topic. A missing topic is created as by send(), or UnknownTopic."""
        return (await self._topic(topic, None, Deadline(self.settings.max_block_ms))).count

    async def flush(self) -> None:
        """Send all queued records at once, and wait until each is delivered or has failed."""
        await self._finish_all(self._running())

    async def _finish_all(self, sender: Sender) -> None:
        sender.accumulator.close_open()
        for batch in list(sender.accumulator.incomplete):
            await finished(batch)

    @property
    def buffered_bytes(self) -> int:
        """Bytes of buffer.memory in use."""
        return 0 if self._sender is None else self._sender.accumulator.memory.used
