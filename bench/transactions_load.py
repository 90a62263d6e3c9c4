"""Transactional producers as a load: raw connections, one for each producer, all in one loop.

A producer waits for the answer to each of its requests before it sends the next. In version 2 of
transactions these are Produce 12 and EndTxn 5, whose answer has the epoch of the next transaction; in version
1, which librdkafka speaks, AddPartitionsToTxn 3, Produce 11 and EndTxn 3. While the markers of its last
transaction are being written a producer may be told CONCURRENT_TRANSACTIONS: it asks again at once, and that
is counted.
"""

import select
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.classic_groups import FindCoordinatorRequest
from barnabas.protocol.messages.transactions import InitProducerIdRequest
from broker_pair import Broker, cpu_seconds
from support.wire.client import WireClient
from transactions_frames import (
    NumberedFrame,
    ProduceFrame,
    add_codes,
    add_frame,
    end_codes,
    end_frame,
    next_numbers,
    produce_codes,
)

PRODUCE_VERSIONS = {1: 11, 2: 12}
END_VERSIONS = {1: 3, 2: 5}
ADD_VERSION = 3
INIT_VERSIONS = {1: 4, 2: 5}
FIND_VERSION = 3
TRANSACTIONAL = 1
TRANSACTION_TIMEOUT_MS = 60_000
READY_WITHIN_S = 60.0
ANSWER_TIMEOUT_S = 30.0
ANSWER_MAX = 1 << 16
SIZE_BYTES = 4
ENDLESS = 1 << 62
NOT_YET = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
}


class ProducerRefused(Exception):
    """The broker answered with an error that no healthy producer gets."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What a transaction consists of, and the version of transactions that is spoken.

    With fewer records than partitions, one transaction writes to as many partitions as it has records, and
    the next one to those that follow.
    """

    version: int
    records: int
    partitions: int

    def __str__(self) -> str:
        records = "1 record" if self.records == 1 else f"{self.records} records"
        partitions = "1 partition" if self.partitions == 1 else f"{self.partitions} partitions"
        return f"v{self.version}, {records}, {partitions}"

    @property
    def offsets(self) -> int:
        """How many a transaction takes up, with a marker for each partition that it wrote to."""
        return self.records + min(self.records, self.partitions)

    def targets(self) -> list[list[int]]:
        """Which partitions the transactions write to, in turns."""
        at_once = min(self.records, self.partitions)
        return [list(range(first, first + at_once)) for first in range(0, self.partitions, at_once)]


class Target:
    """The requests of a transaction that writes to these partitions, but for its end."""

    def __init__(self, shape: Shape, transactional_id: str, topic: str, partitions: list[int]) -> None:
        version = PRODUCE_VERSIONS[shape.version]
        each = shape.records // len(partitions)
        self.produce = ProduceFrame(version, transactional_id, topic, partitions, each)
        self.produced = produce_codes(version, topic, partitions)
        self.add: NumberedFrame = add_frame(ADD_VERSION, transactional_id, topic, partitions)
        self.added = add_codes(ADD_VERSION, topic, partitions)
        # Of the next batch. All partitions here have got as many.
        self.sequence = 0


