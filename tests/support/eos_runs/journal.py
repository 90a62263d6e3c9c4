"""What one process did with its transactions, line by line, as it did it.

A line is the time in microseconds since 1970, a word, and what belongs to the word:

    ready                   the program has started, and has done nothing yet
    serving                 its transactional id is its own: whoever had it before is fenced
    assigned 0 1 2          it was given partitions of the input; also `revoked` and `lost`
    wrote 7 3 17 40         in transaction 7 it wrote the records of input partition 3 with numbers 17 to 40
    committing 7            it is about to ask for the commit of transaction 7: from here on it may be seen
    committed 7             and the broker said yes
    aborted 7               or it was aborted, and the broker said yes to that
    trouble TEXT            what it was told that made it abort
    fatal TEXT              what it was told that ended it: somebody else has its id, or nothing helps
    left                    it was told to leave, and has done everything it had begun

Every line is one write to a file, so that a process that is killed has still told what it did. `wrote` comes
after the records were handed to the client and before `committing`.
"""

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

WITH_TEXT = ("ready", "serving", "trouble", "fatal", "left")
WITH_PARTITIONS = ("assigned", "revoked", "lost")
WITH_TRANSACTION = ("committing", "committed", "aborted")


@dataclass(frozen=True, slots=True)
class Event:
    """One line. Which of the fields are filled depends on the word."""

    at_us: int
    word: str
    transaction: int = -1
    partitions: tuple[int, ...] = ()
    first: int = -1
    last: int = -1
    text: str = ""


@dataclass(frozen=True, slots=True)
class Life:
    """One process from its start to its end: all that it wrote down."""

    name: str
    events: tuple[Event, ...]


def now_us() -> int:
    return time.time_ns() // 1000


def parse(line: str) -> Event:
    at, word, *rest = line.split(" ", 2)
    text = rest[0] if rest else ""
    if word in WITH_TEXT:
        return Event(int(at), word, text=text)
    if word in WITH_PARTITIONS:
        return Event(int(at), word, partitions=tuple(map(int, text.split())))
    if word in WITH_TRANSACTION:
        return Event(int(at), word, transaction=int(text))
    if word == "wrote":
        transaction, partition, first, last = map(int, text.split())
        return Event(int(at), word, transaction, (partition,), first, last)
    raise ValueError(f"not a line of a journal: {line!r}")


class Journal:
    """The file, for the one who writes."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def write(self, word: str, *what: object) -> None:
        line = " ".join(map(str, (now_us(), word, *what)))
        os.write(self._file, line.replace("\n", " ").encode() + b"\n")

    def wrote(self, transaction: int, partition: int, numbers: Iterable[int]) -> None:
        """Written as runs without a gap, because the numbers of one transaction need not be neighbours."""
        first = last = -1
        for number in numbers:
            if first < 0:
                first = number
            elif number != last + 1:
                self.write("wrote", transaction, partition, first, last)
                first = number
            last = number
        if first >= 0:
            self.write("wrote", transaction, partition, first, last)
