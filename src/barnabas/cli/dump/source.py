"""Read a file in bounded pieces, and name it as Kafka's tool does.

Files are opened for reading only: a dump must work on a read-only disk.
"""

import os
import re
from types import TracebackType
from typing import Final, Self

from barnabas.base.errors import BarnabasError

# Read-ahead window. Only a larger batch is read in one piece.
WINDOW_BYTES: Final = 1 << 20
# Positions in a segment have 32 bits, so no segment is larger.
SEGMENT_BYTES_MAX: Final = 0x7FFFFFFF

_LONG: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_LONG_MIN: Final = -(1 << 63)
_LONG_MAX: Final = (1 << 63) - 1


class DumpFailed(BarnabasError):
    """This file cannot be dumped further; Kafka's tool ends with an exception here."""

    def __init__(self, path: str, what: str) -> None:
        super().__init__(f"{path}: {what}")
        self.path = path
        self.what = what


class Source:
    """An open file with a read-ahead window."""

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
        """Read `size` bytes from `at` on, fewer at the end of the file."""
        start = at - self._window_at
        if start < 0 or start + size > len(self._window):
            self._window = self._pread(at, max(size, WINDOW_BYTES))
            self._window_at = at
            start = 0
        return self._window[start : start + size]

    def read_apart(self, at: int, size: int) -> bytes:
        """Read a few bytes from anywhere without moving the window."""
        return self._pread(at, size)

    def _pread(self, at: int, size: int) -> bytes:
        parts = []
        try:
            # One call may return fewer bytes, and never more than 2 GiB.
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
    """Normalize a path as Java's File does: no double slashes, no trailing slash."""
    path = re.sub("/+", "/", argument)
    return path[:-1] if len(path) > 1 and path.endswith("/") else path


def absolute_path(path: str) -> str:
    """Make a path absolute without resolving `..`."""
    return os.path.join(os.getcwd(), path)


def stem(path: str) -> str:
    """Return the file name up to the first dot."""
    return os.path.basename(path).partition(".")[0]


def sibling(path: str, suffix: str) -> str:
    """Return the path of another file of the same segment."""
    return os.path.join(os.path.dirname(absolute_path(path)), stem(path) + suffix)


def start_offset(path: str) -> int:
    """Return the base offset of a segment, which is the name of its files."""
    return parse_long(path, stem(path))


def parse_long(path: str, text: str) -> int:
    if _LONG.fullmatch(text) and _LONG_MIN <= int(text) <= _LONG_MAX:
        return int(text)
    raise DumpFailed(path, f"file name must start with an offset, found {text!r}")
