"""Output of a dump: buffered lines on stdout, notices on stderr in order with them, mismatches at the end.

Mismatches are collected over all files and grouped by kind and file. Kafka prints files in hash map order,
this tool in the order of the command line.
"""

import sys
from typing import Final

# Number of pieces buffered before a write: some hundred kilobytes of typical lines.
PIECES_MAX: Final = 2048

Pairs = list[tuple[int, int]]


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


class Findings:
    """Mismatches by the absolute path of the file."""

    def __init__(self) -> None:
        self._mismatches: dict[str, dict[int, int]] = {}
        self._wrong_times: dict[str, Pairs] = {}
        self._unordered_times: dict[str, Pairs] = {}
        self._missing_offsets: dict[str, Pairs] = {}
        self._gaps: dict[str, dict[int, int]] = {}

    def mismatch(self, path: str, index_offset: int, log_offset: int) -> None:
        """An offset index refers to a batch with another last offset."""
        self._mismatches.setdefault(path, {})[index_offset] = log_offset

    def wrong_time(self, path: str, index_timestamp: int, log_timestamp: int) -> None:
        """A time index has a timestamp that is not the maximum of its batch."""
        self._wrong_times.setdefault(path, []).append((index_timestamp, log_timestamp))

    def unordered_time(self, path: str, timestamp: int, previous: int) -> None:
        """The timestamps of a time index decrease."""
        self._unordered_times.setdefault(path, []).append((timestamp, previous))

    def missing_offset(self, path: str, index_offset: int, log_offset: int) -> None:
        """A time index has an offset that is not the last offset of any batch."""
        self._missing_offsets.setdefault(path, []).append((index_offset, log_offset))

    def gap(self, path: str, before: int, after: int) -> None:
        """Offsets are not consecutive. Also reported if the first offset of a log is not 0."""
        self._gaps.setdefault(path, {})[before] = after

    def report(self, output: Output) -> None:
        for path, mismatches in self._mismatches.items():
            output.notice(f"Mismatches in :{path}")
            for index_offset, log_offset in sorted(mismatches.items(), reverse=True):
                output.notice(f"  Index offset: {index_offset}, log offset: {log_offset}")
        self._report_times(output)
        for path, gaps in self._gaps.items():
            output.notice(f"Non-consecutive offsets in {path}")
            for before, after in sorted(gaps.items()):
                output.notice(f"  {before} is followed by {after}")

    def _report_times(self, output: Output) -> None:
        for path, pairs in self._wrong_times.items():
            output.notice(f"Found timestamp mismatch in :{path}")
            for timestamp, other in pairs:
                output.notice(f"  Index timestamp: {timestamp}, log timestamp: {other}")
        for path, pairs in self._unordered_times.items():
            output.notice(f"Found out of order timestamp in :{path}")
            for timestamp, other in pairs:
                output.notice(f"  Index timestamp: {timestamp}, Previously indexed timestamp: {other}")
        for path, pairs in self._missing_offsets.items():
            output.notice(f"The following indexed offsets are not found in :{path}")
            for offset, other in pairs:
                output.notice(f"Indexed offset: {offset}, found log offset: {other}")
