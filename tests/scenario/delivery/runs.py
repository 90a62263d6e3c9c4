"""A program of the guide that is fed numbered orders and killed, again and again, until it has done them all.

with delivery_run("at_least_once.py", directory, pace=A_LINE_AN_ORDER) as run:
    run.disturb()
    run.finish(run.printed)
"""

import os
import random
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import NamedTuple

from barnabas.client.blocking import Admin, Consumer, Producer
from scenario.delivery.programs import PROGRAMS, WAIT_S_MAX, Life
from support.process.our_broker import OurBroker
from support.scale import scaled

PARTITIONS = 3
# Records of one key are in one partition, there and in the output, and so keep their order.
KEYS = 5
# BARNABAS_KILLS=100 for a longer look.
KILLS = scaled("BARNABAS_KILLS", short=8, soak=60)
READ_WAIT_MS = 50
FEED_AGAIN_AFTER_S = 0.2
BROKER_SETTINGS = {
    "group.initial.rebalance.delay.ms": 0,
    "offsets.topic.num.partitions": 4,
    "transaction.state.log.num.partitions": 4,
}
TWO_PHASE_SETTINGS = {
    **BROKER_SETTINGS,
    "unstable.api.versions.enable": "true",
    "transaction.two.phase.commit.enable": "true",
}


class Pace(NamedTuple):
    """A life is killed at work: soon after one of its first lines, and before it has done all its orders."""

    lines_max: int
    orders: int


# Some programs print a line an order; the others one a batch, and are done with 100 orders in 20 ms.
A_LINE_AN_ORDER = Pace(lines_max=60, orders=100)
A_LINE_A_BATCH = Pace(lines_max=4, orders=400)


class DeliveryRun:
    def __init__(
        self, address: str, name: str, directory: Path, more: tuple[str, ...], pace: Pace, seed: int
    ) -> None:
        self.address = address
        self.fed = 0
        self.rng = random.Random(seed)
        self.lives: list[Life] = []
        self._program = PROGRAMS[name]
        self._arguments = (address, *more)
        self._directory = directory
        self._pace = pace
        with Admin(bootstrap_servers=address) as admin:
            for topic in ("orders", "invoices"):
                admin.create_topic(topic, partitions=PARTITIONS)
        self._producer = Producer(bootstrap_servers=address)

    def feed(self) -> None:
        """More orders, numbered on from the last, and all of them acknowledged."""
        for number in range(self.fed, self.fed + self._pace.orders):
            self._producer.send("orders", b"%d" % number, key=b"%d" % (number % KEYS))
        self._producer.flush()
        self.fed += self._pace.orders

    def feed_until(self, is_so: Callable[[], bool]) -> None:
        deadline = monotonic() + WAIT_S_MAX
        while not is_so():
            assert monotonic() < deadline, f"not after {self.fed} orders"
            self.feed()
            sleep(FEED_AGAIN_AFTER_S)

    def live(self) -> Life:
        life = Life(self._program, self._arguments, self._directory / f"life-{len(self.lives)}")
        self.lives.append(life)
        return life

    def disturb(self) -> None:
        """Live and be killed, several times."""
        for _ in range(KILLS):
            self.feed()
            life = self.live()
            life.live_on(self.rng, self._pace.lines_max)
            life.kill()

    def finish(self, output: Callable[[], list[int]]) -> None:
        """One more life, which nobody disturbs before the last orders are done."""
        before = self.fed
        self.feed()
        last = set(range(before, self.fed))
        life = self.live()
        life.wait_until(lambda: last <= set(output()))
        life.kill()

    def printed(self) -> list[int]:
        return [number_of(line) for life in self.lives for line in life.lines]

    def end(self) -> None:
        for life in self.lives:
            life.kill()
        self._producer.close()


class Invoices:
    """The topic of the output, read on and on."""

    def __init__(self, address: str, isolation_level: str) -> None:
        self._consumer = Consumer(
            bootstrap_servers=address, auto_offset_reset="earliest", isolation_level=isolation_level
        )
        self._consumer.assign_topic("invoices")
        self._read: list[int] = []

    def read(self) -> list[int]:
        """Everything there is until now."""
        while found := self._consumer.batch(timeout_ms=READ_WAIT_MS):
            self._read += [number_of((each.value or b"").decode()) for each in found]
        return self._read

    def read_to_end(self) -> list[int]:
        ends = self._consumer.end_offsets(self._consumer.assignment)
        deadline = monotonic() + WAIT_S_MAX
        while any(self._consumer.position(tp) < end for tp, end in ends.items()):
            assert monotonic() < deadline, f"the end of {ends} was not reached"
            self.read()
        return self._read

    def close(self) -> None:
        self._consumer.close()


def number_of(line: str) -> int:
    """Of "17" and of "invoice 17"."""
    return int(line.split()[-1])


@contextmanager
def invoices(address: str, isolation_level: str) -> Iterator[Invoices]:
    reader = Invoices(address, isolation_level)
    try:
        yield reader
    finally:
        reader.close()


@contextmanager
def delivery_run(
    name: str,
    directory: Path,
    *more: str,
    pace: Pace,
    settings: Mapping[str, object] = BROKER_SETTINGS,
) -> Iterator[DeliveryRun]:
    """With a broker of its own. `more` is what the program is told beside its address.

    BARNABAS_SEED=n repeats the choice of the moments, as far as the machine repeats the rest.
    """
    seed = int(os.environ.get("BARNABAS_SEED") or secrets.randbelow(1_000_000))
    print(f"{name}: seed {seed}")
    with OurBroker(directory / "broker", settings=settings).running() as address:
        run = DeliveryRun(address, name, directory, more, pace, seed)
        try:
            yield run
        finally:
            run.end()
