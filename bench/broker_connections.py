"""What do a thousand connections cost that do nothing, and what do they do to one that does?

Each has asked for ApiVersions once, as every client does, and then stays. Memory is the growth of PSS for
each of them; the latency is that of one writer and one reader at 1,000 messages a second meanwhile. Kafka
takes connections from a heap that it has already, so that its process hardly grows.

Expected cost of ours: a handful of Python objects and two descriptors, some 5 kB. Who is idle is not looked
at.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from barnabas.protocol.messages.cluster import ApiVersionsRequest
from broker_load import Latency
from broker_pair import MB, Broker, memory_mb, topic
from broker_rows import Answer, less_is_better
from broker_scene import Scene
from support.wire.client import WireClient

CONNECTIONS = 1_000
QUICK_CONNECTIONS = 200
RATE = 1_000
SECONDS = 4
QUICK_SECONDS = 2
ROUNDS = 3
VERSIONS_VERSION = 3


@dataclass(frozen=True, slots=True)
class Found:
    kb_each: float
    latency: Latency


def connection_rows(scene: Scene) -> Iterator[Answer]:
    count = scene.sized(CONNECTIONS, QUICK_CONNECTIONS)
    rounds = min(ROUNDS, scene.rounds)
    ours, theirs = scene.pair.alternate(lambda broker: measure(scene, broker, count), rounds, warm_up=0)
    # Of the first round: memory that a broker got is kept, and later it seems to need none.
    mine, others = ([turns[0].kb_each] for turns in (ours, theirs))
    yield less_is_better(f"memory of one of {count} idle connections", mine, others, "kB")
    for name in ("p50", "p99"):
        mine, others = ([getattr(one.latency.end_to_end, name) for one in turns] for turns in (ours, theirs))
        yield less_is_better(f"end to end {name} beside {count} idle connections", mine, others, "ms", 1.0)


def measure(scene: Scene, broker: Broker, count: int) -> Found:
    hello = ApiVersionsRequest(client_software_name="bench", client_software_version="1")
    with topic(broker, "connections") as name:
        before = memory_mb(broker.pid)["Pss"]
        clients = [WireClient(broker.address) for _ in range(count)]
        try:
            for client in clients:
                client.ask(hello, VERSIONS_VERSION)
            grown = memory_mb(broker.pid)["Pss"] - before
            seconds = scene.sized(SECONDS, QUICK_SECONDS)
            latency = scene.load.latency(broker.address, name, rate=RATE, seconds=seconds)
        finally:
            for client in clients:
                client.close()
    return Found(max(0.0, grown) * MB / count / 1000, latency)
