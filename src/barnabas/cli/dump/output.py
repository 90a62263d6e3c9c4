"""Where the lines go: gathered and written many at a time, and in order with the notices on stderr."""

import sys
from typing import Final

# So many pieces are gathered before they are written: some hundred kilobytes of usual lines.
PIECES_MAX: Final = 2048


class Output:
    """Results on stdout, notices on stderr. Whoever makes one calls flush() at the end, whatever happened."""

    def __init__(self) -> None:
        self._pieces: list[str] = []

    def write(self, text: str) -> None:
        """A piece of a line, or several lines: nothing is added to it."""
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
        # A record may hold anything, and a terminal may have an encoding that cannot show it. Java puts a
        # question mark in that place, and so do we; a dump must not end there.
        encoding = sys.stdout.encoding or "utf-8"
        sys.stdout.write(text.encode(encoding, "replace").decode(encoding))
        sys.stdout.flush()
