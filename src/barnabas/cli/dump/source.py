"""A file that is looked at: read in bounded pieces, never written, and named as Kafka's tool names it.

It is opened for reading only: a dump must work on a disk that nobody may write to.
"""

import os
import re
from types import TracebackType
from typing import Final, Self

from barnabas.base.errors import BarnabasError

# A log is walked through a window of this many bytes; only a batch that is larger is read whole.
WINDOW_BYTES: Final = 1 << 20
# Positions in a segment are 32 bits wide, so there is no larger one.
SEGMENT_BYTES_MAX: Final = 0x7FFFFFFF

_LONG: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_LONG_MIN: Final = -(1 << 63)
_LONG_MAX: Final = (1 << 63) - 1


class DumpFailed(BarnabasError):
    """The dump cannot go on with this file, where Kafka's tool ends with an exception."""

    def __init__(self, path: str, what: str) -> None:
        super().__init__(f"{path}: {what}")
        self.path = path
        self.what = what


class Source:
    """An open file with a window on it."""

    def __init__(self, path: str, *, size_max: int = SEGMENT_BYTES_MAX) -> None:
        self.path = path
        try:
            self._file = open(path, "rb", buffering=0)  # noqa: SIM115 - it is closed by __exit__
            self.size = os.fstat(self._file.fileno()).st_size
        except OSError as error:
            raise DumpFailed(path, _reason(error)) from None
        self._window = b""
        self._window_at = 0
        if self.size > size_max:
            self._file.close()
            raise DumpFailed(path, f"file size {self.size} exceeds the maximum of {size_max}")

    def read(self, at: int, size: int) -> bytes:
        """The bytes from `at` on, fewer than `size` where the file ends."""
        start = at - self._window_at
        if start < 0 or start + size > len(self._window):
            self._window = self._pread(at, max(size, WINDOW_BYTES))
            self._window_at = at
            start = 0
        return self._window[start : start + size]

    def read_apart(self, at: int, size: int) -> bytes:
        """A few bytes from anywhere, which leave the window where it is."""
        return self._pread(at, size)

    def _pread(self, at: int, size: int) -> bytes:
        parts = []
        try:
            # One call may return less than was asked for, and never more than two gigabytes.
            while size > 0 and (part := os.pread(self._file.fileno(), size, at)):
                parts.append(part)
                at += len(part)
                size -= len(part)
        except OSError as error:
            raise DumpFailed(self.path, _reason(error)) from None
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


# Names


def shown_path(argument: str) -> str:
    """A path as Java's File has it: without doubled slashes and without one at the end."""
    path = re.sub("/+", "/", argument)
    return path[:-1] if len(path) > 1 and path.endswith("/") else path


def absolute_path(path: str) -> str:
    """Below the working directory unless it starts with a slash; `..` stays in it."""
    return os.path.join(os.getcwd(), path)


def stem(path: str) -> str:
    """The file's name up to the first dot."""
    return os.path.basename(path).partition(".")[0]


def sibling(path: str, suffix: str) -> str:
    """The file of another kind that belongs to the same segment."""
    return os.path.join(os.path.dirname(absolute_path(path)), stem(path) + suffix)


def start_offset(path: str) -> int:
    """The first offset of a segment, which is its files' name."""
    return parse_long(path, stem(path))


def parse_long(path: str, text: str) -> int:
    if _LONG.fullmatch(text) and _LONG_MIN <= int(text) <= _LONG_MAX:
        return int(text)
    raise DumpFailed(path, f"file name must start with an offset, found {text!r}")
