"""The state of one producer in a log (compiled): epoch, last five batches, open transaction.

table.py has one for every producer id and updates it; rules.py makes the checks.
"""

from typing import Final, NamedTuple

from librt.vecs import vec
from mypy_extensions import i64, mypyc_attr

# A producer may have five requests in flight, so a retried batch is one of the last five.
BATCHES_KEPT: Final = 5

NONE: Final = -1

# A batch is four words of the ring: last sequence, last offset, last offset delta, largest timestamp.
_WORDS: Final[i64] = 4
_RING_WORDS: Final = 20
_KEPT: Final[i64] = BATCHES_KEPT
_SEQUENCE: Final[i64] = 0
_OFFSET: Final[i64] = 1
_DELTA: Final[i64] = 2
_TIMESTAMP: Final[i64] = 3
# After sequence 2**31 - 1 comes 0, and before 0 comes 2**31 - 1.
SEQUENCE_MASK: Final[i64] = 0x7FFFFFFF


class Duplicate(NamedTuple):
    """The offsets of a batch that was appended before."""

    base_offset: int
    last_offset: int
    timestamp: int


class LastRecord(NamedTuple):
    """The batch of a producer that compaction must keep; None if only markers are known."""

    last_data_offset: int | None
    epoch: int


class ProducerEntry(NamedTuple):
    """One producer's state in a snapshot (and its field order) and in DescribeProducers. -1 is "none"."""

    producer_id: int
    epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    txn_first_offset: int

    def last_record(self) -> LastRecord:
        return LastRecord(self.last_offset if self.last_offset >= 0 else None, self.epoch)


class Verification:
    """A pending verification: the coordinator must confirm a transaction before its first batch. (KIP-890)

    The object is its own proof: the batch is accepted only with the same object that the log still holds.
    """

    __slots__ = ("epoch", "epoch_bump", "lowest_sequence", "started_ms")

    def __init__(self, sequence: i64, epoch: i64, started_ms: i64, epoch_bump: bool) -> None:
        self.lowest_sequence: i64 = sequence
        self.epoch: i64 = epoch
        self.started_ms: i64 = started_ms
        self.epoch_bump = epoch_bump

    def again(self, sequence: i64, epoch: i64) -> None:
        """Add another batch: the lowest sequence of the newest epoch must be appended first."""
        if epoch > self.epoch or (epoch == self.epoch and sequence < self.lowest_sequence):
            self.epoch = epoch
            self.lowest_sequence = sequence


# It cannot be part of a reference cycle, so the garbage collector need not visit it.
@mypyc_attr(acyclic=True)
class ProducerState:
    """One producer. Without batches and with epoch -1 it represents an unknown producer."""

    __slots__ = ("coordinator_epoch", "epoch", "ring", "timestamp", "txn_first_offset", "written")

    def __init__(self) -> None:
        self.epoch: i64 = NONE
        self.coordinator_epoch: i64 = NONE
        self.timestamp: i64 = NONE
        self.txn_first_offset: i64 = NONE
        # Number of batches in this epoch; the last five are in the ring.
        self.written: i64 = 0
        self.ring = vec[i64]([0] * _RING_WORDS)

    def set_epoch(self, epoch: i64) -> None:
        """Set the epoch. A new one forgets the batches, because sequences start again."""
        if epoch != self.epoch:
            self.epoch = epoch
            self.written = 0

    def add(self, last_sequence: i64, last_offset: i64, delta: i64, timestamp: i64) -> None:
        """Remember a batch of the current epoch, replacing the oldest of five."""
        at = self.written % _KEPT * _WORDS
        ring = self.ring
        ring[at + _SEQUENCE] = last_sequence
        ring[at + _OFFSET] = last_offset
        ring[at + _DELTA] = delta
        ring[at + _TIMESTAMP] = timestamp
        self.written += 1
        self.timestamp = timestamp

    def find(self, first_sequence: i64, last_sequence: i64) -> Duplicate | None:
        """The remembered batch with exactly these sequences."""
        ring = self.ring
        number: i64 = self.written - _KEPT if self.written > _KEPT else 0
        while number < self.written:
            at = number % _KEPT * _WORDS
            last = ring[at + _SEQUENCE]
            delta = ring[at + _DELTA]
            if last == last_sequence and (last - delta) & SEQUENCE_MASK == first_sequence:
                last_offset = ring[at + _OFFSET]
                return Duplicate(last_offset - delta, last_offset, ring[at + _TIMESTAMP])
            number += 1
        return None

    def last_sequence(self) -> i64:
        return self._last(_SEQUENCE) if self.written else NONE

    def last_offset(self) -> i64:
        return self._last(_OFFSET) if self.written else NONE

    def _last(self, word: i64) -> i64:
        return self.ring[(self.written - 1) % _KEPT * _WORDS + word]

    def entry(self, producer_id: int) -> ProducerEntry:
        return ProducerEntry(
            producer_id,
            self.epoch,
            self.last_sequence(),
            self.last_offset(),
            self._last(_DELTA) if self.written else 0,
            self.timestamp,
            self.coordinator_epoch,
            self.txn_first_offset,
        )


def restore(entry: ProducerEntry) -> ProducerState:
    """Restore a producer from a snapshot, which has only its last batch."""
    state = ProducerState()
    state.epoch = entry.epoch
    if entry.last_offset >= 0:
        state.add(entry.last_sequence, entry.last_offset, entry.offset_delta, entry.timestamp)
    state.timestamp = entry.timestamp
    state.coordinator_epoch = entry.coordinator_epoch
    state.txn_first_offset = entry.txn_first_offset if entry.txn_first_offset >= 0 else NONE
    return state
