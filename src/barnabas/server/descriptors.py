"""How the file descriptors of a process are divided: for logs, for connections, and a reserve (pure).

Clients must not be able to take the descriptors that logs and checkpoints need. cli/descriptor_limit.py
divides the limit of the process. The file system keeps to the share of logs, and admission.py to that of
connections.
"""

from typing import Final

from barnabas.base.values import value

# Logs share theirs: a file that was not used for a while is closed, and opened when it is needed.
LOGS_PART: Final = 16
LOGS_MIN: Final = 64
LOGS_MAX: Final = 4096
# For checkpoints, directories that are synced, listeners, the event loop, metrics over HTTP.
RESERVE_PART: Final = 8
RESERVE_MIN: Final = 64
RESERVE_MAX: Final = 128
# The process would not come up with fewer, and somebody has to be able to ask what is wrong.
CONNECTIONS_MIN: Final = 16


@value(kw_only=True)
class DescriptorBudget:
    """`total` is the limit of the process; the shares never add up to more, unless it is too low to work."""

    total: int
    logs: int
    connections: int
    reserve: int


def divide(total: int) -> DescriptorBudget:
    reserve = min(RESERVE_MAX, max(RESERVE_MIN, total // RESERVE_PART))
    logs = min(LOGS_MAX, max(LOGS_MIN, total // LOGS_PART))
    connections = max(CONNECTIONS_MIN, total - reserve - logs)
    return DescriptorBudget(total=total, logs=logs, connections=connections, reserve=reserve)
