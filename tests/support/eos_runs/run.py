"""Consume, transform, produce: a source, workers that share its partitions, and a broker; all may die.

with eos_run(broker, shape, directory, seed=1) as run:
    disturb(run, seconds=60)
At the end of the block nobody is disturbed any more: the workers come to the end of the input, everybody
leaves, and what is there then is checked: see checker.py.
"""

import random
import secrets
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from support.clients.stage import Broker, Stage
from support.eos_runs.checker import Result, faults
from support.eos_runs.orders import Orders
from support.eos_runs.processes import Process
from support.eos_runs.reading import Reader, all_ends, committed_offsets, read_all
from support.wire.client import ConnectionClosed

INPUT_PARTITIONS = 6
OUTPUT_PARTITIONS = 4
WORKERS = 3
SESSION_MS = 2000
HEARTBEAT_MS = 300
TRANSACTION_TIMEOUT_MS = 5000
CLEANUP_MS = 500
# After the last kill: sessions and transactions that nobody ends have to run out first.
DRAINED_WITHIN_S = 90.0
STABLE_WITHIN_S = (TRANSACTION_TIMEOUT_MS + CLEANUP_MS) / 1000 + 5.0
MADE_WITHIN_S = 30.0
LOOK_AGAIN_AFTER_S = 0.05
BROKER_SETTINGS = {
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 1000,
    "group.consumer.min.session.timeout.ms": 1000,
    "group.consumer.session.timeout.ms": SESSION_MS,
    "group.consumer.min.heartbeat.interval.ms": 100,
    "group.consumer.heartbeat.interval.ms": HEARTBEAT_MS,
    "offsets.topic.num.partitions": 4,
    "transaction.state.log.num.partitions": 4,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": CLEANUP_MS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How the workers are. A static one has an instance id, and gets its partitions back after a restart.

    They and the source are made with confluent-kafka, or with our own client.
    """

    name: str
    is_own: bool = False
    protocol: str = "classic"
    assignor: str = ""
    is_static: bool = False
    changes: bool = False
    has_transactions: bool = True


FIXED = Shape(name="fixed", is_static=True)
CHANGING = Shape(name="changing", changes=True)
COOPERATIVE = Shape(name="cooperative", assignor="cooperative-sticky", changes=True)
NEW_PROTOCOL = Shape(name="new-protocol", protocol="consumer", changes=True)
WITHOUT_TRANSACTIONS = Shape(name="without-transactions", is_static=True, has_transactions=False)
OWN_CHANGING = Shape(name="own-changing", is_own=True, changes=True)
OWN_NEW_PROTOCOL = Shape(name="own-new-protocol", is_own=True, protocol="consumer", changes=True)
OWN_COOPERATIVE = Shape(name="own-cooperative", is_own=True, assignor="cooperative-sticky", changes=True)
OWN_FIXED = Shape(name="own-fixed", is_own=True, is_static=True)
SHAPES = (FIXED, CHANGING, COOPERATIVE, NEW_PROTOCOL, OWN_CHANGING, OWN_NEW_PROTOCOL)
# For those who have more time.
MORE_SHAPES = (OWN_COOPERATIVE, OWN_FIXED)


class EosRun:
    def __init__(self, broker: Broker, shape: Shape, directory: Path, seed: int) -> None:
        self.broker = broker
        self.shape = shape
        self.rng = random.Random(seed)
        self.happened: Counter[str] = Counter()
        self._directory = directory
        self._name = f"{shape.name}-{seed}"
        make_internal_topics(broker.address)
        stage = Stage(broker, self._name)
        self._input = stage.topic(partitions=INPUT_PARTITIONS)
        self._output = stage.topic(partitions=OUTPUT_PARTITIONS)
        self._group, self._source_group = f"{self._name}-workers", f"{self._name}-source"
        self._sources: list[Process] = []
        self._workers: list[Process] = []
        self._witness = Reader(broker.address, self._output, OUTPUT_PARTITIONS)

    def begin(self) -> None:
        self._witness.start()

    def source(self) -> Process:
        """Begun, without waiting for it. Whoever was it before is fenced, if it still lives."""
        return self._process("source", "source", self._sources, has_transactions=True)

    def worker(self, slot: int) -> Process:
        has_transactions = self.shape.has_transactions
        return self._process("worker", f"worker-{slot}", self._workers, has_transactions=has_transactions)

    def _process(self, program: str, name: str, of_them: list[Process], *, has_transactions: bool) -> Process:
        life = f"{name}#{sum(each.name.partition('#')[0] == name for each in of_them) + 1}"
        orders = Orders(
            address=self.broker.address,
            run=self._name,
            life=life,
            journal=str(self._directory / f"{self._name}-{life}.journal"),
            input_topic=self._input,
            output_topic=self._output,
            input_partitions=INPUT_PARTITIONS,
            output_partitions=OUTPUT_PARTITIONS,
            source_group=self._source_group,
            group=self._group,
            transactional_id=f"{self._name}-{name}" if has_transactions else None,
            transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
            protocol=self.shape.protocol,
            assignor=self.shape.assignor,
            instance=name if self.shape.is_static else None,
            session_ms=SESSION_MS,
            heartbeat_ms=HEARTBEAT_MS,
            seed=self.rng.randrange(1 << 30),
        )
        process = Process(f"own_{program}" if self.shape.is_own else program, orders)
        of_them.append(process)
        process.begin()
        return process

    def finish(self) -> None:
        """Have everything read, let everybody leave, and check. The broker is up, and somebody works."""
        for source in self._living(self._sources):
            source.ask_to_leave()
        for source in self._living(self._sources):
            source.await_end()
        for worker in self._living(self._workers):
            worker.go_on()
        self._wait_for_stable_ends()
        input_read = read_all(self.broker.address, self._input, INPUT_PARTITIONS)
        expected = {where: records[-1].offset + 1 for where, records in input_read.items() if records}
        # Told apart from the rest: when workers leave, others begin where the group is, and catch up.
        is_drained = self._wait(lambda: self._offsets_reach(expected), DRAINED_WITHIN_S)
        for worker in self._living(self._workers):
            worker.ask_to_leave()
            worker.await_end()
        self._wait_for_stable_ends()
        self._check()
        if not is_drained:
            self.found.append(f"the workers are not at the end of the input after {DRAINED_WITHIN_S} s")

    def _offsets_reach(self, expected: dict[int, int]) -> bool:
        self._start_again()
        offsets = self._offsets(self._group)
        return all(offsets[where] >= end for where, end in expected.items())

    def _start_again(self) -> None:
        """Whoever has met what nothing helps against, and nobody has taken over since."""
        latest = {worker.name.partition("#")[0]: worker for worker in self._workers}
        for name, worker in latest.items():
            if worker.has_given_up:
                self.worker(int(name.rpartition("-")[2]))
        if not self._living(self._workers):
            self.worker(0)

    def _wait_for_stable_ends(self) -> None:
        """As long as a transaction may be open that nobody ends. What is behind then is stuck: a fault."""
        self._wait(
            lambda: all(end.last_stable == end.high_watermark for end in all_ends(self.broker.address)),
            STABLE_WITHIN_S,
        )

    def _wait(self, is_so: Callable[[], bool], within_s: float) -> bool:
        """Until it is so, or the time is over: the checker says what is wrong then. Whether it is so."""
        deadline = monotonic() + within_s
        while monotonic() < deadline:
            try:
                if is_so():
                    return True
            except (ConnectionClosed, ConnectionError, TimeoutError, AssertionError):
                # A broker that has just started may not serve everything yet.
                pass
            sleep(LOOK_AGAIN_AFTER_S)
        return False

    def result(self) -> Result:
        address = self.broker.address
        ends = all_ends(address)
        by_place = {end.place: end.high_watermark for end in ends}
        return Result(
            run=self._name,
            input=read_all(address, self._input, INPUT_PARTITIONS),
            output=read_all(address, self._output, OUTPUT_PARTITIONS),
            witnessed=self._witness.finish(),
            numbers={where: max(0, at) for where, at in self._offsets(self._source_group).items()},
            input_ends={where: by_place[f"{self._input}-{where}"] for where in range(INPUT_PARTITIONS)},
            offsets=self._offsets(self._group),
            ends=ends,
            sources=[process.life() for process in self._sources],
            workers=[process.life() for process in self._workers],
        )

    def _offsets(self, group: str) -> dict[int, int]:
        return committed_offsets(self.broker.address, group, self._input, INPUT_PARTITIONS)

    def _check(self) -> None:
        for process in (*self._sources, *self._workers):
            if not process.was_killed:
                process.check_end()
        self.found = faults(result := self.result())
        self.committed = sum(event.word == "committed" for life in result.workers for event in life.events)
        self.records = sum(result.numbers.values())
        self.lives = len(self._workers)

    @staticmethod
    def _living(processes: list[Process]) -> list[Process]:
        return [process for process in processes if process.is_alive]

    def story(self) -> str:
        """What was done to whom, and what the processes met, for the one who has to find out why."""
        lines = [f"{times} x {what}" for what, times in sorted(self.happened.items())]
        for process in (*self._sources, *self._workers):
            for event in process.life().events:
                if event.word in ("trouble", "fatal"):
                    lines.append(f"{process.name}: {event.word} {event.text}")
        return "\n".join(lines)

    def give_up(self) -> None:
        """Whatever went wrong: nothing is left running, and no file open."""
        for process in (*self._sources, *self._workers):
            process.kill()
        self._witness.abandon()


def make_internal_topics(address: str) -> None:
    """Before any other: a broker that starts again then hears first of them, and of the others later."""
    name = "makes-internal-topics"
    producer = Producer({"bootstrap.servers": address, "transactional.id": name, "log_level": 0})
    producer.init_transactions(MADE_WITHIN_S)
    consumer = Consumer({"bootstrap.servers": address, "group.id": name, "log_level": 0})
    deadline = monotonic() + MADE_WITHIN_S
    while True:
        try:
            consumer.committed([TopicPartition("of-no-topic", 0)], MADE_WITHIN_S)
            break
        except KafkaException:
            # Kafka names the coordinator a moment before that one knows it.
            if monotonic() > deadline:
                raise
            sleep(LOOK_AGAIN_AFTER_S)
    consumer.close()


def new_seed() -> int:
    return secrets.randbelow(1_000_000)


@contextmanager
def eos_run(broker: Broker, shape: Shape, directory: Path, *, seed: int) -> Iterator[EosRun]:
    """The broker runs before and afterwards."""
    print(f"seed {seed}, shape {shape.name}")
    run = EosRun(broker, shape, directory, seed)
    run.begin()
    try:
        yield run
        run.finish()
    finally:
        run.give_up()
