"""What do 2,000 partitions cost: to create them, to have them, to write to all of them, to start with them?

Fresh brokers. Creating ends when the last one takes a record. Messages of 100 B go to a random partition
each, so batches are small and every one is for another file. Memory is RSS, before and after that load.

Expected cost of ours for a partition: a directory, four files and their syncs to create it; two Python
objects and some 10 kB to have it; one listing and a few small reads to start.
"""

import time
from collections.abc import Iterator

from broker_pair import Broker, create_topic, make_pair, memory_mb
from broker_requests import await_leader
from broker_rows import Answer, less_is_better, more_is_better
from broker_scene import Scene
from broker_start import start_time

PARTITIONS = 2_000
QUICK_PARTITIONS = 200
MESSAGES = 1_000_000
QUICK_MESSAGES = 100_000
TOPIC = "many"
# Each message goes where the dice say, not where the one before it went.
SPREAD = {"sticky.partitioning.linger.ms": 0}
MEMORY_AIM = 1 / 0.15


def partition_rows(scene: Scene) -> Iterator[Answer]:
    count = scene.sized(PARTITIONS, QUICK_PARTITIONS)
    pair = make_pair(scene.directory / "partitions", scene.pair.tools)
    try:
        pair.ours.start()
        pair.theirs.start()
        found = pair.alternate(lambda broker: measure(scene, broker, count), 1, warm_up=0)
    finally:
        pair.ours.kill()
        pair.theirs.kill()
    ours, theirs = ({name: [value] for name, value in turns[0].items()} for turns in found)
    yield less_is_better(f"create {count} partitions", ours["create"], theirs["create"], "s")
    yield less_is_better(f"memory with {count} partitions", ours["idle"], theirs["idle"], "MB", MEMORY_AIM)
    yield more_is_better(f"produce across {count} partitions", ours["produce"], theirs["produce"], "k msg/s")
    yield less_is_better("memory after that", ours["loaded"], theirs["loaded"], "MB", MEMORY_AIM)
    yield less_is_better(f"clean stop with {count} partitions", ours["stop"], theirs["stop"], "s")
    yield less_is_better(f"start with {count} partitions", ours["start"], theirs["start"], "s")


def measure(scene: Scene, broker: Broker, count: int) -> dict[str, float]:
    found = {}
    begun = time.perf_counter()
    create_topic(broker, TOPIC, count)
    await_leader(broker.address, TOPIC, count - 1)
    found["create"] = time.perf_counter() - begun
    found["idle"] = memory_mb(broker.pid)["Rss"]
    messages = scene.sized(MESSAGES, QUICK_MESSAGES)
    # Once to warm up: the JVM has only just started, and every file is written to for the first time.
    scene.load.produce(broker.address, TOPIC, count=messages, size=100, settings=SPREAD)
    done = scene.load.produce(broker.address, TOPIC, count=messages, size=100, settings=SPREAD)
    found["produce"] = done.messages_per_s / 1000
    found["loaded"] = memory_mb(broker.pid)["Rss"]
    begun = time.perf_counter()
    broker.stop()
    found["stop"] = time.perf_counter() - begun
    found["start"] = start_time(broker, TOPIC)
    broker.stop()
    return found
