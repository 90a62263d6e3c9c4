"""How long does a message take from its writer to its reader?

One process has both, on librdkafka with linger.ms=0, at 1,000 and 10,000 messages of 100 B a second. A
message counts from the moment that it was due, so that a broker which stalls is charged for what piles up
meanwhile. Five requests may be in flight, as in Kafka's own client. librdkafka by default has no such bound:
then nearly every message is a request of its own, and at 10,000 a second they queue up before a broker that
answers fewer on one connection. That is the last question.

Expected cost of ours: one turn of the loop for the append, one more for the fetch that waits; the rest is
four wake-ups of client threads, which are the same for both: about 0.3 ms.
"""

from collections.abc import Iterator

from broker_load import IN_FLIGHT, UNBOUNDED, Latency
from broker_pair import Broker, topic
from broker_rows import Answer, less_is_better
from broker_scene import Scene

# Messages a second, and how many requests may be in flight.
SHAPES = ((1_000, IN_FLIGHT), (10_000, IN_FLIGHT), (10_000, UNBOUNDED))
SECONDS = 6
QUICK_SECONDS = 2
AIMS = {"p50": 1.0, "p99": 1.0, "p999": None}


def latency_rows(scene: Scene) -> Iterator[Answer]:
    for rate, in_flight in SHAPES:

        def run(broker: Broker, rate: int = rate, in_flight: int = in_flight) -> Latency:
            return measure(scene, broker, rate, in_flight)

        ours, theirs = scene.pair.alternate(run, scene.rounds)
        how = ", no bound in flight" if in_flight == UNBOUNDED else ""
        for name, aim in AIMS.items():
            mine, others = ([getattr(one.end_to_end, name) for one in turns] for turns in (ours, theirs))
            shown = "p99.9" if name == "p999" else name
            yield less_is_better(f"end to end {shown}, {rate} msg/s{how}", mine, others, "ms", aim)


def measure(scene: Scene, broker: Broker, rate: int, in_flight: int) -> Latency:
    seconds = scene.sized(SECONDS, QUICK_SECONDS)
    with topic(broker, "latency") as name:
        return scene.load.latency(broker.address, name, rate=rate, seconds=seconds, in_flight=in_flight)
