"""Buffered output to stdout, in order with notices on stderr."""

import sys
from typing import Final

# Number of pieces buffered before a write: some hundred kilobytes of typical lines.
PIECES_MAX: Final = 2048


class Output:
    """Results go to stdout, notices to stderr. The owner calls flush() at the end, even after an error."""

    def __init__(self) -> None:
        self._pieces: list[str] = []

    def write(self, text: str) -> None:
        """Write a piece of a line, or several lines; adds no line end."""
        self._pieces.append(text)
        if len(self._pieces) >= PIECES_MAX:
            self.flush()

    def line(self, text: str) -> None:
        self.write(text + "\n")

    def notice(self, text: str) -> None:
        self.flush()
        print(text, file=sys.stderr)

    def flush(self) -> None:
        text = "".join(self._pieces)
        self._pieces.clear()
        # The encoding of the terminal may not support a record's text. Java prints a question mark instead,
        # and so does this tool; the dump must not fail.
        encoding = sys.stdout.encoding or "utf-8"
        sys.stdout.write(text.encode(encoding, "replace").decode(encoding))
        sys.stdout.flush()
