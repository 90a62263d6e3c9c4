"""What a log remembers of one producer (compiled): its epoch, its last five batches, its open transaction.

producers.py keeps one for every producer id and says when it changes. Nothing here decides anything.
"""

from typing import Final, NamedTuple

from librt.vecs import vec
from mypy_extensions import i64, mypyc_attr

# A producer may have five requests in flight, so a batch that is sent again is one of the last five.
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
    """Where a batch that was sent again lies since the first time."""

    base_offset: int
    last_offset: int
    timestamp: int


class LastRecord(NamedTuple):
    """What compaction must leave of a producer. None: nothing but markers is known of it."""

    last_data_offset: int | None
    epoch: int


class ProducerEntry(NamedTuple):
    """One producer, as snapshots and DescribeProducers tell of it, in a snapshot's order. -1 is "none"."""

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
    """A transaction's first batch waits here until the coordinator has confirmed that there is one. (KIP-890)

    The object is its own proof: the batch is let in only with the very one that the log still holds.
    """

    __slots__ = ("epoch", "epoch_bump", "lowest_sequence", "started_ms")

    def __init__(self, sequence: i64, epoch: i64, started_ms: i64, epoch_bump: bool) -> None:
        self.lowest_sequence: i64 = sequence
        self.epoch: i64 = epoch
        self.started_ms: i64 = started_ms
        self.epoch_bump = epoch_bump

    def again(self, sequence: i64, epoch: i64) -> None:
        """Another batch asks for the same: the lowest sequence of the newest epoch must be written first."""
        if epoch > self.epoch or (epoch == self.epoch and sequence < self.lowest_sequence):
            self.epoch = epoch
            self.lowest_sequence = sequence


# It can not be part of a cycle, so the garbage collector need not visit it.
@mypyc_attr(acyclic=True)
class ProducerState:
    """One producer. Without batches and with epoch -1 it stands for one that nothing is known of."""

    __slots__ = ("coordinator_epoch", "epoch", "ring", "timestamp", "txn_first_offset", "written")

    def __init__(self) -> None:
        self.epoch: i64 = NONE
        self.coordinator_epoch: i64 = NONE
        self.timestamp: i64 = NONE
        self.txn_first_offset: i64 = NONE
        # How many batches were written in this epoch; the last five are in the ring.
        self.written: i64 = 0
        self.ring = vec[i64]([0] * _RING_WORDS)

    def set_epoch(self, epoch: i64) -> None:
        """In a new epoch sequences start again, so what was written in the old one can not be repeated."""
        if epoch != self.epoch:
            self.epoch = epoch
            self.written = 0

    def add(self, last_sequence: i64, last_offset: i64, delta: i64, timestamp: i64) -> None:
        """Remember a batch of the current epoch, in the place of the oldest if there are five."""
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
    """A producer as a snapshot has it: of its batches only the last one is known."""
    state = ProducerState()
    state.epoch = entry.epoch
    if entry.last_offset >= 0:
        state.add(entry.last_sequence, entry.last_offset, entry.offset_delta, entry.timestamp)
    state.timestamp = entry.timestamp
    state.coordinator_epoch = entry.coordinator_epoch
    state.txn_first_offset = entry.txn_first_offset if entry.txn_first_offset >= 0 else NONE
    return state
