"""Find a batch in a piece of a log by its header fields (compiled), without creating objects."""

from typing import Final

from librt.strings import read_i32_be, read_i64_be
from mypy_extensions import i64

from barnabas.records.header import (
    BATCH_LENGTH_AT,
    HEADER_SIZE,
    LAST_OFFSET_DELTA_AT,
    LENGTH_EXCLUDES,
    MAGIC,
    MAGIC_AT,
    MIN_BATCH_LENGTH,
)

# How a scan ended: at the requested batch; at the end of the piece; at bytes that are no batch.
FOUND: Final = 0
MORE: Final = 1
BAD: Final = 2

_LENGTH_AT: Final[i64] = BATCH_LENGTH_AT
_LAST_DELTA_AT: Final[i64] = LAST_OFFSET_DELTA_AT
_MAGIC_AT: Final[i64] = MAGIC_AT
_HEADER_SIZE: Final[i64] = HEADER_SIZE
_EXCLUDES: Final[i64] = LENGTH_EXCLUDES
_MIN_LENGTH: Final[i64] = MIN_BATCH_LENGTH
_MAGIC: Final[i64] = MAGIC


def seek(data: bytes, target: i64) -> tuple[i64, i64]:
    """Find the first batch that ends at or after the offset `target`, from a batch's start at data[0].

    Return how the scan ended and the position: of the batch found, of the first header that is incomplete in
    `data` (it may lie beyond the end), or of the invalid header.
    """
    at: i64 = 0
    end: i64 = len(data)
    while at + _HEADER_SIZE <= end:
        length: i64 = i64(read_i32_be(data, at + _LENGTH_AT))
        delta: i64 = i64(read_i32_be(data, at + _LAST_DELTA_AT))
        if length < _MIN_LENGTH or delta < 0 or i64(data[at + _MAGIC_AT]) != _MAGIC:
            return BAD, at
        if read_i64_be(data, at) + delta >= target:
            return FOUND, at
        at += _EXCLUDES + length
    return MORE, at


def seek_time(data: bytes, timestamp: i64, max_timestamp_at: i64, floor: i64) -> tuple[i64, i64]:
    """Find the first batch that ends at or after offset `floor` and has a record of `timestamp` or later."""
    at: i64 = 0
    end: i64 = len(data)
    while at + _HEADER_SIZE <= end:
        length: i64 = i64(read_i32_be(data, at + _LENGTH_AT))
        delta: i64 = i64(read_i32_be(data, at + _LAST_DELTA_AT))
        if length < _MIN_LENGTH or delta < 0 or i64(data[at + _MAGIC_AT]) != _MAGIC:
            return BAD, at
        if read_i64_be(data, at + max_timestamp_at) >= timestamp and read_i64_be(data, at) + delta >= floor:
            return FOUND, at
        at += _EXCLUDES + length
    return MORE, at
