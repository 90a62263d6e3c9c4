"""Kafka's ACL operations with their wire numbers, and the bit fields of authorized operations.

The bits are the numbers of the operations. Without ACLs, every operation that a resource type supports is
authorized.
"""

from enum import IntEnum
from typing import Final

# The bit field's value if the request did not ask for operations.
NOT_ASKED: Final = -(2**31)


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


def operation_bits(*operations: AclOperation) -> int:
    return sum(1 << operation for operation in operations)


def operations_of(bits: int) -> frozenset[AclOperation] | None:
    """The operations of a bit field; None if not requested. Unknown bits of newer brokers are ignored."""
    if bits == NOT_ASKED:
        return None
    return frozenset(operation for operation in AclOperation if bits >> operation & 1)


# All operations that a resource type supports.
OF_TOPIC: Final = operation_bits(
    AclOperation.READ,
    AclOperation.WRITE,
    AclOperation.CREATE,
    AclOperation.DELETE,
    AclOperation.ALTER,
    AclOperation.DESCRIBE,
    AclOperation.DESCRIBE_CONFIGS,
    AclOperation.ALTER_CONFIGS,
)
OF_GROUP: Final = operation_bits(
    AclOperation.READ,
    AclOperation.DESCRIBE,
    AclOperation.DELETE,
    AclOperation.DESCRIBE_CONFIGS,
    AclOperation.ALTER_CONFIGS,
)
OF_CLUSTER: Final = operation_bits(
    AclOperation.CREATE,
    AclOperation.ALTER,
    AclOperation.DESCRIBE,
    AclOperation.CLUSTER_ACTION,
    AclOperation.DESCRIBE_CONFIGS,
    AclOperation.ALTER_CONFIGS,
    AclOperation.IDEMPOTENT_WRITE,
)