class Producer:
    """One transactional id on one connection. Whoever runs it sends what begin() and answered() return."""

    def __init__(
        self, address: str, transactional_id: str, topic: str, shape: Shape, *, abort_every: int = ENDLESS
    ) -> None:
        self._id, self._epoch = numbers_of(address, transactional_id, shape.version)
        self._bumps = shape.version == 2
        self._abort_every = abort_every
        self._targets = [Target(shape, transactional_id, topic, some) for some in shape.targets()]
        version = END_VERSIONS[shape.version]
        self._commit = end_frame(version, transactional_id, commit=True)
        self._abort = end_frame(version, transactional_id, commit=False)
        self._ended = end_codes(version)
        self._step: Callable[[bytes], bytearray | None] = self._over
        self._sent = bytearray()
        self._codes = self._ended
        self._target = self._targets[0]
        self._half = b""
        self._begun = self._end_sent = 0.0
        self.done = 0
        # From EndTxn to its answer, and from the first request of the transaction.
        self.commit_s: list[float] = []
        self.whole_s: list[float] = []
        self.retries = 0
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=ANSWER_TIMEOUT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    @property
    def will_commit(self) -> bool:
        """Whether the transaction that is open, or else the next one, is to be committed."""
        return (self.done + 1) % self._abort_every != 0

    @property
    def is_ending(self) -> bool:
        """Whether the next to be sent, or the last that was, is EndTxn."""
        return self._step == self._over

    def begin(self) -> bytearray:
        self._begun = time.perf_counter()
        self._target = self._targets[self.done % len(self._targets)]
        if self._bumps:
            return self._produce()
        self._step, self._codes = self._added, self._target.added
        self._sent = self._target.add.numbered(self._id, self._epoch)
        return self._sent

    def answered(self, answer: bytes) -> bytearray | None:
        """What to send next; None if the transaction is over."""
        code = self._codes.first_error(answer)
        if code == ErrorCode.CONCURRENT_TRANSACTIONS:
            self.retries += 1
            return self._sent
        if code:
            raise ProducerRefused(f"{self._codes.key.name} was answered with {ErrorCode(code).name}")
        return self._step(answer)

    def _added(self, _: bytes) -> bytearray | None:
        return self._produce()

    def _produce(self) -> bytearray:
        target = self._target
        self._step, self._codes = self._produced, target.produced
        self._sent = target.produce.numbered(self._id, self._epoch, target.sequence)
        return self._sent

    def _produced(self, _: bytes) -> bytearray | None:
        # An epoch of its own begins its sequences anew.
        if not self._bumps:
            self._target.sequence += self._target.produce.records_each
        self._step, self._codes = self._over, self._ended
        end = self._commit if self.will_commit else self._abort
        self._sent = end.numbered(self._id, self._epoch)
        self._end_sent = time.perf_counter()
        return self._sent

    def _over(self, answer: bytes) -> bytearray | None:
        now = time.perf_counter()
        self.commit_s.append(now - self._end_sent)
        self.whole_s.append(now - self._begun)
        if self._bumps:
            self._id, self._epoch = next_numbers(answer)
        self.done += 1
        return None

    def read(self) -> bytes | None:
        """The answer that came, from its length on; None if only a part of it has come."""
        came = self.socket.recv(ANSWER_MAX)
        assert came, "the broker closed the connection"
        answer = self._half + came
        is_whole = len(answer) >= SIZE_BYTES + int.from_bytes(answer[:SIZE_BYTES])
        self._half = b"" if is_whole else answer
        return answer if is_whole else None

    def close(self) -> None:
        self.socket.close()


@dataclass(frozen=True, slots=True)
class Turn:
    """What some producers did: how fast, what it cost, and how busy this client was with it."""

    transactions: int
    seconds: float
    client_share: float
    broker_cpu_s: float
    commit_s: list[float]
    retries: int

    @property
    def per_s(self) -> float:
        return self.transactions / self.seconds

    def commit_ms(self, share: float) -> float:
        """A quantile of the time from EndTxn to its answer."""
        return quantile_ms(self.commit_s, share)


def quantile_ms(seconds: list[float], share: float) -> float:
    return 1000 * sorted(seconds)[min(len(seconds) - 1, round(len(seconds) * share))]


def run_turn(
    broker: Broker, producers: Sequence[Producer], *, seconds: float = ENDLESS, count: int = ENDLESS
) -> Turn:
    """All of them at once, until the time is over or as many transactions are. None is left open."""
    cpu, used, begun = cpu_seconds(broker.pid), time.process_time(), time.perf_counter()
    run_all(producers, begun + seconds, count)
    took, busy = time.perf_counter() - begun, time.process_time() - used
    return Turn(
        sum(one.done for one in producers),
        took,
        busy / took,
        cpu_seconds(broker.pid) - cpu,
        [commit for one in producers for commit in one.commit_s],
        sum(one.retries for one in producers),
    )


def run_all(producers: Sequence[Producer], until: float, count: int) -> None:
    by_number = {one.socket.fileno(): one for one in producers}
    poll = select.epoll()
    for number, one in by_number.items():
        poll.register(number, select.EPOLLIN)
        one.socket.sendall(one.begin())
    begun, busy = len(by_number), len(by_number)
    while busy:
        ready = poll.poll(ANSWER_TIMEOUT_S)
        assert ready, f"nothing came for {ANSWER_TIMEOUT_S} s"
        for number, _ in ready:
            one = by_number[number]
            answer = one.read()
            if answer is None:
                continue
            following = one.answered(answer)
            if following is None and begun < count and time.perf_counter() < until:
                following = one.begin()
                begun += 1
            if following is None:
                busy -= 1
            else:
                one.socket.sendall(following)
    poll.close()


def numbers_of(address: str, transactional_id: str, version: int) -> tuple[int, int]:
    """A producer's id and epoch, as soon as its coordinator is there and its last transaction over."""
    deadline = time.monotonic() + READY_WITHIN_S
    find = FindCoordinatorRequest(key=transactional_id, key_type=TRANSACTIONAL)
    init = InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=TRANSACTION_TIMEOUT_MS
    )
    with WireClient(address) as client:
        while True:
            code = ErrorCode(client.ask(find, FIND_VERSION).error_code)
            if code is ErrorCode.NONE:
                answer = client.ask(init, INIT_VERSIONS[version])
                code = ErrorCode(answer.error_code)
                if code is ErrorCode.NONE:
                    return answer.producer_id, answer.producer_epoch
            assert code in NOT_YET, code.name
            assert time.monotonic() < deadline, f"no producer id for {transactional_id}: {code.name}"
            time.sleep(0.005)
