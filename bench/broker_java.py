"""How fast is Kafka's own Java client with either broker?

The producer is Kafka's ProducerPerformance at its defaults (acks=all, idempotent, batches of 16 kB); the
consumer is BrokerConsume.java, because Kafka's ConsumerPerformance needs a group. Each run is a JVM of
its own that has to warm up, which is the same for both brokers and makes the figures low.

Expected cost of ours: as in broker_throughput.py, with batches of 16 kB. What limits is the client.
"""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from broker_load import Done
from broker_pair import Broker, Pair, topic
from broker_rows import Answer, more_is_better
from broker_scene import Scene

COUNTS = {100: 2_000_000, 1000: 500_000}
QUICK_COUNTS = {100: 200_000, 1000: 50_000}
ROUNDS = 2
RUN_WITHIN_S = 180
CONSUMER = Path(__file__).with_name("BrokerConsume.java")
PRODUCER = "org.apache.kafka.tools.ProducerPerformance"
SENT = re.compile(r"(\d+) records sent, ([\d.]+) records/sec")


class ClientFailed(Exception):
    """A Java client did not do what it was asked for."""


def java_rows(scene: Scene) -> Iterator[Answer]:
    rounds = 1 if scene.quick else ROUNDS
    for size, count in (QUICK_COUNTS if scene.quick else COUNTS).items():

        def run(broker: Broker, size: int = size, count: int = count) -> tuple[Done, Done]:
            with topic(broker, "java") as name:
                return produce(scene.pair, broker, name, count, size), consume(
                    scene.pair, broker, name, count
                )

        ours, theirs = scene.pair.alternate(run, rounds, warm_up=0)
        for place, verb in enumerate(("produce", "consume")):
            mine, others = ([one[place].mb_per_s for one in turns] for turns in (ours, theirs))
            yield more_is_better(f"{verb} {size} B, Java client", mine, others, "MB/s")


def produce(pair: Pair, broker: Broker, name: str, count: int, size: int) -> Done:
    said = _java(
        pair, PRODUCER, "--topic", name, "--num-records", count, "--record-size", size, "--throughput", -1,
        "--producer-props", f"bootstrap.servers={broker.address}",
    )  # fmt: skip
    # It tells how it goes every five seconds; the last line is about all of it.
    found = SENT.findall(said)
    if not found or int(found[-1][0]) != count:
        raise ClientFailed(f"{PRODUCER}: {said[-1000:]}")
    return Done(count, count * size, count / float(found[-1][1]))


def consume(pair: Pair, broker: Broker, name: str, count: int) -> Done:
    # Java compiles the source before it runs it; the time is taken inside.
    said = _java(pair, CONSUMER, broker.address, name, 1, count)
    records, size, seconds = said.split()[-3:]
    return Done(int(records), int(size), float(seconds))


def _java(pair: Pair, main: object, *arguments: object) -> str:
    command = ["java", "-cp", pair.tools.classpath, str(main), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_WITHIN_S, check=False)
    if done.returncode != 0:
        raise ClientFailed(f"{main}: {(done.stdout + done.stderr)[-1000:]}")
    return done.stdout
