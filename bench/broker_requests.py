"""How many requests a second does a broker answer, when each carries one record of 100 B?

Raw sockets first: the bytes of the request are made beforehand and of every answer only the length is looked
at, so that the client is not what limits (how busy it was is printed). One request in flight on one
connection, five in flight, and four connections with one each. Then librdkafka, with batches of one message.
acks=1 everywhere.

Expected cost of ours: about 50 microseconds of Python for a request. Kafka takes one request of a connection
at a time and hands it from thread to thread; we begin what is pipelined at once and answer it together.
"""

import select
import socket
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.exchange import encode_request
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.records.builder import build_batch
from broker_pair import Broker, cpu_seconds, topic
from broker_rows import Answer, less_is_better, more_is_better
from broker_scene import Scene
from support.wire.client import WireClient

# The last version that names topics; ids would have to be asked for.
VERSION = 12
TIMEOUT_MS = 30_000
VALUE = b"x" * 100
REQUESTS = 30_000
QUICK_REQUESTS = 4_000
AIM = 2.0
ANSWER_MAX = 1 << 16
LEADER_WITHIN_S = 30.0
# Connections, and requests in flight on each.
SHAPES = ((1, 1), (1, 5), (4, 1))
IN_FLIGHT = (1, 5)


def one_record(name: str, partition: int = 0) -> ProduceRequest:
    records = build_batch([(int(time.time() * 1000), None, VALUE, ())])
    data = PartitionProduceData(index=partition, records=records)
    of_topic = TopicProduceData(name=name, partition_data=[data])
    return ProduceRequest(acks=1, timeout_ms=TIMEOUT_MS, topic_data=[of_topic])


def await_leader(address: str, name: str, partition: int = 0) -> None:
    """Until a record is taken: leaders are made a moment after their topic."""
    deadline = time.monotonic() + LEADER_WITHIN_S
    with WireClient(address) as client:
        while True:
            answer = client.ask(one_record(name, partition), VERSION)
            code = answer.responses[0].partition_responses[0].error_code
            if code == 0:
                return
            assert time.monotonic() < deadline, f"{name}-{partition} has no leader yet: error {code}"
            time.sleep(0.01)


@dataclass(frozen=True, slots=True)
class Turn:
    """Requests a second, how busy the client was with them, and what one of them cost the broker."""

    per_s: float
    client_share: float
    broker_cpu_us: float


class RawClient:
    """Connections that send the same bytes again and again. The broker is told apart by nothing else."""

    def __init__(self, address: str, name: str, connections: int) -> None:
        host, _, port = address.rpartition(":")
        self._frame = encode_request(
            one_record(name), VERSION, key=ApiKey.PRODUCE, correlation_id=7, client_id="bench"
        )
        self._sockets = [socket.create_connection((host, int(port))) for _ in range(connections)]
        for sock in self._sockets:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._answer_size = self._first_answer()

    def _first_answer(self) -> int:
        """The size of an answer, which is the same for all: only numbers of fixed size differ."""
        sock = self._sockets[0]
        sock.sendall(self._frame)
        data = sock.recv(ANSWER_MAX)
        size = 4 + int.from_bytes(data[:4])
        while len(data) < size:
            data += sock.recv(ANSWER_MAX)
        return size

    def run(self, requests: int, in_flight: int) -> tuple[float, float]:
        """Requests a second, and the share of the time that this client itself was busy."""
        used, start = time.process_time(), time.perf_counter()
        if len(self._sockets) == 1:
            self._one(self._sockets[0], requests, in_flight)
        else:
            self._several(requests, in_flight)
        took = time.perf_counter() - start
        return requests / took, (time.process_time() - used) / took

    def _one(self, sock: socket.socket, requests: int, in_flight: int) -> None:
        frame, size = self._frame, self._answer_size
        sock.sendall(frame * in_flight)
        to_send, to_come, half = requests - in_flight, requests, 0
        while to_come:
            came, half = divmod(half + len(sock.recv(ANSWER_MAX)), size)
            to_come -= came
            more = min(came, to_send)
            if more:
                sock.sendall(frame * more)
                to_send -= more

    def _several(self, requests: int, in_flight: int) -> None:
        frame, size = self._frame, self._answer_size
        by_number = {sock.fileno(): sock for sock in self._sockets}
        halves = dict.fromkeys(by_number, 0)
        poll = select.epoll()
        for number, sock in by_number.items():
            poll.register(number, select.EPOLLIN)
            sock.sendall(frame * in_flight)
        to_send, to_come = requests - in_flight * len(by_number), requests
        while to_come:
            for number, _ in poll.poll():
                sock = by_number[number]
                came, halves[number] = divmod(halves[number] + len(sock.recv(ANSWER_MAX)), size)
                to_come -= came
                more = min(came, to_send)
                if more:
                    sock.sendall(frame * more)
                    to_send -= more
        poll.close()

    def close(self) -> None:
        for sock in self._sockets:
            sock.close()


def request_rows(scene: Scene) -> Iterator[Answer]:
    count = scene.sized(REQUESTS, QUICK_REQUESTS)
    for connections, in_flight in SHAPES:

        def run(broker: Broker, connections: int = connections, in_flight: int = in_flight) -> Turn:
            return raw_turn(broker, count, connections, in_flight)

        ours, theirs = scene.pair.alternate(run, scene.rounds)
        where = "1 connection" if connections == 1 else f"{connections} connections"
        question = f"unbatched, raw, {where}, {in_flight} in flight"
        busy = [100 * max(one.client_share for one in turns) for turns in (ours, theirs)]
        print(f"  {question}: the client was busy {busy[0]:.0f}% and {busy[1]:.0f}%", file=sys.stderr)
        mine, others = ([one.per_s / 1000 for one in turns] for turns in (ours, theirs))
        yield more_is_better(question, mine, others, "k req/s", AIM)
        mine, others = ([one.broker_cpu_us for one in turns] for turns in (ours, theirs))
        yield less_is_better(f"CPU of a request, raw, {where}, {in_flight} in flight", mine, others, "us")
    yield from librdkafka_rows(scene, count)


def raw_turn(broker: Broker, count: int, connections: int, in_flight: int) -> Turn:
    with topic(broker, "requests") as name:
        await_leader(broker.address, name)
        client = RawClient(broker.address, name, connections)
        try:
            used = cpu_seconds(broker.pid)
            per_s, share = client.run(count, in_flight)
            return Turn(per_s, share, (cpu_seconds(broker.pid) - used) / count * 1e6)
        finally:
            client.close()


def librdkafka_rows(scene: Scene, count: int) -> Iterator[Answer]:
    for in_flight in IN_FLIGHT:
        settings = {"linger.ms": 0, "batch.num.messages": 1, "acks": 1, "max.in.flight": in_flight}

        def run(broker: Broker, settings: dict[str, int] = settings) -> float:
            with topic(broker, "requests") as name:
                done = scene.load.produce(
                    broker.address, name, count=count, size=100, partition=0, settings=settings
                )
                return done.messages_per_s / 1000

        ours, theirs = scene.pair.alternate(run, scene.rounds)
        yield more_is_better(f"unbatched, librdkafka, {in_flight} in flight", ours, theirs, "k req/s", AIM)
