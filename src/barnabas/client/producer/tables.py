"""Arrow tables as records: partitioned and encoded piece by piece, as buffer memory becomes free.

The columns are those of records/columns_write.py, plus `partition` (integers; null: the key decides). No
Python code runs per row unless keys have to be hashed.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.base.ids import TopicPartition
from barnabas.client.deadline import Deadline
from barnabas.client.errors import UnknownTopic
from barnabas.client.producer.batch import Batch
from barnabas.client.producer.delivery import BatchDelivery
from barnabas.client.producer.errors import BadPartition, BufferFull
from barnabas.client.producer.key_hashes import murmur2_partition, murmur2_partitions
from barnabas.client.producer.partitioner import STICK, Choose
from barnabas.client.producer.sender import Sender
from barnabas.client.producer.settings import ProducerSettings
from barnabas.client.producer.stamp import from_0
from barnabas.records.columns_write import UnfitColumns, encode_columns

# Larger than for single records, because table batches need no linger. A broker accepts 1,048,588 bytes.
TABLE_BATCH_BYTES: Final = 1_000_000
# Bytes of a table encoded at a time, before buffer memory is reserved for them.
PIECE_BYTES: Final = 4 * 1024 * 1024


class TableSender:
    """Sends a table in transaction `number` (0 without transactions).

    `running` and `accepting` return the sender, or raise if the producer has ended or takes no records now.
    """

    def __init__(self, running: Callable[[], Sender], accepting: Callable[[], Sender], number: int) -> None:
        self._running = running
        self._accepting = accepting
        self._number = number
        self._deliveries: list[BatchDelivery] = []

    async def send(
        self, topic: str, table: "pa.Table | pa.RecordBatch", partition: int | None
    ) -> list[BatchDelivery]:
        for piece in pieces(table):
            await self._send_piece(topic, piece, partition)
        return self._deliveries

    async def _send_piece(self, topic: str, piece: "pa.Table", partition: int | None) -> None:
        sender = self._running()
        into = await sender.wait_for_topic(topic, partition, Deadline(sender.settings.max_block_ms))
        accumulator = self._accepting().accumulator
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
            for data in encode(rows, sender.settings, now_ms):
                await self._reserve_memory(len(data))
                batch = self._queue(topic, number, data, sender)
                self._deliveries.append(BatchDelivery(batch, now_ms))

    async def _reserve_memory(self, size: int) -> None:
        sender = self._accepting()
        sender.accumulator.refuse_larger(size)
        try:
            await sender.accumulator.memory.take(size, Deadline(sender.settings.max_block_ms))
        except BufferFull as error:
            error.deliveries = list(self._deliveries)
            raise

    def _queue(self, topic: str, partition: int, data: bytes, sender: Sender) -> Batch:
        """Queue an encoded batch whose memory is reserved."""
        accumulator, transactions = sender.accumulator, sender.transactions
        try:
            self._accepting()
            if transactions is not None:
                transactions.check_same_transaction(self._number)
            into = accumulator.topics.get(topic)
            if into is None or partition >= len(into.queues):
                raise UnknownTopic(about=f"partition {TopicPartition(topic, partition)}")
        except Exception:
            accumulator.memory.release(len(data))
            raise
        return accumulator.append_encoded(into.queues[partition], data)


def pieces(table: "pa.Table | pa.RecordBatch") -> "Iterator[pa.Table]":
    """Yield the rows in order, in slices of about PIECE_BYTES."""
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    rows = table.num_rows
    step = max(1, rows * PIECE_BYTES // max(1, table.nbytes))
    for start in range(0, rows, step):
        yield table.slice(start, step)


def by_partition(
    table: "pa.Table",
    topic: str,
    *,
    partition: int | None,
    choose: Choose,
    murmur2: bool,
    sticky: int,
    count: int,
) -> "list[tuple[int, pa.Table]]":
    """Group the rows by partition, keeping their order. Rows without a key go to `sticky`."""
    if partition is not None:
        return [(partition, table)]
    chosen = _chosen(table, topic, choose, murmur2, sticky, count)
    if isinstance(chosen, int):
        return [(chosen, table)]
    numbers = pc.unique(chosen).to_pylist()
    return [(number, table.filter(pc.equal(chosen, number))) for number in sorted(numbers)]


def _chosen(
    table: "pa.Table", topic: str, choose: Choose, murmur2: bool, sticky: int, count: int
) -> "pa.Array[Any] | int":
    """Return one partition per row, or a single one for all rows."""
    named = _named(table, topic, count)
    if named is not None and named.null_count == 0:
        return named
    hashed = _hashed(table, topic, choose, murmur2, sticky, count)
    if named is None:
        return hashed
    return pc.if_else(pc.is_valid(named), named, hashed)


def _named(table: "pa.Table", topic: str, count: int) -> "pa.ChunkedArray[Any] | None":
    if "partition" not in table.schema.names:
        return None
    column = table.column("partition")
    if not (pa.types.is_integer(column.type) or pa.types.is_null(column.type)):
        raise UnfitColumns(f"column partition has type {column.type}, expected integers")
    column = column.cast(pa.int32())
    least, most = pc.min(column).as_py(), pc.max(column).as_py()
    for number in (least, most):
        if number is not None and not 0 <= number < count:
            raise BadPartition(topic, number, count)
    return column


def _hashed(
    table: "pa.Table", topic: str, choose: Choose, murmur2: bool, sticky: int, count: int
) -> "pa.Array[Any] | int":
    if "key" not in table.schema.names or table.column("key").null_count == table.num_rows:
        one = choose(topic, None, count)
        return sticky if one == STICK else one
    keys = table.column("key").cast(pa.large_binary()).to_pylist()
    if murmur2 and None not in keys:
        return pa.array(murmur2_partitions(keys, count), pa.int32())
    chosen = [choose(topic, key, count) for key in keys]
    return pa.array([sticky if one == STICK else one for one in chosen], pa.int32())


def encode(table: "pa.Table", settings: ProducerSettings, timestamp_ms: int) -> list[bytes]:
    """Encode consecutive rows as batches without producer id and sequence."""
    most = min(settings.max_request_size, settings.buffer_memory)
    batches = encode_columns(
        table,
        codec=settings.codec,
        level=settings.level,
        batch_bytes=min(most, max(settings.batch_size, TABLE_BATCH_BYTES)),
        timestamp_ms=timestamp_ms,
        transactional=settings.is_transactional,
    )
    # Base offsets continue from batch to batch. stamped() resets them to 0; without idempotence do it here.
    return batches if settings.enable_idempotence else [from_0(data) for data in batches]


def hashes_with_murmur2(key_hash: object) -> bool:
    return key_hash is murmur2_partition
