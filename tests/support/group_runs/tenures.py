"""From journals to tenures: who had which partition, from when to when, and what it read and saved meanwhile.

Pure: the journals are given, nothing is waited for.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum

from support.group_runs.journal import Event

FOREVER_US = 1 << 62


@dataclass(frozen=True, slots=True)
class Life:
    """One process, from its start to its end; `killed_us` is when it was killed, if it was."""

    name: str
    events: Sequence[Event]
    instance: str | None = None
    killed_us: int | None = None


class Ending(Enum):
    REVOKED = "revoked"
    LOST = "lost"
    LEFT = "left"
    KILLED = "killed"
    STILL_OPEN = "still open"

    @property
    def is_clean(self) -> bool:
        """Whether the member had the chance to save what it had read."""
        return self in (Ending.REVOKED, Ending.LEFT)


@dataclass(slots=True)
class Tenure:
    """One partition in the hands of one process. `unanswered` is a commit that nobody heard the answer of."""

    partition: int
    owner: Life
    begun_us: int
    ended_us: int = FOREVER_US
    ending: Ending = Ending.STILL_OPEN
    reads: list[Event] = field(default_factory=list)
    unanswered: int | None = None

    @property
    def next_offset(self) -> int | None:
        """The offset after the last one that was read; None if nothing was."""
        return self.reads[-1].last + 1 if self.reads else None


@dataclass(slots=True)
class Told:
    """All tenures of one life, and what cannot be: `odd` has a sentence for each."""

    tenures: list[Tenure] = field(default_factory=list)
    odd: list[str] = field(default_factory=list)


def tenures_of(life: Life) -> Told:
    told = Told()
    held: dict[int, Tenure] = {}
    for event in life.events:
        match event.word:
            case "assigned":
                for partition in event.partitions:
                    if partition in held:
                        told.odd.append(f"{life.name} was given partition {partition} twice")
                    else:
                        held[partition] = Tenure(partition, life, event.at_us)
                        told.tenures.append(held[partition])
            case "revoked" | "lost":
                for partition in event.partitions:
                    _end(held, partition, event.at_us, Ending(event.word), told, life)
            case "read":
                _note_read(held, event, told, life)
            case "committing":
                for partition, offset in event.positions:
                    if partition in held:
                        held[partition].unanswered = offset
            case "committed":
                for partition, _ in event.positions:
                    if partition in held:
                        held[partition].unanswered = None
            case "left":
                for partition in list(held):
                    _end(held, partition, event.at_us, Ending.LEFT, told, life)
            case "wrong":
                told.odd.append(f"{life.name} read a wrong record: {event.text}")
    if life.killed_us is not None:
        for partition in list(held):
            _end(held, partition, life.killed_us, Ending.KILLED, told, life)
    return told


def _end(held: dict[int, Tenure], partition: int, at_us: int, ending: Ending, told: Told, life: Life) -> None:
    tenure = held.pop(partition, None)
    if tenure is None:
        told.odd.append(f"{life.name} let go of partition {partition}, which it did not have")
        return
    tenure.ended_us, tenure.ending = at_us, ending


def _note_read(held: dict[int, Tenure], event: Event, told: Told, life: Life) -> None:
    [partition] = event.partitions
    tenure = held.get(partition)
    if tenure is None:
        told.odd.append(
            f"{life.name} read offset {event.first} of partition {partition}, which it did not have"
        )
        return
    expected = tenure.next_offset
    if expected is not None and event.first != expected:
        told.odd.append(
            f"{life.name} read offset {event.first} of partition {partition} after {expected - 1}"
        )
    tenure.reads.append(event)


def moves(lives: Sequence[Life], *, from_us: int, to_us: int) -> Iterator[str]:
    """Whatever was given to somebody or taken in that time, as sentences."""
    for life in lives:
        for event in life.events:
            if from_us <= event.at_us <= to_us and event.word in ("assigned", "revoked", "lost"):
                after_ms = (event.at_us - from_us) // 1000
                yield f"{life.name}: {event.word} {list(event.partitions)} after {after_ms} ms"
