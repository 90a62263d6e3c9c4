"""Split bytes into lines as Java's BufferedReader does: at a line feed, a carriage return, or both. Pure.

Lines stay bytes and are sent unchanged. Kafka's tool decodes its input as UTF-8 and replaces invalid bytes.
"""

from typing import Final

from barnabas.base.errors import BarnabasError

# The size of a record has 32 bits, so a longer line could not be sent.
LINE_BYTES_MAX: Final = 0x7FFFFFFF


class LineTooLong(BarnabasError):
    """A line is too long for a record."""

    def __init__(self, held: int) -> None:
        super().__init__(f"line exceeds the maximum record size of {held} bytes")


class LineSplitter:
    """Call feed() for each chunk, then end() once."""

    def __init__(self, line_bytes_max: int = LINE_BYTES_MAX) -> None:
        self._line_bytes_max = line_bytes_max
        # Pieces of the last, incomplete line. They are joined once, when the line ends: copying a long line
        # for each piece would take quadratic time.
        self._pieces: list[bytes] = []
        self._held = 0
        self._after_carriage_return = False

    def feed(self, data: bytes) -> list[bytes]:
        """Return every line that `data` completes, without line ends; buffer the rest."""
        if self._after_carriage_return and data.startswith(b"\n"):
            # The line was returned at its carriage return; this line feed belongs to the same line end.
            data = data[1:]
        self._after_carriage_return = data.endswith(b"\r")
        if b"\n" not in data and b"\r" not in data:
            self._buffer(data)
            return []
        lines = data.splitlines()
        if self._pieces:
            lines[0] = b"".join([*self._pieces, lines[0]])
            self._clear()
        if data[-1] not in b"\r\n":
            self._buffer(lines.pop())
        return lines

    def end(self) -> list[bytes]:
        """Return the last line if it has no line end."""
        last = b"".join(self._pieces)
        self._clear()
        return [last] if last else []

    def _buffer(self, piece: bytes) -> None:
        if not piece:
            return
        self._held += len(piece)
        if self._held > self._line_bytes_max:
            raise LineTooLong(self._line_bytes_max)
        self._pieces.append(piece)

    def _clear(self) -> None:
        self._pieces.clear()
        self._held = 0
