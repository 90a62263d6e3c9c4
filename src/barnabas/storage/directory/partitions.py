"""The directories of partitions: what their names say, and how those are called that are out of use.

A log that is deleted, moved or not ours is renamed first: `orders-0.<unique id>-delete`. The rename is one
step on the disk, and the partition's own name is free again at once.
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
# What file systems allow. A topic's name may have 249 characters, so there is not always room for the rest.
_NAME_MAX: Final = 255


class DirectoryKind(Enum):
    """What a partition's directory is for, by the end of its name."""

    LOG = ""
    # On its way out: removed when nobody reads from it any more.
    DELETE = DELETE_DIRECTORY
    # A copy that catches up and will take the place of the log in another log directory.
    FUTURE = FUTURE_DIRECTORY
    # Of a partition that is not this broker's. Kept for an operator to look at.
    STRAY = STRAY_DIRECTORY


@value
class PartitionDirectory:
    """The topic may be cut short, except for LOG."""

    name: str
    tp: TopicPartition
    kind: DirectoryKind


def classify(name: str) -> PartitionDirectory | None:
    """What a directory of this name holds; None if it is not a partition's."""
    for kind in (DirectoryKind.DELETE, DirectoryKind.FUTURE, DirectoryKind.STRAY):
        if name.endswith(kind.value):
            plain, _, unique = name.removesuffix(kind.value).rpartition(".")
            return _read(name, plain, kind) if unique else None
    return _read(name, name, DirectoryKind.LOG)


def aside_name(tp: TopicPartition, kind: DirectoryKind, unique: str) -> str:
    """What to rename a partition's directory to. `unique` keeps apart what goes the same way twice."""
    assert kind is not DirectoryKind.LOG, f"{tp} has its own name already"
    rest = f"-{tp.partition}.{unique}{kind.value}"
    return tp.topic[: _NAME_MAX - len(rest)] + rest


def _read(name: str, plain: str, kind: DirectoryKind) -> PartitionDirectory | None:
    tp = parse_directory_name(plain)
    # Of the names that could be read as one partition, such as t-7 and t-07, only one is its own.
    if tp is None or tp.partition > _PARTITION_MAX or directory_name(tp) != plain:
        return None
    return PartitionDirectory(name, tp, kind)
