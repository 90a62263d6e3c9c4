"""What must be true of a group that shared partitions under load. Reads all journals when all is over.

- Every record that was acknowledged to the producer was read by somebody.
- No partition was in two hands at once. One that was killed has its partitions until its session is over,
  unless its own instance id came back for them.
- A member goes on where the last acknowledged commit is. So a record is read twice only if the one who read
  it before was killed, or lost the partition, before it had committed.
- Committed offsets never go back.

Pure; every fault is a sentence, and no faults is an empty list.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from support.group_runs.tenures import Ending, Life, Tenure, tenures_of


@dataclass(frozen=True, slots=True)
class Session:
    """How long a silent member stays, and how often one that is not silent is heard."""

    timeout_us: int
    heartbeat_us: int

    @property
    def silence_us_min(self) -> int:
        """A killed one may have sent its last heartbeat just before the next one was due; and on a machine
        that is busy that one may have been late already."""
        return self.timeout_us - 2 * self.heartbeat_us


def faults(lives: Sequence[Life], *, acknowledged: Mapping[int, int], session: Session) -> list[str]:
    """Everything that is wrong. `acknowledged` has the number of records for each partition: 0 to n-1."""
    told = [tenures_of(life) for life in lives]
    found = [sentence for one in told for sentence in one.odd]
    for partition, count in sorted(acknowledged.items()):
        tenures = sorted(
            (tenure for one in told for tenure in one.tenures if tenure.partition == partition),
            key=lambda tenure: tenure.begun_us,
        )
        found += _never_read(partition, tenures, count)
        found += _overlaps(tenures, session)
        found += _wrong_starts(tenures, lives)
        found += _read_again(tenures)
        found += _going_back(partition, lives)
    return found


def _never_read(partition: int, tenures: Iterable[Tenure], count: int) -> Iterator[str]:
    runs = sorted((event.first, event.last) for tenure in tenures for event in tenure.reads)
    expected = 0
    for first, last in runs:
        if first > expected:
            yield f"partition {partition}: offsets {expected} to {first - 1} were read by nobody"
        expected = max(expected, last + 1)
    if expected < count:
        yield f"partition {partition}: offsets {expected} to {count - 1} were read by nobody"


def _overlaps(tenures: Iterable[Tenure], session: Session) -> Iterator[str]:
    """By their beginning; whoever has it longest so far must be through before the next one begins."""
    before: Tenure | None = None
    for tenure in tenures:
        if before is not None and tenure.begun_us < (free := _free_us(before, tenure, session)):
            early_ms = (free - tenure.begun_us) / 1000
            yield (
                f"partition {tenure.partition} was given to {tenure.owner.name} {early_ms:.1f} ms before"
                f" {before.owner.name} was through ({before.ending.value})"
            )
        if (
            before is None
            or _is_same_instance(before, tenure)
            or _free_us(tenure, None, session) > _free_us(before, None, session)
        ):
            before = tenure


def _free_us(tenure: Tenure, next_one: Tenure | None, session: Session) -> int:
    """From when on the partition may be in other hands."""
    if tenure.ending is not Ending.KILLED:
        return tenure.ended_us
    if next_one is not None and _is_same_instance(tenure, next_one):
        return tenure.ended_us
    return tenure.ended_us + session.silence_us_min


def _is_same_instance(one: Tenure, other: Tenure) -> bool:
    """Whether both are a static member, before and after its restart."""
    return one.owner.instance is not None and one.owner.instance == other.owner.instance


def _wrong_starts(tenures: Sequence[Tenure], lives: Sequence[Life]) -> Iterator[str]:
    commits = _acknowledged_commits(tenures[0].partition, lives) if tenures else []
    unanswered: set[int] = set()
    for tenure in tenures:
        if tenure.reads:
            start = tenure.reads[0]
            saved = max((at, offset) for at, offset in [(0, 0), *commits] if at <= start.at_us)[1]
            if start.first != saved and start.first not in unanswered:
                yield (
                    f"partition {tenure.partition}: {tenure.owner.name} began at offset {start.first},"
                    f" and {saved} was committed"
                )
        if tenure.unanswered is not None:
            unanswered.add(tenure.unanswered)


def _read_again(tenures: Sequence[Tenure]) -> Iterator[str]:
    with_reads = [tenure for tenure in tenures if tenure.reads]
    for before, after in pairwise(with_reads):
        start, end = after.reads[0].first, before.next_offset
        if end is not None and start < end and before.ending.is_clean:
            yield (
                f"partition {after.partition}: {after.owner.name} read offsets {start} to {end - 1} again,"
                f" although {before.owner.name} gave them up cleanly ({before.ending.value})"
            )


def _going_back(partition: int, lives: Sequence[Life]) -> Iterator[str]:
    for (_, before), (_, after) in pairwise(_acknowledged_commits(partition, lives)):
        if after < before:
            yield f"partition {partition}: offset {after} was committed after {before}"


def _acknowledged_commits(partition: int, lives: Sequence[Life]) -> list[tuple[int, int]]:
    """When, and at which offset."""
    found = [
        (event.at_us, offset)
        for life in lives
        for event in life.events
        if event.word == "committed"
        for where, offset in event.positions
        if where == partition
    ]
    # In the order of time alone: two in one microsecond are told in the order of the journals.
    return sorted(found, key=lambda commit: commit[0])
