"""send_table(): encodes an Arrow table piece by piece as buffer memory becomes free. See table.py."""

from typing import TYPE_CHECKING

from barnabas.base.ids import TopicPartition
from barnabas.client.deadline import Deadline
from barnabas.client.errors import UnknownTopic
from barnabas.client.producer.batch import Batch
from barnabas.client.producer.delivery import BatchDelivery
from barnabas.client.producer.errors import BufferFull
from barnabas.client.producer.sender import Sender
from barnabas.client.producer.settings import ProducerSettings
from barnabas.client.producer.topic_queues import TopicQueues

if TYPE_CHECKING:
    import pyarrow as pa


class TableCalls:
    """Mixin of Producer that sends tables."""

    settings: ProducerSettings
    _sender: Sender | None
    _barred: bool

    def _taking(self) -> Sender:
        raise NotImplementedError

    async def _topic(self, name: str, partition: int | None, deadline: Deadline) -> TopicQueues:
        raise NotImplementedError

    async def send_table(
        self, topic: str, table: "pa.Table | pa.RecordBatch", *, partition: int | None = None
    ) -> list[BatchDelivery]:
        """Queue the rows of an Arrow table: column value, optionally key, timestamp, headers, partition.

        Return one delivery per batch. If buffer memory is not free within max.block.ms, `deliveries` of the
        BufferFull error are those of the rows taken before.
        """
        transactions = self._taking().transactions
        number = 0 if transactions is None else transactions.state.number
        deliveries: list[BatchDelivery] = []
        try:
            await self._send_pieces(topic, table, partition, number, deliveries)
        except BaseException as error:
            # Some rows may have been taken; a partial table must not be committed.
            if transactions is not None:
                transactions.send_failed(error, number)
            raise
        return deliveries

    async def _send_pieces(
        self,
        topic: str,
        table: "pa.Table | pa.RecordBatch",
        partition: int | None,
        transaction: int,
        deliveries: list[BatchDelivery],
    ) -> None:
        from barnabas.client.producer.table import by_partition, encode, hashes_with_murmur2, pieces

        for piece in pieces(table):
            deadline = Deadline(self.settings.max_block_ms)
            into = await self._topic(topic, partition, deadline)
            sender = self._taking()
            accumulator = sender.accumulator
            parts = by_partition(
                piece,
                topic,
                partition=partition,
                choose=accumulator.choose,
                murmur2=hashes_with_murmur2(accumulator.key_hash),
                sticky=accumulator.stick(into),
                count=into.count,
            )
            now_ms = sender.clock.now_ms()
            for number, rows in parts:
                for data in encode(rows, self.settings, now_ms):
                    await self._room_for(data, deliveries)
                    batch = self._take_encoded(topic, number, data, transaction)
                    deliveries.append(BatchDelivery(batch, now_ms))

    async def _room_for(self, data: bytes, before: list[BatchDelivery]) -> None:
        accumulator = self._taking().accumulator
        accumulator.refuse_larger(len(data))
        deadline = Deadline(self.settings.max_block_ms)
        try:
            await accumulator.memory.take(len(data), deadline)
        except BufferFull as error:
            error.deliveries = list(before)
            raise

    def _take_encoded(self, topic: str, partition: int, data: bytes, transaction: int) -> Batch:
        """Queue an encoded batch whose memory is reserved."""
        assert self._sender is not None, "the producer is not started"
        accumulator, transactions = self._sender.accumulator, self._sender.transactions
        into = accumulator.topics.get(topic)
        is_other = transactions is not None and transactions.state.number != transaction
        if self._barred or is_other or into is None or partition >= len(into.queues):
            accumulator.memory.release(len(data))
            self._taking()
            if transactions is not None:
                transactions.check_still(transaction)
            raise UnknownTopic(about=f"partition {TopicPartition(topic, partition)}")
        return accumulator.append_encoded(into.queues[partition], data)
