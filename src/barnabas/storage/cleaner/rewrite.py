"""Rewrite batches during compaction (compiled).

A batch is kept whole, kept in part, kept without records, or dropped. Kept records are copied byte by byte:
base offset and base timestamp do not change, so neither does any delta. Only a batch that gets a delete
horizon is re-encoded (records/rebuild.py), which happens once in its life.

A record stays if the map has no later one with its key, or if it lies beyond the mapped range. A record
without a key is dropped. A tombstone stays until the delete horizon of its batch, which is set the first time
that a batch with a tombstone is compacted. (KIP-534)
"""

from collections.abc import Mapping

from librt.vecs import append, vec
from mypy_extensions import i64, u8

from barnabas.records.area import BadRecord
from barnabas.records.decode import add_timestamps, decode_batch
from barnabas.records.encode import is_out_of_range
from barnabas.records.errors import CorruptBatch, batch_at
from barnabas.records.header import LOG_APPEND_TIME_BIT, NO_TIMESTAMP, read_header
from barnabas.records.rebuild import empty_batch, rebuild_batch
from barnabas.storage.cleaner.batch import Batch, Cursor
from barnabas.storage.cleaner.key_map import KeyMap
from barnabas.storage.cleaner.output import Output
from barnabas.storage.cleaner.partial import keep_in_part
from barnabas.storage.cleaner.transactions import Transactions
from barnabas.storage.producers.table import LastRecord


class Choice:
    """Which records of a batch stay, and facts about them."""

    def __init__(self) -> None:
        # One byte for every record.
        self.stays = vec[u8]()
        self.count: i64 = 0
        self.max_timestamp: i64 = NO_TIMESTAMP
        self.tombstones = False
        # A timestamp before 1970, which cannot be encoded relative to a delete horizon.
        self.odd_times = False


class Rewriter:
    """Reads all segments from the first one on, and collects the remaining batches in `output`."""

    def __init__(
        self,
        key_map: KeyMap,
        transactions: Transactions,
        producers: Mapping[int, LastRecord],
        *,
        upper_bound: int,
        now_ms: int,
        delete_retention_ms: int,
    ) -> None:
        self._map = key_map
        self._transactions = transactions
        self._producers = dict(producers)
        self._upper_bound: i64 = upper_bound
        self._now_ms: i64 = now_ms
        self._horizon_ms = now_ms + delete_retention_ms
        self._cursor = Cursor()
        self.batch = Batch()
        self.output = Output()
        self.records_read: i64 = 0
        self.records_kept: i64 = 0
        # Dropped, because a compacted log keeps only records with keys.
        self.records_without_key: i64 = 0

    def feed(self, data: bytes, leave_from: i64) -> int:
        """Rewrite the whole batches at the start of `data`; return the number of bytes consumed.

        At least one batch at or above the offset `leave_from` must stay: otherwise the last batch in `data`
        is kept without its records. `output` refers to `data`.
        """
        batch = self.batch
        batch.use(data)
        end: i64 = len(data)
        at: i64 = 0
        while at < end and batch.load(at):
            at = batch.end
            self.records_read += batch.count
            self._take(batch, at == end and self.output.last_offset < leave_from)
        return at

    def _take(self, batch: Batch, must_leave: bool) -> None:
        may_go = self._may_go(batch)
        control = batch.is_control
        is_dropped = may_go
        if control:
            # Like a tombstone, the marker of a transaction without data is removed after its delete horizon.
            is_dropped = may_go and batch.has_delete_horizon and batch.base_timestamp <= self._now_ms
        kept: i64 = 0
        if not is_dropped:
            kept = self._keep_records(batch, control, may_go and control)
        if kept == 0 and (must_leave or self._holds_a_place(batch)):
            self._keep_empty(batch)
        self.records_kept += kept

    def _may_go(self, batch: Batch) -> bool:
        if batch.is_control:
            batch.unpack()
            return self._transactions.is_done_with(batch)
        if self._transactions.is_aborted(batch):
            return True
        batch.unpack()
        return False

    def _holds_a_place(self, batch: Batch) -> bool:
        """Whether the batch must stay without records.

        A producer's last batch carries the last sequence, against which its next batch is checked; its last
        marker carries the epoch, which fences older producers. The last compacted batch carries the last
        offset.
        """
        if batch.last_offset + 1 == self._upper_bound:
            return True
        if batch.producer_id < 0:
            return False
        last = self._producers.get(batch.producer_id)
        if last is None:
            return False
        if last.last_data_offset is None:
            return batch.is_control and batch.producer_epoch == last.epoch
        return batch.last_offset == last.last_data_offset

    def _keep_records(self, batch: Batch, all_of_them: bool, needs_horizon: bool) -> i64:
        """Write the records that stay; return their number."""
        choice = Choice()
        self._choose(batch, all_of_them, choice)
        if choice.count == 0:
            return 0
        wanted = needs_horizon or choice.tombstones
        if wanted and not batch.has_delete_horizon and not choice.odd_times:
            self._keep_until_horizon(batch, choice)
        elif choice.count == batch.count:
            self.output.add_same(batch)
        else:
            made = keep_in_part(batch, self._cursor, choice.stays, choice.count, choice.max_timestamp)
            self.output.add_new(made, batch.last_offset, choice.max_timestamp)
        return choice.count

    def _choose(self, batch: Batch, all_of_them: bool, choice: Choice) -> None:
        cursor = self._cursor
        key_map = self._map
        latest: i64 = key_map.latest_offset
        append_time = batch.attributes & LOG_APPEND_TIME_BIT != 0
        timestamp: i64 = batch.max_timestamp
        tombstones_go = batch.has_delete_horizon and batch.base_timestamp <= self._now_ms
        stays = vec[u8](capacity=batch.count)
        cursor.begin(batch)
        while cursor.next():
            if all_of_them or cursor.offset > latest:
                pass
            elif cursor.key_size < 0:
                self.records_without_key += 1
                stays = append(stays, 0)
                continue
            elif (cursor.value_size < 0 and tombstones_go) or cursor.offset < key_map.get_slice(
                batch.area, cursor.key_at, cursor.key_at + cursor.key_size
            ):
                stays = append(stays, 0)
                continue
            stays = append(stays, 1)
            choice.count += 1
            if not append_time:
                timestamp = record_time(batch, cursor)
            if timestamp > choice.max_timestamp:
                choice.max_timestamp = timestamp
            if is_out_of_range(timestamp):
                choice.odd_times = True
            if cursor.value_size < 0:
                choice.tombstones = True
        choice.stays = stays

    def _keep_until_horizon(self, batch: Batch, choice: Choice) -> None:
        stays = choice.stays
        records = decode_batch(batch.data, batch.at)
        if choice.count < batch.count:
            records = [record for slot, record in enumerate(records) if stays[slot] != 0]
        header = read_header(batch.data, batch.at)
        made = rebuild_batch(header, records, delete_horizon_ms=self._horizon_ms)
        self.output.add_new(made, batch.last_offset, choice.max_timestamp)

    def _keep_empty(self, batch: Batch) -> None:
        made = empty_batch(read_header(batch.data, batch.at))
        self.output.add_new(made, batch.last_offset, batch.max_timestamp)


def record_time(batch: Batch, cursor: Cursor) -> i64:
    try:
        return add_timestamps(batch.base_timestamp, cursor.time_delta)
    except BadRecord as wrong:
        raise CorruptBatch(str(wrong), where=f"{batch_at(batch.at)}, offset {cursor.offset}") from None
