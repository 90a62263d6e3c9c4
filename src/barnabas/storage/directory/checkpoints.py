"""Offset checkpoints: text files that keep one offset per partition, four of them in a log directory.

The first line is the format's version, the second the number of entries, then comes one entry a line:
`topic partition offset`. Kafka's files are read, and what is written here Kafka reads. Both functions wait
for the disk: they are for the executor.
"""

from collections.abc import Mapping
from typing import Final

from barnabas.base.ids import TopicPartition
from barnabas.storage.errors import CorruptFile
from barnabas.storage.files import FileSystem, write_atomically

# Up to where each log is flushed: recovery starts there.
RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
# Where each log starts, if DeleteRecords moved the start into the middle of a segment.
START_OFFSETS: Final = "log-start-offset-checkpoint"
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
# Up to where each log is compacted.
CLEANER_OFFSETS: Final = "cleaner-offset-checkpoint"
OFFSET_CHECKPOINTS: Final = (RECOVERY_POINTS, START_OFFSETS, HIGH_WATERMARKS, CLEANER_OFFSETS)

_VERSION: Final = "0"
_FIRST_ENTRY_LINE: Final = 3
_PARTITION_MAX: Final = 2**31 - 1
_OFFSET_MAX: Final = 2**63 - 1
# No number that fits has more digits; longer ones are refused before they are converted.
_DIGITS_MAX: Final = 19
_SHOWN_MAX: Final = 40


def read_offsets(fs: FileSystem, path: str) -> dict[TopicPartition, int] | None:
    """The offsets in the order of the file, None if there is no file; CorruptFile if it is not whole."""
    try:
        content = fs.read(path)
    except FileNotFoundError:
        return None
    # Kafka makes the file when it opens the directory, and fills it with the first checkpoint.
    if not content:
        return {}
    try:
        lines = content.decode().split("\n")
    except UnicodeDecodeError as error:
        raise CorruptFile(path, f"byte {error.start} is not UTF-8") from None
    if lines[-1] == "":
        lines.pop()
    _check_head(path, lines)
    offsets: dict[TopicPartition, int] = {}
    for number, line in enumerate(lines[_FIRST_ENTRY_LINE - 1 :], _FIRST_ENTRY_LINE):
        parts = line.split()
        if len(parts) != 3:
            raise CorruptFile(path, f"line {number} is {_shown(line)}, not 'topic partition offset'")
        topic, partition, offset = parts
        if not _is_number(partition, _PARTITION_MAX) or not _is_number(offset, _OFFSET_MAX):
            raise CorruptFile(path, f"line {number} is {_shown(line)}: a number is not in its range")
        offsets[TopicPartition(topic, int(partition))] = int(offset)
        if len(offsets) != number - _FIRST_ENTRY_LINE + 1:
            raise CorruptFile(path, f"line {number} has {topic}-{partition} for the second time")
    return offsets


def write_offsets(fs: FileSystem, path: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Replace the file, in the order of the mapping."""
    assert all(offset >= 0 for offset in offsets.values()), f"{path}: a negative offset"
    entries = [f"{topic} {partition} {offset}\n" for (topic, partition), offset in offsets.items()]
    text = f"{_VERSION}\n{len(entries)}\n{''.join(entries)}"
    write_atomically(fs, path, text.encode())


def _check_head(path: str, lines: list[str]) -> None:
    version = lines[0].strip()
    if version != _VERSION:
        raise CorruptFile(path, f"line 1 is {_shown(version)}, not the version {_VERSION}")
    if len(lines) < 2 or not _is_number(lines[1].strip(), _PARTITION_MAX):
        raise CorruptFile(path, "line 2 is not the number of entries")
    found = len(lines) - (_FIRST_ENTRY_LINE - 1)
    if int(lines[1]) != found:
        raise CorruptFile(path, f"line 2 promises {int(lines[1])} entries, and {found} are there")


def _is_number(text: str, largest: int) -> bool:
    if not text.isdigit() or not text.isascii() or len(text) > _DIGITS_MAX:
        return False
    return int(text) <= largest


def _shown(line: str) -> str:
    """A line as an error message shows it: on one line and not longer than a reader wants."""
    return repr(line if len(line) <= _SHOWN_MAX else line[:_SHOWN_MAX] + "...")
