"""What the broker says that one may do to a thing: bits, by the numbers of Kafka's ACL operations."""

from enum import IntEnum
from typing import Final

# Says that nobody asked for operations.
_NOT_ASKED: Final = -(2**31)


class AclOperation(IntEnum):
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


def operations_of(bits: int) -> frozenset[AclOperation] | None:
    """None if nobody asked. What a newer broker can do and we cannot name is left out."""
    if bits == _NOT_ASKED:
        return None
    return frozenset(operation for operation in AclOperation if bits >> operation & 1)
