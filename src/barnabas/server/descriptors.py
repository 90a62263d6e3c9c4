"""Divide the file descriptors of a process into shares: logs, connections and a reserve (pure).

Clients must not be able to take the descriptors that logs and checkpoints need.
cli/serving/descriptor_limit.py divides the limit of the process. The file system keeps to the share of logs,
and admission.py to that of connections.
"""

from typing import Final

from barnabas.base.values import value

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


def divide(total: int) -> DescriptorBudget:
    reserve = min(RESERVE_MAX, max(RESERVE_MIN, total // RESERVE_PART))
    logs = min(LOGS_MAX, max(LOGS_MIN, total // LOGS_PART))
    connections = max(CONNECTIONS_MIN, total - reserve - logs)
    return DescriptorBudget(total=total, logs=logs, connections=connections, reserve=reserve)
