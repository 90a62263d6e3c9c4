"""Read a .log file batch by batch for recovery (compiled). Blocks on the disk: for the executor.

BatchReader reads; Replay rebuilds producers, epochs and aborted transactions from the batches, by the same
rules as Log.
"""

from typing import Final

from mypy_extensions import i64

from barnabas.base.crc32c import crc32c
from barnabas.base.errors import Malformed
from barnabas.records.area import MIN_RECORD_SIZE
from barnabas.records.header import (
    ATTRIBUTES_AT,
    CODEC_BITS,
    HEADER_SIZE,
    KNOWN_ATTRIBUTES,
    LENGTH_EXCLUDES,
    MAGIC,
    MIN_BATCH_LENGTH,
)
from barnabas.records.validate import check_batch
from barnabas.storage.epochs import LeaderEpochs
from barnabas.storage.files import File
from barnabas.storage.intake import Batch
from barnabas.storage.producers.table import Producers
from barnabas.storage.segment.marker import complete_transaction, read_marker
from barnabas.storage.segment.txn_index import AbortedTxn

# Bytes read at once: for whole batches, and for headers, which may be far apart.
_WHOLE_BYTES: Final[i64] = 1 << 20
_HEADERS_BYTES: Final[i64] = 1 << 16


class BadBatch(Exception):
    """There is no valid batch at this position, or one that does not belong there."""

    def __init__(self, position: int, what: str) -> None:
        super().__init__(f"byte {position}: {what}")
        self.position = position
        self.what = what


class BatchReader:
    """Iterates over the batches in [start, end) of a file; the current one begins at `data[at]`."""

    def __init__(self, file: File, start: i64, end: i64) -> None:
        self.file: Final = file
        self.next_position = start
        self.end: Final = end
        self.position = start
        self.data = b""
        self.data_at = start
        self.at: i64 = 0

    def next(self, whole: bool) -> Batch | None:
        """The next batch, with all its bytes in `data` if `whole`; None at the end."""
        position = self.next_position
        if position >= self.end:
            return None
        if position + HEADER_SIZE > self.end:
            raise BadBatch(position, f"{self.end - position} bytes are left, too few for a batch header")
        self._have(position, HEADER_SIZE, _WHOLE_BYTES if whole else _HEADERS_BYTES)
        batch = Batch(self.data, self.at)
        if batch.magic != MAGIC or batch.size < LENGTH_EXCLUDES + MIN_BATCH_LENGTH or batch.last_delta < 0:
            raise BadBatch(position, "no record batch starts here")
        if batch.size > self.end - position:
            raise BadBatch(position, f"batch size {batch.size} exceeds the {self.end - position} bytes left")
        if whole:
            self._have(position, batch.size, _WHOLE_BYTES)
        self.position = position
        self.next_position = position + batch.size
        return batch

    def _have(self, position: i64, size: i64, at_once: i64) -> None:
        at = position - self.data_at
        if at + size > len(self.data):
            self.data = self.file.read(position, min(max(size, at_once), self.end - position))
            self.data_at = position
            at = 0
            if len(self.data) < size:
                raise BadBatch(position, f"read {len(self.data)} of {size} bytes")
        self.at = at

    def bytes_of(self, batch: Batch) -> memoryview:
        """The bytes of the current batch, which must have been read whole."""
        return memoryview(self.data)[self.at : self.at + batch.size]

    def verify(self, batch: Batch) -> None:
        """Check the CRC and the header of the current batch, which must have been read whole."""
        view = self.bytes_of(batch)
        # The fast form of check_batch(), which decides about all other batches.
        if (
            batch.crc == crc32c(view[ATTRIBUTES_AT:])
            and 0 < batch.count <= batch.last_delta + 1
            and 0 <= batch.attributes <= KNOWN_ATTRIBUTES
            and (batch.attributes & CODEC_BITS) == 0
            and batch.count * MIN_RECORD_SIZE <= batch.size - HEADER_SIZE
        ):
            return
        try:
            check_batch(view)
        except Malformed as wrong:
            raise BadBatch(self.position, wrong.what) from None


class Replay:
    """Producers, epochs and aborted transactions, updated batch by batch."""

    def __init__(self, producers: Producers, epochs: LeaderEpochs, *, epochs_from: i64 = 0) -> None:
        self.producers: Final = producers
        self.epochs: Final = epochs
        # Only batches from this offset on update the epochs.
        self.epochs_from: Final = epochs_from
        self.epochs_changed = False
        self.aborted: list[AbortedTxn] = []

    def take(self, reader: BatchReader, batch: Batch) -> None:
        """Apply the reader's current batch, unless the producer snapshot covers it."""
        if batch.base_offset >= self.epochs_from:
            self._take_epoch(batch)
        end = batch.base_offset + batch.last_delta + 1
        if end <= self.producers.end_offset:
            return
        if batch.producer_id >= 0:
            if batch.is_control():
                self._end_transaction(reader, batch)
            else:
                self.producers.appended(batch, batch.base_offset)
        self.producers.end_offset = end

    def _take_epoch(self, batch: Batch) -> None:
        # Keep known epochs: their first batch may have been deleted since.
        latest = self.epochs.latest
        known: i64 = -1 if latest is None else latest
        if batch.leader_epoch > known and self.epochs.assign(batch.leader_epoch, batch.base_offset):
            self.epochs_changed = True

    def _end_transaction(self, reader: BatchReader, batch: Batch) -> None:
        reader._have(reader.position, batch.size, _HEADERS_BYTES)
        try:
            marker = read_marker(reader.bytes_of(batch))
        except Malformed as wrong:
            raise BadBatch(reader.position, str(wrong)) from None
        if marker is None:
            return
        ended = complete_transaction(self.producers, batch, marker, batch.base_offset)
        if ended is not None:
            self.aborted.append(ended)
