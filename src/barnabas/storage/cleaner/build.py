"""The last offset of every key in what was never compacted (compiled).

Keys of control batches and of aborted transactions do not count: their records hide nothing. If the map gets
full, compaction goes as far as the last batch that was taken in whole. Keys of a batch that was taken in
halfway are in the map already, with offsets behind that batch: they hide earlier records, and are not
themselves hidden, which is right.
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
            f"the first batch from offset {offset} on has more keys than the {keys} that fit into the memory "
            "of a cleaner thread: raise log.cleaner.dedupe.buffer.size, or lower log.cleaner.threads"
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
        """Take the whole batches at the start of `data`; return how many bytes they are."""
        batch = self.batch
        batch.use(data)
        end: i64 = len(data)
        at: i64 = 0
        while at < end and not self.is_full and batch.load(at):
            if self._take(batch):
                at = batch.end
        return at

    def end_segment(self, next_base_offset: int) -> None:
        """A segment has been read to its end: nothing is between its last batch and the next segment."""
        assert not self.is_full, "the map was full before the end of the segment"
        self._map.latest_offset = next_base_offset - 1

    def check_progress(self) -> None:
        """KeysDoNotFit if not a single batch could be taken in."""
        if self.is_full and self._map.latest_offset < self._dirty_start:
            raise KeysDoNotFit(offset=self._dirty_start, keys=self._map.capacity)

    def _take(self, batch: Batch) -> bool:
        """Take a batch in; False if it does not fit."""
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
