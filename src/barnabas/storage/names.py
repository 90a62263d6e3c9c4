"""What files and directories are called, and what their names say."""

from typing import Final

from barnabas.base.ids import TopicPartition

LOG: Final = ".log"
OFFSET_INDEX: Final = ".index"
TIME_INDEX: Final = ".timeindex"
TXN_INDEX: Final = ".txnindex"
SNAPSHOT: Final = ".snapshot"
# Of one segment, in the order in which they are made and in the reverse of which they may go.
SEGMENT_FILES: Final = (LOG, OFFSET_INDEX, TIME_INDEX, TXN_INDEX)

# Put behind a name: on its way out, written by the cleaner, and chosen to replace what was cleaned.
DELETED: Final = ".deleted"
CLEANED: Final = ".cleaned"
SWAP: Final = ".swap"
# Indexes that are made anew, until they take the place of the damaged ones.
REBUILT: Final = ".rebuilt"

LEADER_EPOCHS: Final = "leader-epoch-checkpoint"
PARTITION_METADATA: Final = "partition.metadata"

DELETE_DIRECTORY: Final = "-delete"
FUTURE_DIRECTORY: Final = "-future"
STRAY_DIRECTORY: Final = "-stray"

_DIGITS: Final = 20


def file_name(offset: int, kind: str) -> str:
    """`00000000000000003041.log` and the like."""
    return f"{offset:0{_DIGITS}d}{kind}"


def split_name(name: str) -> tuple[int, str] | None:
    """The offset and the rest of a segment file's name; None if it is no such name."""
    digits, rest = name[:_DIGITS], name[_DIGITS:]
    if len(digits) != _DIGITS or not digits.isascii() or not digits.isdigit() or not rest.startswith("."):
        return None
    return int(digits), rest


def directory_name(tp: TopicPartition) -> str:
    return f"{tp.topic}-{tp.partition}"


def parse_directory_name(name: str) -> TopicPartition | None:
    """The partition whose log is in a directory of this name; None if it cannot be one."""
    topic, dash, number = name.rpartition("-")
    if not topic or not dash or not number.isascii() or not number.isdigit():
        return None
    return TopicPartition(topic, int(number))
