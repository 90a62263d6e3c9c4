"""What sources and workers do, whichever client they have: what is made of a record, how long things take.

source.py and worker.py are with confluent-kafka, own_source.py and own_worker.py with our own client.
"""

import random
from dataclasses import dataclass

from support.eos_runs.journal import Journal
from support.eos_runs.orders import Fatal, Orders
from support.eos_runs.records import OUTPUT, Mark, output_partition, read_mark

# The source.
EVERY_S = 0.05
SOURCE_RECORDS_MAX = 20
SOURCE_PARTS_ABORTED = 0.1
# A worker.
TRANSACTION_S_MAX = 0.3
RECORDS_MAX = 2000
# Of the transactions; on purpose, after their records and offsets have come into the logs.
PARTS_ABORTED = 0.05
# Both of them.
LINGER_MS = 5
PARTS_HESITATED = 0.3
HESITATION_S_MAX = 0.2
# A call does not take longer, whatever is the matter.
CALL_TIMEOUT_S = 3.0
# A broker that restarts is waited for this long. Then the process gives up, and is started again.
PATIENCE_S = 60.0
TRY_AGAIN_AFTER_S = 0.05


@dataclass(frozen=True, slots=True)
class Made:
    """A record for output partition `to`, of what input partition `of` has as its number `number`."""

    to: int
    value: bytes
    of: int
    number: int


def make_of(value: bytes, place: str, orders: Orders, transaction: int) -> Made:
    """What the input has at `place`, as a record of this process and its transaction."""
    read = read_mark(value)
    if read is None:
        raise Fatal(f"{place} is not of the source: {value!r}")
    made = Mark(OUTPUT, read.run, read.partition, read.number, orders.life, transaction)
    to = output_partition(read.partition, read.number, orders.output_partitions)
    return Made(to, made.text(), read.partition, read.number)


def group_settings(orders: Orders) -> dict[str, object]:
    """How a worker is a member; both clients have the same names for it."""
    chosen: dict[str, object] = {}
    if orders.protocol == "classic":
        # The broker says them in the new protocol.
        chosen["session.timeout.ms"] = orders.session_ms
        chosen["heartbeat.interval.ms"] = orders.heartbeat_ms
        if orders.assignor:
            chosen["partition.assignment.strategy"] = orders.assignor
    if orders.instance is not None:
        chosen["group.instance.id"] = orders.instance
    return chosen


def hesitation_s(rng: random.Random) -> float:
    """Sometimes more than 0: so that a kill finds offsets that are sent, and no commit asked for."""
    return rng.uniform(0.0, HESITATION_S_MAX) if rng.random() < PARTS_HESITATED else 0.0


class Written:
    """The numbers that the open transaction has written, by input partition."""

    def __init__(self) -> None:
        self._numbers: dict[int, list[int]] = {}

    def add(self, partition: int, number: int) -> None:
        self._numbers.setdefault(partition, []).append(number)

    def tell(self, journal: Journal, transaction: int) -> None:
        """Once: what comes after this is told the next time."""
        for partition, numbers in sorted(self._numbers.items()):
            journal.wrote(transaction, partition, numbers)
        self.clear()

    def clear(self) -> None:
        self._numbers.clear()
