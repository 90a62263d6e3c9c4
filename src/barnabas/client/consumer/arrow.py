"""Builds Arrow tables from fetched partitions, without a Python object per record.

A table consists of whole fetch responses of partitions, decoded by records/columns_read.py, plus topic and
partition columns. The only module of the consumer that imports pyarrow.
"""

from typing import Final, NamedTuple

import pyarrow as pa

from barnabas.base.errors import Malformed
from barnabas.client.consumer.fetch_buffer import FetchBuffer, corrupt
from barnabas.client.consumer.message import EndOfPartition
from barnabas.client.consumer.positions import CompletedFetch, PartitionState
from barnabas.records.column_walk import batch_size
from barnabas.records.columns_read import MAX_UNPACKED, Fetched, column_schema, decode_fetched
from barnabas.records.errors import DecompressedTooLarge

TOPIC: Final = pa.dictionary(pa.int32(), pa.string())


def table_schema(*, views: bool = False) -> pa.Schema:
    """The columns of a table: topic and partition, then those of column_schema()."""
    front = [pa.field("topic", TOPIC, nullable=False), pa.field("partition", pa.int32(), nullable=False)]
    return pa.schema([*front, *column_schema(views=views)])


class Limits(NamedTuple):
    """A table ends at this many rows or fetched bytes."""

    rows: int
    fetched_bytes: int
    # Limit of the decompressed size of one response.
    unpacked_bytes: int = MAX_UNPACKED


class TableMaker:
    def __init__(self, buffer: FetchBuffer, limits: Limits, *, check_crcs: bool, views: bool) -> None:
        self._buffer = buffer
        self._limits = limits
        self._check_crcs = check_crcs
        self._views = views
        self._schema = table_schema(views=views)

    def next_table(self) -> "pa.Table | EndOfPartition | None":
        """Return a table of fetched data or an EndOfPartition; None if nothing is buffered.

        Raise the error of a partition when it is its turn and no rows come before it.
        """
        parts: list[pa.RecordBatch] = []
        rows = size = 0
        while rows < self._limits.rows and size < self._limits.fetched_bytes:
            found = self._buffer.next_fetch(quiet=bool(parts))
            if found is None:
                break
            one, fetch = found
            part = self._decode(one, fetch)
            size += fetch.size
            # A response with only aborted transactions or markers has no rows.
            if part is not None and part.num_rows > 0:
                parts.append(part)
                rows += part.num_rows
        if parts:
            return pa.Table.from_batches(parts, self._schema).unify_dictionaries()
        return self._buffer.take_end()

    def _decode(self, one: PartitionState, fetch: CompletedFetch) -> pa.RecordBatch | None:
        """Decode the rows of one response, up to the first corrupt batch."""
        try:
            fetched = self._columns(one, fetch, fetch.whole)
        except Malformed as error:
            return self._decode_until(one, fetch, error)
        self._buffer.finish_fetch(one, fetch)
        return self._with_place(one, fetched)

    def _columns(self, one: PartitionState, fetch: CompletedFetch, end: int) -> Fetched:
        assert one.position is not None, f"{one.tp} has data but no position"
        return decode_fetched(
            memoryview(fetch.data)[fetch.start : end],
            from_offset=one.position,
            aborted=[(producer, first) for first, producer in fetch.aborted],
            partial_tail=False,
            check_crc=self._check_crcs,
            views=self._views,
            limit=self._limits.unpacked_bytes,
        )

    def _decode_until(
        self, one: PartitionState, fetch: CompletedFetch, error: Malformed
    ) -> pa.RecordBatch | None:
        """Find the first corrupt batch by bisection: corruption is rare and need not be fast."""
        starts = _batch_starts(fetch)
        good, bad = 0, len(starts)
        while bad - good > 1:
            middle = (good + bad) // 2
            try:
                self._columns(one, fetch, starts[middle])
                good = middle
            except Malformed as wrong:
                bad, error = middle, wrong
        # The batch at starts[good] is the first bad one.
        part: pa.RecordBatch | None = None
        if good > 0:
            fetched = self._columns(one, fetch, starts[good])
            part = self._with_place(one, fetched)
            one.position = fetched.next_offset if fetched.next_offset is not None else one.position
        assert one.position is not None, f"{one.tp} has data but no position"
        if good > 0 and isinstance(error, DecompressedTooLarge):
            # Not corrupt but too large for one table: fetch the rest again.
            self._buffer.evict(one)
            return part
        self._buffer.stop_corrupt(one, corrupt(one, one.position, fetch, starts[good], error))
        return part

    def _with_place(self, one: PartitionState, fetched: Fetched) -> pa.RecordBatch:
        rows = fetched.rows.num_rows
        # Zeros: index 0 of a dictionary with one topic, for every row.
        indices = pa.Array.from_buffers(pa.int32(), rows, [None, pa.py_buffer(bytes(4 * rows))])
        topic = pa.DictionaryArray.from_arrays(indices, pa.array([one.tp.topic], pa.string()))
        partition = pa.repeat(pa.scalar(one.tp.partition, pa.int32()), rows)
        return pa.RecordBatch.from_arrays([topic, partition, *fetched.rows.columns], schema=self._schema)


def _batch_starts(fetch: CompletedFetch) -> list[int]:
    starts, at = [], fetch.start
    while at < fetch.whole:
        starts.append(at)
        at += batch_size(fetch.data, at, fetch.whole)
    return starts
