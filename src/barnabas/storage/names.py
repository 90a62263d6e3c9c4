"""Build and parse the names of log files and directories."""

from typing import Final

from barnabas.base.ids import TopicPartition

LOG: Final = ".log"
OFFSET_INDEX: Final = ".index"
TIME_INDEX: Final = ".timeindex"
TXN_INDEX: Final = ".txnindex"
SNAPSHOT: Final = ".snapshot"
# The files of one segment, in the order of creation; they may be removed in the reverse order.
SEGMENT_FILES: Final = (LOG, OFFSET_INDEX, TIME_INDEX, TXN_INDEX)

# Suffixes: waiting for removal, written by the cleaner, and committed to replace the cleaned segments.
DELETED: Final = ".deleted"
CLEANED: Final = ".cleaned"
SWAP: Final = ".swap"
# Suffix of rebuilt indexes until they replace the damaged ones.
REBUILT: Final = ".rebuilt"

LEADER_EPOCHS: Final = "leader-epoch-checkpoint"
PARTITION_METADATA: Final = "partition.metadata"

DELETE_DIRECTORY: Final = "-delete"
FUTURE_DIRECTORY: Final = "-future"
STRAY_DIRECTORY: Final = "-stray"

_DIGITS: Final = 20


def file_name(offset: int, kind: str) -> str:
    """For example `00000000000000003041.log`."""
    return f"{offset:0{_DIGITS}d}{kind}"


def split_name(name: str) -> tuple[int, str] | None:
    """The offset and the suffix of a segment file's name; None for other names."""
    digits, rest = name[:_DIGITS], name[_DIGITS:]
    if len(digits) != _DIGITS or not digits.isascii() or not digits.isdigit() or not rest.startswith("."):
        return None
    return int(digits), rest


def directory_name(tp: TopicPartition) -> str:
    return f"{tp.topic}-{tp.partition}"


def parse_directory_name(name: str) -> TopicPartition | None:
    """The partition of a log directory's name; None for other names."""
    topic, dash, number = name.rpartition("-")
    if not topic or not dash or not number.isascii() or not number.isdigit():
        return None
    return TopicPartition(topic, int(number))
