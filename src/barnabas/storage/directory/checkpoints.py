"""Offset checkpoints: text files with one offset per partition, four of them in a log directory.

The first line is the format version, the second the number of entries, then one entry a line:
`topic partition offset`. The format is Kafka's. Both functions block on the disk, so call them in the
executor.
"""

from collections.abc import Mapping
from typing import Final

from barnabas.base.ids import TopicPartition
from barnabas.storage.errors import CorruptFile
from barnabas.storage.files import FileSystem, write_atomically

# The offset up to which each log is flushed; recovery starts there.
RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
# The start of each log that DeleteRecords moved into the middle of a segment.
START_OFFSETS: Final = "log-start-offset-checkpoint"
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
# The offset up to which each log is compacted.
CLEANER_OFFSETS: Final = "cleaner-offset-checkpoint"
OFFSET_CHECKPOINTS: Final = (RECOVERY_POINTS, START_OFFSETS, HIGH_WATERMARKS, CLEANER_OFFSETS)

_VERSION: Final = "0"
_FIRST_ENTRY_LINE: Final = 3
_PARTITION_MAX: Final = 2**31 - 1
_OFFSET_MAX: Final = 2**63 - 1
# Longer numbers are out of range and rejected before int() is called.
_DIGITS_MAX: Final = 19
_SHOWN_MAX: Final = 40


def read_offsets(fs: FileSystem, path: str) -> dict[TopicPartition, int] | None:
    """The offsets in the order of the file; None without a file; CorruptFile if it is damaged."""
    try:
        content = fs.read(path)
    except FileNotFoundError:
        return None
    # Kafka creates an empty file when it opens the directory, and fills it with the first checkpoint.
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
            raise CorruptFile(path, f"line {number} is {_shown(line)}, expected 'topic partition offset'")
        topic, partition, offset = parts
        if not _is_number(partition, _PARTITION_MAX) or not _is_number(offset, _OFFSET_MAX):
            raise CorruptFile(path, f"line {number} is {_shown(line)}: partition or offset is out of range")
        offsets[TopicPartition(topic, int(partition))] = int(offset)
        if len(offsets) != number - _FIRST_ENTRY_LINE + 1:
            raise CorruptFile(path, f"line {number} repeats partition {topic}-{partition}")
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
        raise CorruptFile(path, f"line 1 is {_shown(version)}, expected version {_VERSION}")
    if len(lines) < 2 or not _is_number(lines[1].strip(), _PARTITION_MAX):
        raise CorruptFile(path, "line 2 is not the number of entries")
    found = len(lines) - (_FIRST_ENTRY_LINE - 1)
    if int(lines[1]) != found:
        raise CorruptFile(path, f"line 2 says {int(lines[1])} entries, found {found}")


def _is_number(text: str, largest: int) -> bool:
    if not text.isdigit() or not text.isascii() or len(text) > _DIGITS_MAX:
        return False
    return int(text) <= largest


def _shown(line: str) -> str:
    """A line quoted and shortened for an error message."""
    return repr(line if len(line) <= _SHOWN_MAX else line[:_SHOWN_MAX] + "...")
