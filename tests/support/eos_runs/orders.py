"""What a process is told when it starts, and how it is told to leave.

The orders are a JSON object, the only argument of its program. It says that it is ready, and begins when it
is sent a line; so how long a program takes to start is no part of any story. When its standard input ends, it
ends what it has begun, and exits with 0. One that met an error that nothing helps against exits with FATAL:
it is to be started again.
"""

import faulthandler
import json
import os
import select
import signal
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from support.eos_runs.journal import Journal

FATAL = 3
POLL_MS = 20
# A broker that was killed is there again soon, and is to be found soon.
RECONNECT_MS_MAX = 200


class Fatal(Exception):
    """Nothing helps but to begin anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """`protocol` is "classic" or "consumer"; without `transactional_id` nothing is transactional, which is
    how records get lost or doubled."""

    address: str
    run: str
    life: str
    journal: str
    input_topic: str
    output_topic: str
    input_partitions: int
    output_partitions: int
    source_group: str
    group: str
    transactional_id: str | None
    transaction_timeout_ms: int
    protocol: str
    assignor: str
    instance: str | None
    session_ms: int
    heartbeat_ms: int
    seed: int
    poll_ms: int = POLL_MS

    def text(self) -> str:
        return json.dumps(asdict(self))

    @property
    def journal_path(self) -> Path:
        return Path(self.journal)


def own_orders() -> tuple[Orders, Journal]:
    """Those of this process, whatever it needs to load being loaded. Back when it is to begin."""
    # Whoever waits for this process in vain can ask where it is: see processes.py.
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    orders = Orders(**json.loads(sys.argv[1]))
    journal = Journal(orders.journal_path)
    journal.write("ready")
    sys.stdin.readline()
    return orders, journal


def told_to_leave() -> bool:
    return bool(select.select([sys.stdin], [], [], 0)[0])


def carry_out(program: Callable[[Orders, Journal], None]) -> None:
    """The whole of a process."""
    orders, journal = own_orders()
    try:
        program(orders, journal)
    except Fatal as fatal:
        journal.write("fatal", fatal)
        # Without the destructors: that of librdkafka's consumer, if it was not closed, may wait for ever.
        os._exit(FATAL)
