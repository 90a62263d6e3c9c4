"""Which leader epoch starts at which offset of one log, and the checkpoint file that keeps it (pure).

Followers and consumers ask for the end of an epoch to find where their history parts from the leader's.
The file is small text, as Kafka writes it:

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
# More digits than the largest offset has are no number of ours, and are not turned into one.
_DIGITS_MAX: Final = len(str(_OFFSET_MAX))


class EpochStart(NamedTuple):
    """An epoch, and the offset of the first batch that was written in it."""

    epoch: int
    start_offset: int


class LeaderEpochs:
    """Epochs and start offsets, both strictly ascending.

    There is one of these for every log, most have one entry, and they seldom change: hence the tuples.
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
        """A batch of `epoch` is at `start_offset`. True: that was news, and the file must be written.

        Entries that contradict it go: a later epoch, or one that starts no earlier, is of a leader whose
        records were never kept.
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
        """The largest epoch that is not above `epoch`, and where it ends; (-1, -1) if that is not known.

        An epoch before the first known one ends where that starts: its records are gone, and who asks can
        go on from there.
        """
        if epoch == UNDEFINED_EPOCH or not self._epochs or epoch > self._epochs[-1]:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        if epoch == self._epochs[-1]:
            return epoch, log_end
        later = bisect_right(self._epochs, epoch)
        return self._epochs[later - 1] if later else epoch, self._starts[later]

    def epoch_for(self, offset: int) -> int | None:
        """The epoch in which the record at `offset` was written; None if it is before all that is known."""
        later = bisect_right(self._starts, offset)
        return self._epochs[later - 1] if later else None

    def truncate_from_end(self, offset: int) -> bool:
        """The log ends at `offset` now: forget what starts there or later. True if that was something."""
        keep = bisect_left(self._starts, offset)
        if keep == len(self._starts):
            return False
        self._epochs = self._epochs[:keep]
        self._starts = self._starts[:keep]
        return True

    def truncate_from_start(self, offset: int) -> bool:
        """The log starts at `offset` now, and so does the epoch of that offset. True if that is new."""
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
        """Read the file. An empty one has no entries: Kafka makes it before it has anything to write."""
        found = cls()
        if not data:
            return found
        lines = data.split(b"\n")
        if len(lines) < 3 or lines[-1]:
            raise CorruptFile(path, "the last line is not complete")
        if lines[0] != b"%d" % VERSION:
            raise CorruptFile(path, f"version {lines[0]!r} is not {VERSION}")
        if lines[1] != b"%d" % (len(lines) - 3):
            raise CorruptFile(path, f"{lines[1]!r} entries are announced, {len(lines) - 3} are there")
        pairs = [_parse(line, path) for line in lines[2:-1]]
        found._epochs = tuple([epoch for epoch, _ in pairs])
        found._starts = tuple([start for _, start in pairs])
        for before, after in pairwise(pairs):
            if before.epoch >= after.epoch or before.start_offset >= after.start_offset:
                raise CorruptFile(path, f"{after} comes after {before}")
        return found


def _parse(line: bytes, path: str) -> EpochStart:
    words = line.split()
    if len(words) == 2 and all(word.isdigit() and len(word) <= _DIGITS_MAX for word in words):
        entry = EpochStart(int(words[0]), int(words[1]))
        if entry.epoch <= _EPOCH_MAX and entry.start_offset <= _OFFSET_MAX:
            return entry
    raise CorruptFile(path, f"{line[:80]!r} is not an epoch and an offset")
