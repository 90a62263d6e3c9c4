"""What one member of a group did, line by line, as it did it.

A line is the time in microseconds since 1970, a word, and what belongs to the word:

    ready                   the program has started, and has not joined yet
    assigned 0 1 2          the member was given partitions, beside those that it has
    revoked 0 1             it has let go of them: the last thing that it does before it tells its broker
    lost 0                  it was told that they were taken from it
    read 3 17 40            records 17 to 40 of partition 3, in this order
    committing 3:41 1:7     it is about to commit these offsets
    committed 3:41 1:7      and the broker said yes
    refused TEXT            or the broker said no
    left                    it reads no more, and says goodbye
    wrong TEXT              a record was not the one that was produced there

Every line is one write to a file, so that a member that is killed has still told what it did.
"""

import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

Positions: TypeAlias = Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Event:
    """One line. Which of the fields are filled depends on the word."""

    at_us: int
    word: str
    partitions: tuple[int, ...] = ()
    first: int = -1
    last: int = -1
    positions: tuple[tuple[int, int], ...] = ()
    text: str = ""


def now_us() -> int:
    return time.time_ns() // 1000


def value_of(partition: int, offset: int) -> bytes:
    """What is produced there, so that a reader sees whether it got what it asked for."""
    return b"%d/%d" % (partition, offset)


def parse(line: str) -> Event:
    at, word, *rest = line.split(" ", 2)
    text = rest[0] if rest else ""
    match word:
        case "assigned" | "revoked" | "lost":
            return Event(int(at), word, partitions=tuple(map(int, text.split())))
        case "read":
            partition, first, last = map(int, text.split())
            return Event(int(at), word, partitions=(partition,), first=first, last=last)
        case "committing" | "committed":
            return Event(int(at), word, positions=tuple(_position(one) for one in text.split()))
        case "ready" | "refused" | "left" | "wrong":
            return Event(int(at), word, text=text)
    raise ValueError(f"not a line of a journal: {line!r}")


def _position(text: str) -> tuple[int, int]:
    partition, _, offset = text.partition(":")
    return int(partition), int(offset)


class Journal:
    """The file, for the one who writes; `unsaved` is what was read and is not committed yet."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.unsaved: dict[int, int] = {}

    def write(self, word: str, *what: object) -> None:
        line = " ".join(map(str, (now_us(), word, *what)))
        os.write(self._file, line.replace("\n", " ").encode() + b"\n")

    def given(self, word: str, partitions: Iterable[int]) -> None:
        """assigned, revoked or lost; the member has nothing to save of what it has not any more."""
        which = sorted(partitions)
        if not which:
            return
        for partition in which:
            self.unsaved.pop(partition, None)
        self.write(word, *which)

    def read(self, partition: int, records: Iterable[tuple[int, bytes]]) -> None:
        """Offsets and values, as they came; written as runs without a gap."""
        first = last = -1
        for offset, value in records:
            if value != value_of(partition, offset):
                self.write("wrong", f"partition {partition} offset {offset}: {value!r}")
            if first < 0:
                first = offset
            elif offset != last + 1:
                self.write("read", partition, first, last)
                first = offset
            last = offset
        if first >= 0:
            self.write("read", partition, first, last)
            self.unsaved[partition] = last + 1

    def committing(self, positions: Positions) -> None:
        self._positions("committing", positions)

    def committed(self, positions: Positions) -> None:
        self._positions("committed", positions)
        for partition, offset in positions.items():
            if self.unsaved.get(partition) == offset:
                del self.unsaved[partition]

    def _positions(self, word: str, positions: Positions) -> None:
        self.write(word, *(f"{partition}:{offset}" for partition, offset in sorted(positions.items())))
