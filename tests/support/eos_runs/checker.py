"""What must be true when a run is over: everything once, whole transactions or nothing, and nothing stuck.

- The input, read with read_committed, has the numbers 0 to n-1 in each partition, in this order; n is what
  the source committed with its last transaction.
- The output has one record for each of them, in the partition where it belongs, and in the order of the
  input.
- No record is of a transaction that was aborted or whose commit was never asked for; and of every transaction
  that was answered as committed all records are there. One whose answer nobody heard is there as a whole or
  not at all.
- The workers' group has committed the end of the input: after its last record, or after the markers and
  aborted records behind that one, which some clients count.
- No last stable offset is behind its high watermark.
- Who read along with read_committed all the while saw the same, in the same order.

Pure; every fault is a sentence, and no faults is an empty list.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeAlias

from support.eos_runs.journal import Life
from support.eos_runs.records import INPUT, OUTPUT, Mark, Seen, output_partition

Topic: TypeAlias = Mapping[int, Sequence[Seen]]
EXAMPLES_SHOWN = 5


@dataclass(frozen=True, slots=True)
class End:
    """How far one partition is for those who read all, and for those who read what is committed."""

    place: str
    high_watermark: int
    last_stable: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """All that is known when a run is over.

    `numbers` is what the source committed: how many records each input partition has; `input_ends` are the
    high watermarks there; `offsets` is what the workers committed; `witnessed` is what was read along of the
    output.
    """

    run: str
    input: Topic
    output: Topic
    witnessed: Topic
    numbers: Mapping[int, int]
    input_ends: Mapping[int, int]
    offsets: Mapping[int, int]
    ends: Sequence[End]
    sources: Sequence[Life]
    workers: Sequence[Life]


def faults(result: Result) -> list[str]:
    """Everything that is wrong."""
    return [
        *_strangers(result),
        *_wrong_input(result),
        *_wrong_output(result),
        *_wrong_transactions("input", result.input, result.sources),
        *_wrong_transactions("output", result.output, result.workers),
        *_wrong_offsets(result),
        *_stuck(result.ends),
        *_seen_otherwise(result),
    ]


def _strangers(result: Result) -> Iterator[str]:
    for name, kind, topic in (("input", INPUT, result.input), ("output", OUTPUT, result.output)):
        for where, records in topic.items():
            for record in records:
                mark = record.mark
                if mark is None or mark.kind != kind or mark.run != result.run:
                    yield f"{name} {where}, offset {record.offset}: not of this run: {record.value!r}"


def _wrong_input(result: Result) -> Iterator[str]:
    for where, count in sorted(result.numbers.items()):
        marks = [record.mark for record in result.input.get(where, ()) if record.mark is not None]
        for mark in marks:
            if mark.partition != where:
                yield f"input {where}: has {mark.partition}/{mark.number}, which is of another partition"
        yield from _wrong_numbers(f"input partition {where}", [mark.number for mark in marks], count)
        yield from _out_of_order(f"input partition {where}", marks)


def _wrong_output(result: Result) -> Iterator[str]:
    numbers: dict[int, list[int]] = {where: [] for where in result.numbers}
    for where, records in sorted(result.output.items()):
        by_input: dict[int, list[Mark]] = {}
        for record in records:
            mark = record.mark
            if mark is None:
                continue
            if where != output_partition(mark.partition, mark.number, len(result.output)):
                yield f"output {where}, offset {record.offset}: {mark.partition}/{mark.number} is not of here"
            by_input.setdefault(mark.partition, []).append(mark)
        for partition, marks in sorted(by_input.items()):
            numbers.setdefault(partition, []).extend(mark.number for mark in marks)
            yield from _out_of_order(f"output {where}, of input partition {partition}", marks)
    for partition, found in sorted(numbers.items()):
        yield from _wrong_numbers(f"output of input partition {partition}", found, result.numbers[partition])


def _wrong_numbers(what: str, found: Sequence[int], count: int) -> Iterator[str]:
    times = Counter(found)
    if missing := [number for number in range(count) if number not in times]:
        yield f"{what}: {len(missing)} missing: {_some(missing)}"
    if doubled := sorted(number for number, each in times.items() if each > 1):
        yield f"{what}: {len(doubled)} there twice: {_some(doubled)}"
    if beyond := sorted(number for number in times if number >= count):
        yield f"{what}: {len(beyond)} that were never committed: {_some(beyond)}"


def _out_of_order(what: str, marks: Sequence[Mark]) -> Iterator[str]:
    for before, after in pairwise(marks):
        if after.number < before.number:
            yield f"{what}: {after.number} of {after.life} after {before.number} of {before.life}"


@dataclass(slots=True)
class _Transaction:
    """What its journal says of it."""

    wrote: set[tuple[int, int]] = field(default_factory=set)
    was_asked_for: bool = False
    answer: str = ""


def _wrong_transactions(name: str, topic: Topic, lives: Iterable[Life]) -> Iterator[str]:
    there: dict[tuple[str, int], set[tuple[int, int]]] = {}
    for records in topic.values():
        for mark in (record.mark for record in records if record.mark is not None):
            there.setdefault((mark.life, mark.transaction), set()).add((mark.partition, mark.number))
    for life in lives:
        for number, told in sorted(_transactions(life).items()):
            found = there.pop((life.name, number), set())
            what = f"{name}: transaction {number} of {life.name}"
            lost = told.wrote - found
            if told.answer == "aborted" and found:
                yield f"{what} was aborted, and {len(found)} of its records are seen: {_some(found)}"
            elif told.answer == "committed" and lost:
                yield f"{what} was committed, and {len(lost)} of its records are not seen: {_some(lost)}"
            elif not told.answer and found and not told.was_asked_for:
                yield f"{what} was never committed, and {len(found)} of its records are seen: {_some(found)}"
            elif not told.answer and found and lost:
                yield f"{what} is seen in part: {len(lost)} of its records are not: {_some(lost)}"
    for (owner, number), found in sorted(there.items()):
        # Killed before it had written anything down: its commit was not asked for.
        yield f"{name}: transaction {number} of {owner} was never committed, and is seen: {_some(found)}"


def _transactions(life: Life) -> dict[int, _Transaction]:
    told: dict[int, _Transaction] = {}
    for event in life.events:
        if event.transaction < 0:
            continue
        transaction = told.setdefault(event.transaction, _Transaction())
        if event.word == "wrote":
            [partition] = event.partitions
            numbers = range(event.first, event.last + 1)
            transaction.wrote |= {(partition, number) for number in numbers}
        elif event.word == "committing":
            transaction.was_asked_for = True
        else:
            transaction.answer = event.word
    return told


def _wrong_offsets(result: Result) -> Iterator[str]:
    for where in sorted(result.numbers):
        records = result.input.get(where, ())
        after_last = records[-1].offset + 1 if records else 0
        end = result.input_ends[where]
        committed = max(0, result.offsets.get(where, 0))
        if not after_last <= committed <= end:
            yield (
                f"input partition {where}: offset {committed} is committed,"
                f" and {after_last} is after its last record, {end} its end"
            )


def _stuck(ends: Iterable[End]) -> Iterator[str]:
    for end in ends:
        if end.last_stable != end.high_watermark:
            yield f"{end.place}: stable to {end.last_stable} and no further, of {end.high_watermark}"


def _seen_otherwise(result: Result) -> Iterator[str]:
    for where, records in sorted(result.output.items()):
        along = result.witnessed.get(where, ())
        if list(along) == list(records):
            continue
        at = next(
            (index for index, pair in enumerate(zip(along, records, strict=False)) if pair[0] != pair[1]), -1
        )
        at = at if at >= 0 else min(len(along), len(records))
        yield (
            f"output {where}: read along as {_one(along, at)}, and now {_one(records, at)}"
            f" (record {at} of {len(along)} and {len(records)})"
        )


def _one(records: Sequence[Seen], at: int) -> str:
    return f"offset {records[at].offset}: {records[at].value!r}" if at < len(records) else "nothing"


def _some(found: Iterable[object]) -> str:
    shown = sorted(found, key=repr) if isinstance(found, set) else list(found)
    more = ", ..." if len(shown) > EXAMPLES_SHOWN else ""
    return ", ".join(map(str, shown[:EXAMPLES_SHOWN])) + more
