"""What a member is told when it starts, and how it is told to leave.

The orders are a JSON object, the only argument of its program, in whatever language that is. It says that it
is ready, and joins when it is sent a line; so how long a program takes to start is no part of any story. When
its standard input ends, it commits what it has read, leaves its group, and exits with 0.
"""

import json
import select
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from support.group_runs.journal import Journal

# How long a member waits for records before it looks whether it is to leave.
POLL_MS = 50
RECORDS_MAX = 500
# Commits are made by hand, this often.
COMMIT_EVERY_MS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """`protocol` is "classic" or "consumer"; `assignor` is a name that the client knows, or empty."""

    address: str
    topic: str
    group: str
    journal: str
    protocol: str
    assignor: str
    instance: str | None
    session_ms: int
    heartbeat_ms: int
    poll_ms: int = POLL_MS
    records_max: int = RECORDS_MAX
    commit_every_ms: int = COMMIT_EVERY_MS

    def text(self) -> str:
        return json.dumps(asdict(self))

    @property
    def journal_path(self) -> Path:
        return Path(self.journal)


def own_orders() -> Orders:
    """Those of this process, whatever it needs to load being loaded. Back when it is to join."""
    orders = Orders(**json.loads(sys.argv[1]))
    Journal(orders.journal_path).write("ready")
    sys.stdin.readline()
    return orders


def told_to_leave() -> bool:
    return bool(select.select([sys.stdin], [], [], 0)[0])
