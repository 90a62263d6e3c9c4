"""The leader epochs of one log with their start offsets, and the checkpoint file format (pure).

Followers and consumers ask for the end of an epoch to find where their history diverges from the leader's.
The file is text in Kafka's format:

    version 0 | number of entries | a line "epoch start_offset" for each, both ascending
"""

from bisect import bisect_left, bisect_right
from itertools import pairwise
from typing import Final, NamedTuple

from barnabas.storage.errors import CorruptFile

VERSION: Final = 0

UNDEFINED_EPOCH: Final = -1
UNDEFINED_OFFSET: Final = -1

_EPOCH_MAX: Final = 0x7FFFFFFF
_OFFSET_MAX: Final = 0x7FFFFFFFFFFFFFFF
# Longer numbers are out of range and rejected before int() is called.
_DIGITS_MAX: Final = len(str(_OFFSET_MAX))


class EpochStart(NamedTuple):
    """An epoch, and the offset of its first batch."""

    epoch: int
    start_offset: int


class LeaderEpochs:
    """Epochs and start offsets, both strictly ascending.

    Tuples, because there is one object per log, most have one entry, and they seldom change.
    """

    __slots__ = ("_epochs", "_starts")

    def __init__(self) -> None:
        self._epochs: tuple[int, ...] = ()
        self._starts: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self._epochs)

    @property
    def latest(self) -> int | None:
        return self._epochs[-1] if self._epochs else None

    def entries(self) -> list[EpochStart]:
        return [EpochStart._make(pair) for pair in zip(self._epochs, self._starts, strict=True)]

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Note a batch of `epoch` at `start_offset`. True if this is new, so that the file must be written.

        Contradicting entries are removed: a later epoch, or one that starts at or after this offset, belongs
        to a leader whose records were lost.
        """
        epochs, starts = self._epochs, self._starts
        if epochs and epoch == epochs[-1] and start_offset >= starts[-1]:
            return False
        assert min(epoch, start_offset) >= 0, f"epoch {epoch} at offset {start_offset}"
        keep = min(bisect_left(epochs, epoch), bisect_left(starts, start_offset))
        self._epochs = (*epochs[:keep], epoch)
        self._starts = (*starts[:keep], start_offset)
        return True

    def end_offset_for(self, epoch: int, log_end: int) -> tuple[int, int]:
        """The largest epoch up to `epoch`, and its end offset; (-1, -1) if unknown.

        An epoch before the first known one ends where that one starts: its records are deleted, and the
        caller can continue from there.
        """
        if epoch == UNDEFINED_EPOCH or not self._epochs or epoch > self._epochs[-1]:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        if epoch == self._epochs[-1]:
            return epoch, log_end
        later = bisect_right(self._epochs, epoch)
        return self._epochs[later - 1] if later else epoch, self._starts[later]

    def epoch_for(self, offset: int) -> int | None:
        """The epoch in which the record at `offset` was written; None before the first known epoch."""
        later = bisect_right(self._starts, offset)
        return self._epochs[later - 1] if later else None

    def truncate_from_end(self, offset: int) -> bool:
        """Remove epochs that start at `offset`, the new end of the log, or later. True if there were any."""
        keep = bisect_left(self._starts, offset)
        if keep == len(self._starts):
            return False
        self._epochs = self._epochs[:keep]
        self._starts = self._starts[:keep]
        return True

    def truncate_from_start(self, offset: int) -> bool:
        """Make `offset`, the new start of the log, the start of its epoch. True if anything changed."""
        later = bisect_right(self._starts, offset)
        if later == 0 or (later == 1 and self._starts[0] == offset):
            return False
        self._epochs = self._epochs[later - 1 :]
        self._starts = (offset, *self._starts[later:])
        return True

    def clear(self) -> None:
        self._epochs = ()
        self._starts = ()

    def to_text(self) -> bytes:
        lines = [f"{epoch} {start}\n" for epoch, start in zip(self._epochs, self._starts, strict=True)]
        return f"{VERSION}\n{len(lines)}\n{''.join(lines)}".encode()

    @classmethod
    def from_text(cls, data: bytes, path: str) -> "LeaderEpochs":
        """Parse the file. An empty one has no entries: Kafka creates it before the first epoch."""
        found = cls()
        if not data:
            return found
        lines = data.split(b"\n")
        if len(lines) < 3 or lines[-1]:
            raise CorruptFile(path, "last line is not complete")
        if lines[0] != b"%d" % VERSION:
            raise CorruptFile(path, f"version is {lines[0]!r}, expected {VERSION}")
        if lines[1] != b"%d" % (len(lines) - 3):
            raise CorruptFile(path, f"line 2 says {lines[1]!r} entries, found {len(lines) - 3}")
        pairs = [_parse(line, path) for line in lines[2:-1]]
        found._epochs = tuple([epoch for epoch, _ in pairs])
        found._starts = tuple([start for _, start in pairs])
        for before, after in pairwise(pairs):
            if before.epoch >= after.epoch or before.start_offset >= after.start_offset:
                raise CorruptFile(path, f"entries are not ascending: {before}, then {after}")
        return found


def _parse(line: bytes, path: str) -> EpochStart:
    words = line.split()
    if len(words) == 2 and all(word.isdigit() and len(word) <= _DIGITS_MAX for word in words):
        entry = EpochStart(int(words[0]), int(words[1]))
        if entry.epoch <= _EPOCH_MAX and entry.start_offset <= _OFFSET_MAX:
            return entry
    raise CorruptFile(path, f"{line[:80]!r} is not 'epoch start_offset'")
