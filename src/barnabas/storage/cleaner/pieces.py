"""Read a .log file in pieces of bounded size, for consumers that take whole batches from each piece."""

from collections.abc import Callable
from typing import Final, Protocol

from barnabas.base.errors import Malformed
from barnabas.records.header import BATCH_LENGTH_AT, INT32, LENGTH_EXCLUDES
from barnabas.storage.cleaner.batch import Batch
from barnabas.storage.cleaner.facts import CleaningStopped
from barnabas.storage.errors import CorruptLog
from barnabas.storage.files import File, FileSystem

# Bytes read at once; more only for a larger batch. The default of log.cleaner.io.buffer.size.
PIECE_BYTES: Final = 512 * 1024
# Returned by a taker to stop.
ENOUGH: Final = -1


class Taker(Protocol):
    """Consumes the whole batches at the start of a piece; returns their size in bytes, or ENOUGH."""

    def __call__(self, data: bytes, /, *, is_last: bool) -> int: ...


def read_pieces(
    fs: FileSystem, path: str, size: int, take: Taker, batch: Batch, should_stop: Callable[[], bool]
) -> int:
    """Pass the first `size` bytes of a file to `take`; return how many it consumed.

    `batch` is the cursor that `take` uses: when `take` raises, its position is the position of the damage.
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
                raise CorruptLog(path, position=position + len(data), what=f"file ends before byte {size}")
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
    """The full size of the incomplete batch at the start of `data`."""
    left = size - position
    needed = left + 1
    if len(data) >= LENGTH_EXCLUDES:
        length: int = INT32.unpack_from(data, BATCH_LENGTH_AT)[0]
        needed = LENGTH_EXCLUDES + length
    if needed > left or len(data) >= needed:
        raise CorruptLog(file.path, position=position, what=f"batch is truncated after {len(data)} bytes")
    return needed
