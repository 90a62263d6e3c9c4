"""Bytes in, lines out, as Java's BufferedReader ends them: at a line feed, a carriage return, or both.

Pure. Bytes stay bytes: Kafka's tool decodes its input as UTF-8 and puts a replacement character where that
fails, which changes what is sent; here a line is sent as it came.
"""

from typing import Final

from barnabas.base.errors import BarnabasError

# No broker takes a record that does not fit into 32 bits; whatever comes without a line end is not kept
# longer than this.
LINE_BYTES_MAX: Final = 0x7FFFFFFF


class LineTooLong(BarnabasError):
    """Input without a line end that nobody could take as one record."""

    def __init__(self, held: int) -> None:
        super().__init__(f"line exceeds the maximum record size of {held} bytes")


class LineSplitter:
    """feed() what comes, then end() once."""

    def __init__(self, line_bytes_max: int = LINE_BYTES_MAX) -> None:
        self._line_bytes_max = line_bytes_max
        # The beginning of a line whose end has not come. Pieces are joined once, when it comes: a long line
        # that arrives in small pieces must not be copied for each of them.
        self._pieces: list[bytes] = []
        self._held = 0
        self._after_carriage_return = False

    def feed(self, data: bytes) -> list[bytes]:
        """Every line that `data` completes, without its end; the rest is kept."""
        if self._after_carriage_return and data.startswith(b"\n"):
            # The second half of a line end whose first half was enough to give the line out.
            data = data[1:]
        self._after_carriage_return = data.endswith(b"\r")
        if b"\n" not in data and b"\r" not in data:
            self._keep(data)
            return []
        lines = data.splitlines()
        if self._pieces:
            lines[0] = b"".join([*self._pieces, lines[0]])
            self._forget()
        if data[-1] not in b"\r\n":
            self._keep(lines.pop())
        return lines

    def end(self) -> list[bytes]:
        """The last line, if it had no end."""
        last = b"".join(self._pieces)
        self._forget()
        return [last] if last else []

    def _keep(self, piece: bytes) -> None:
        if not piece:
            return
        self._held += len(piece)
        if self._held > self._line_bytes_max:
            raise LineTooLong(self._line_bytes_max)
        self._pieces.append(piece)

    def _forget(self) -> None:
        self._pieces.clear()
        self._held = 0
