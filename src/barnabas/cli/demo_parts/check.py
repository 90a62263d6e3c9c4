"""Compare the expected results of the generator with the results that were read back. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from barnabas.cli.demo_parts.clicks import REASONS, Expected, Hour, Kind

_EXAMPLES_MAX: Final = 3


@dataclass(frozen=True, kw_only=True)
class Found:
    """The results read back from the topics and from Parquet."""

    in_topic: int
    # Records up to the committed offsets of the pipeline's group.
    read: int
    dropped: Mapping[str, int]
    written_ids: list[str]
    landed_ids: list[str]
    hours: list[tuple[Hour, int]]

    @property
    def duplicates(self) -> int:
        """Records that were read, but neither written nor dropped with a reason."""
        return self.read - len(self.written_ids) - sum(self.dropped.values())


class Row(NamedTuple):
    what: str
    expected: int
    found: int


@dataclass(frozen=True)
class Verdict:
    rows: list[Row]
    # Descriptions of the differences; empty if the check passed.
    wrong: list[str]


def judge(expected: Expected, found: Found, watermark_ms: int) -> Verdict:
    hours = expected.closed_hours(watermark_ms)
    sound = len(expected.sound_ids)
    rows = [
        Row("produced", expected.events, found.in_topic),
        Row("read by Spark", expected.events, found.read),
        *(
            Row(f"dropped: {one.value}", expected.kinds[one], found.dropped.get(one.value, 0))
            for one in REASONS
        ),
        Row("dropped: duplicate", expected.kinds[Kind.DUPLICATE], found.duplicates),
        Row("written to the topic", sound, len(found.written_ids)),
        Row("written to Parquet", sound, len(found.landed_ids)),
        Row("hours counted, by page", len(hours), len(found.hours)),
        Row("clicks in these hours", sum(hours.values()), sum(clicks for _, clicks in found.hours)),
    ]
    wrong = [
        f"{row.what}: found {row.found}, expected {row.expected}" for row in rows if row.found != row.expected
    ]
    unknown = sorted(found.dropped.keys() - {one.value for one in REASONS})
    if unknown:
        wrong.append(f"unknown drop reasons: {', '.join(unknown)}")
    wrong += _check_ids("written to the topic", found.written_ids, expected.sound_ids)
    wrong += _check_ids("written to Parquet", found.landed_ids, expected.sound_ids)
    wrong += _check_hours(hours, found.hours)
    return Verdict(rows, wrong)


def _check_ids(where: str, ids: Iterable[str], expected: set[str]) -> list[str]:
    counted = Counter(ids)
    doubled = [one for one, times in counted.items() if times > 1]
    return [
        f"{where}: {len(some)} ids {how}: {_examples(some)}"
        for how, some in (
            ("more than once", doubled),
            ("missing", expected - counted.keys()),
            ("unexpected", counted.keys() - expected),
        )
        if some
    ]


def _check_hours(expected: Mapping[Hour, int], found: list[tuple[Hour, int]]) -> list[str]:
    """Check that every hour of every page occurs once with the right count."""
    if Counter(found) == Counter(expected.items()):
        return []
    different = [hour for hour, clicks in found if expected.get(hour) != clicks]
    doubled = len(found) - len({hour for hour, _ in found})
    missing = len(expected.keys() - {hour for hour, _ in found})
    return [f"hours: {len(different)} with a wrong count, {doubled} repeated, {missing} missing"]


def _examples(some: Iterable[str]) -> str:
    names = sorted(some)
    return ", ".join(names[:_EXAMPLES_MAX]) + (" ..." if len(names) > _EXAMPLES_MAX else "")
