"""Map every key of the dirty part of a log to its last offset (compiled).

Control batches and aborted transactions are skipped: their records supersede nothing. If the map fills up,
compaction stops after the last batch whose keys all fit. Keys of a batch that fitted only in part stay in the
map. That is safe: their records exist, lie beyond the compacted range, and supersede earlier ones.
"""

from mypy_extensions import i64

from barnabas.storage.cleaner.batch import Batch, Cursor
from barnabas.storage.cleaner.key_map import KeyMap
from barnabas.storage.cleaner.transactions import Transactions
from barnabas.storage.errors import StorageError


class KeysDoNotFit(StorageError):
    """A batch has more keys than the map may hold, so the log cannot be compacted any further."""

    def __init__(self, *, offset: int, keys: int) -> None:
        super().__init__(
            f"the first batch from offset {offset} on has more than the {keys} keys that fit into the memory "
            "of a cleaner thread; raise log.cleaner.dedupe.buffer.size or lower log.cleaner.threads"
        )
        self.offset = offset


class MapBuilder:
    """Fills a map from the batches of a log, in the order of offsets."""

    def __init__(self, key_map: KeyMap, transactions: Transactions, dirty_start: int) -> None:
        self._map = key_map
        self._transactions = transactions
        self._dirty_start: i64 = dirty_start
        self._cursor = Cursor()
        self.batch = Batch()
        self.is_full = False
        self.records_read: i64 = 0

    def feed(self, data: bytes) -> int:
        """Add the complete batches at the start of `data`; return the number of bytes consumed."""
        batch = self.batch
        batch.use(data)
        end: i64 = len(data)
        at: i64 = 0
        while at < end and not self.is_full and batch.load(at):
            if self._take(batch):
                at = batch.end
        return at

    def end_segment(self, next_base_offset: int) -> None:
        """Note that a segment was read to its end, so offsets up to the next segment are covered."""
        assert not self.is_full, "the map was full before the end of the segment"
        self._map.latest_offset = next_base_offset - 1

    def check_progress(self) -> None:
        """Raise KeysDoNotFit if not a single batch fitted."""
        if self.is_full and self._map.latest_offset < self._dirty_start:
            raise KeysDoNotFit(offset=self._dirty_start, keys=self._map.capacity)

    def _take(self, batch: Batch) -> bool:
        """Add a batch; False if its keys do not fit."""
        if batch.is_control:
            batch.unpack()
            self._transactions.is_done_with(batch)
        elif not self._transactions.is_aborted(batch) and batch.last_offset >= self._dirty_start:
            batch.unpack()
            if not self._take_keys(batch):
                self.is_full = True
                return False
        self.records_read += batch.count
        if batch.last_offset >= self._dirty_start:
            self._map.latest_offset = batch.last_offset
        return True

    def _take_keys(self, batch: Batch) -> bool:
        cursor = self._cursor
        key_map = self._map
        area = batch.area
        cursor.begin(batch)
        while cursor.next():
            if (
                cursor.key_size >= 0
                and cursor.offset >= self._dirty_start
                and not key_map.put_slice(area, cursor.key_at, cursor.key_at + cursor.key_size, cursor.offset)
            ):
                return False
        return True
