"""Names of partition directories, in use and out of use.

A log that is deleted, moved or not ours is renamed first: `orders-0.<unique id>-delete`. The rename is atomic
and frees the partition's own name at once.
"""

from enum import Enum
from typing import Final

from barnabas.base.ids import TopicPartition
from barnabas.base.values import value
from barnabas.storage.names import (
    DELETE_DIRECTORY,
    FUTURE_DIRECTORY,
    STRAY_DIRECTORY,
    directory_name,
    parse_directory_name,
)

_PARTITION_MAX: Final = 2**31 - 1
# File systems allow 255 bytes and a topic name may have 249, so the topic is shortened if necessary.
_NAME_MAX: Final = 255


class DirectoryKind(Enum):
    """The purpose of a partition's directory, by its suffix."""

    LOG = ""
    # Deleted; the files go after file.delete.delay.ms, when no reader uses them.
    DELETE = DELETE_DIRECTORY
    # A copy in another log directory that catches up and will replace the log.
    FUTURE = FUTURE_DIRECTORY
    # A partition that is not assigned to this broker, kept for an operator to inspect.
    STRAY = STRAY_DIRECTORY


@value
class PartitionDirectory:
    """A parsed name. Except for LOG, the topic may be shortened."""

    name: str
    tp: TopicPartition
    kind: DirectoryKind


def classify(name: str) -> PartitionDirectory | None:
    """Parse a directory's name; None if it is not a partition's."""
    for kind in (DirectoryKind.DELETE, DirectoryKind.FUTURE, DirectoryKind.STRAY):
        if name.endswith(kind.value):
            plain, _, unique = name.removesuffix(kind.value).rpartition(".")
            return _read(name, plain, kind) if unique else None
    return _read(name, name, DirectoryKind.LOG)


def aside_name(tp: TopicPartition, kind: DirectoryKind, unique: str) -> str:
    """The new name for a partition's directory. `unique` tells renamed directories of one partition apart."""
    assert kind is not DirectoryKind.LOG, f"{tp}: the live log keeps its own name"
    rest = f"-{tp.partition}.{unique}{kind.value}"
    return tp.topic[: _NAME_MAX - len(rest)] + rest


def _read(name: str, plain: str, kind: DirectoryKind) -> PartitionDirectory | None:
    tp = parse_directory_name(plain)
    # Several names parse as the same partition (t-7, t-07); accept only the canonical one.
    if tp is None or tp.partition > _PARTITION_MAX or directory_name(tp) != plain:
        return None
    return PartitionDirectory(name, tp, kind)
