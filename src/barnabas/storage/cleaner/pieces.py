"""A .log file in pieces of bounded size, for whoever takes whole batches from the start of a piece."""

from collections.abc import Callable
from struct import Struct
from typing import Final, Protocol

from barnabas.base.errors import Malformed
from barnabas.records.header import BATCH_LENGTH_AT, LENGTH_EXCLUDES
from barnabas.storage.cleaner.batch import Batch
from barnabas.storage.cleaner.facts import CleaningStopped
from barnabas.storage.errors import CorruptLog
from barnabas.storage.files import File, FileSystem

# Read at once; more only for a batch that is larger. The default of log.cleaner.io.buffer.size.
PIECE_BYTES: Final = 512 * 1024
# What a taker returns when it wants no more.
ENOUGH: Final = -1

_LENGTH: Final = Struct(">i")


class Taker(Protocol):
    """Takes the whole batches at the start of a piece; says how many bytes they are, or ENOUGH."""

    def __call__(self, data: bytes, /, *, is_last: bool) -> int: ...


def read_pieces(
    fs: FileSystem, path: str, size: int, take: Taker, batch: Batch, should_stop: Callable[[], bool]
) -> int:
    """Hand out the first `size` bytes of a file; return how many were taken.

    `batch` is what the taker reads with: it knows where the damage is when a batch is refused.
    """
    file = fs.open(path)
    position = 0
    wanted = PIECE_BYTES
    try:
        while position < size:
            if should_stop():
                raise CleaningStopped(path)
            data = file.read(position, min(wanted, size - position))
            if len(data) < min(wanted, size - position):
                raise CorruptLog(path, position=position + len(data), what=f"it ends before byte {size}")
            is_last = position + len(data) == size
            try:
                taken = take(data, is_last=is_last)
            except Malformed as wrong:
                raise CorruptLog(path, position=position + batch.at, what=wrong.what) from wrong
            if taken == ENOUGH:
                break
            wanted = PIECE_BYTES
            if taken == 0:
                wanted = _needed(file, position, data, size)
            position += taken
    finally:
        file.close()
    return position


def _needed(file: File, position: int, data: bytes, size: int) -> int:
    """How many bytes the batch at the start of `data` takes, of which not all are there."""
    left = size - position
    needed = left + 1
    if len(data) >= LENGTH_EXCLUDES:
        length: int = _LENGTH.unpack_from(data, BATCH_LENGTH_AT)[0]
        needed = LENGTH_EXCLUDES + length
    if needed > left or len(data) >= needed:
        raise CorruptLog(file.path, position=position, what=f"a batch is cut off after {len(data)} bytes")
    return needed
