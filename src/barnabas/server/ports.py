"""A node's interfaces to the outside world, and its share of the system's resources.

The simulator provides its own interfaces. The file descriptors of a process are divided into shares for logs,
connections and a reserve, so that clients cannot take those that logs and checkpoints need.
cli/descriptor_limit.py divides the limit of the process. The file system keeps to the share of logs, and
network/admission.py to that of connections.
"""

from random import Random
from typing import Final

from barnabas.base.checksum import Checksums
from barnabas.base.clock import Clock
from barnabas.base.executor import Executor
from barnabas.base.memory import UNKNOWN_BYTES
from barnabas.base.values import value
from barnabas.storage.files import FileSystem

# Logs reuse theirs: a file that has not been used for a while is closed, and reopened when needed.
LOGS_PART: Final = 16
LOGS_MIN: Final = 64
LOGS_MAX: Final = 4096
# The reserve is for checkpoints, directory syncs, listeners, the event loop and metrics over HTTP.
RESERVE_PART: Final = 8
RESERVE_MIN: Final = 64
RESERVE_MAX: Final = 128
# The process could not start with fewer, and an operator must be able to connect to find the problem.
CONNECTIONS_MIN: Final = 16


@value(kw_only=True)
class DescriptorBudget:
    """`total` is the limit of the process. The shares exceed it only if it is below their minimums."""

    total: int
    logs: int
    connections: int
    reserve: int


@value(kw_only=True)
class Ports:
    """Files, time, randomness, and the executor of blocking work."""

    fs: FileSystem
    clock: Clock
    executor: Executor
    checksums: Checksums
    rng: Random
    # Advertised to clients for listeners without a host.
    hostname: str
    # How long the loop may poll after responses have been sent (BusyPoll); 0 if others need the CPU.
    busy_poll_ns: int = 0
    # The memory that the process may use.
    memory_bytes: int = UNKNOWN_BYTES
    # The division of the process' descriptors; None if they are not divided.
    descriptors: DescriptorBudget | None = None


def divide(total: int) -> DescriptorBudget:
    """Divide the descriptors of a process."""
    reserve = min(RESERVE_MAX, max(RESERVE_MIN, total // RESERVE_PART))
    logs = min(LOGS_MAX, max(LOGS_MIN, total // LOGS_PART))
    connections = max(CONNECTIONS_MIN, total - reserve - logs)
    return DescriptorBudget(total=total, logs=logs, connections=connections, reserve=reserve)
