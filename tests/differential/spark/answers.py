"""The result of a case, and the recorded results of spark-sql-kafka.

Rows are written as places, `{"orders-0": "0-9,12"}`: what stands at a place is the same in every case, and is
recorded once. `make answers` writes the recording.
"""

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

RECORDED: Final = Path(__file__).parents[2] / "fixtures" / "spark-sql-kafka-4.2.0" / "batch.json"
# A longer value is recorded as its size and hash.
_SHOWN_BYTES: Final = 300
_LOG_APPEND_TIME: Final = 1

# Offset, key, value, time in milliseconds (none if it is of the log), its kind, headers.
Content: TypeAlias = list[Any]
Contents: TypeAlias = dict[str, dict[int, Content]]


class Row(NamedTuple):
    """A row of either source; `headers` is left out (False) where the frame has no such column."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    timestamp_type: int
    headers: list[tuple[str, bytes | None]] | bool | None

    @property
    def place(self) -> str:
        return f"{self.topic}-{self.partition}"

    def content(self) -> Content:
        headers = self.headers
        if not isinstance(headers, bool) and headers is not None:
            headers = [[name, _text(value)] for name, value in headers]  # type: ignore[misc]
        is_of_log = self.timestamp_type == _LOG_APPEND_TIME
        time_ms = None if is_of_log else self.timestamp_ms
        return [self.offset, _text(self.key), _text(self.value), time_ms, self.timestamp_type, headers]


class Answer(NamedTuple):
    """Where rows were read, or why none were; in how many tasks, if that is compared."""

    read: dict[str, str] | None
    has_headers: bool = False
    tasks: int | None = None
    # The class of the error, and how its message begins.
    refused: str = ""
    why: str = ""

    @property
    def rows(self) -> int:
        return sum(_count(offsets) for offsets in (self.read or {}).values())

    def outcome(self) -> tuple[object, ...]:
        """The part of a result that both sources must share; classes and texts of errors differ."""
        return (self.read, self.has_headers, self.tasks)

    def __str__(self) -> str:
        return f"{self.refused}: {self.why}" if self.read is None else f"{self.rows} rows {self.read}"


class Recording(NamedTuple):
    contents: Contents
    answers: dict[str, Answer]


def answer_of(rows: Iterable[Row], contents: Contents, tasks: int | None) -> Answer:
    """AssertionError if a row is not what is known to stand at its place."""
    offsets: dict[str, list[int]] = {}
    has_headers = False
    for row in rows:
        has_headers |= row.headers is not False
        # The cluster's own topics have other records each time.
        if not row.topic.startswith("__"):
            known, found = contents[row.place].get(row.offset), row.content()
            if known is not None and row.headers is False:
                known = [*known[:-1], False]
            assert found == known, f"{row.place} at {row.offset}: {found}, not {known}"
        offsets.setdefault(row.place, []).append(row.offset)
    read = {place: ranges_of(sorted(found)) for place, found in sorted(offsets.items())}
    return Answer(read, has_headers, tasks)


def contents_of(rows: Iterable[Row]) -> Contents:
    contents: Contents = {}
    for row in rows:
        contents.setdefault(row.place, {})[row.offset] = row.content()
    return contents


def ranges_of(offsets: list[int]) -> str:
    """0-9,12: one that is there twice is in two ranges."""
    ranges: list[list[int]] = []
    for offset in offsets:
        if ranges and offset == ranges[-1][1] + 1:
            ranges[-1][1] = offset
        else:
            ranges.append([offset, offset])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


def _count(ranges: str) -> int:
    ends = [part.split("-") for part in ranges.split(",")]
    return sum(int(end[-1]) - int(end[0]) + 1 for end in ends)


def _text(value: bytes | None) -> str | None:
    if value is None:
        return None
    if len(value) > _SHOWN_BYTES:
        return f"{len(value)} bytes, SHA-256 {sha256(value).hexdigest()}"
    return bytes(value).decode("latin-1")


def load() -> Recording:
    told = json.loads(RECORDED.read_text())
    contents = {place: {row[0]: row for row in rows} for place, rows in told["contents"].items()}
    return Recording(contents, {name: Answer(**answer) for name, answer in told["answers"].items()})


def save(recording: Recording) -> None:
    """A line for each record and each case, so that changes can be reviewed."""
    contents = {
        place: [_line(rows[offset]) for offset in sorted(rows)] for place, rows in recording.contents.items()
    }
    places = [f'"{place}": [\n{_joined(rows)}\n]' for place, rows in sorted(contents.items())]
    answers = [f'"{name}": {_line(_told(answer))}' for name, answer in recording.answers.items()]
    RECORDED.parent.mkdir(exist_ok=True)
    RECORDED.write_text(
        f'{{"contents": {{\n{_joined(places)}\n}},\n"answers": {{\n{_joined(answers)}\n}}}}\n'
    )


def _told(answer: Answer) -> Mapping[str, object]:
    defaults = Answer._field_defaults
    return {
        name: value
        for name, value in answer._asdict().items()
        if name not in defaults or value != defaults[name]
    }


def _joined(lines: list[str]) -> str:
    return ",\n".join(lines)


def _line(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
