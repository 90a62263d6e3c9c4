"""Does a reader of old data, which has to come from the disk, slow down those who write and read the newest?

A topic is written, synced and dropped from the page cache. Then one writer and one tail reader run at 1,000
messages a second, alone; and again, while another client reads the topic from its start, again and again,
with the cache dropped each time.

Expected cost of ours: a read that would wait for the disk goes to another thread, so the writer and the tail
reader share nothing with it but the disk and the two cores.
"""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from broker_load import Latency
from broker_pair import MB, Broker, segments, topic
from broker_rows import Answer, less_is_better, more_is_better
from broker_scene import Scene

SIZE = 1000
MESSAGES = 1_500_000
QUICK_MESSAGES = 300_000
RATE = 1_000
SECONDS = 6
ROUNDS = 3
QUICK_SECONDS = 3
STOP_WITHIN_S = 30.0
AIM = 1.0


@dataclass(frozen=True, slots=True)
class Found:
    alone: Latency
    beside: Latency
    cold_mb_s: float


class ColdReader:
    """Reads a topic from its start as long as a block lasts, each time from the disk."""

    def __init__(self, scene: Scene, broker: Broker, name: str, count: int) -> None:
        self._scene = scene
        self._broker = broker
        self._name = name
        self._count = count
        self._stopped = threading.Event()

    @contextmanager
    def reading(self) -> Iterator[None]:
        thread = threading.Thread(target=self._read)
        thread.start()
        try:
            yield
        finally:
            self._stopped.set()
            thread.join(STOP_WITHIN_S)
            assert not thread.is_alive(), f"the cold reader did not stop within {STOP_WITHIN_S} s"

    def _read(self) -> None:
        while not self._stopped.is_set():
            drop_from_cache(segments(self._broker, self._name))
            process = self._scene.load.start_consuming(self._broker.address, self._name, count=self._count)
            while process.poll() is None and not self._stopped.wait(0.02):
                pass
            process.kill()
            process.wait()


def cold_rows(scene: Scene) -> Iterator[Answer]:
    rounds = min(ROUNDS, scene.rounds)
    ours, theirs = scene.pair.alternate(lambda broker: measure(scene, broker), rounds, warm_up=0)
    for part, who in (("end_to_end", "tail reader"), ("acknowledged", "writer")):
        for name in ("p50", "p99"):
            for when, aim in (("alone", None), ("beside", AIM)):
                mine, others = (
                    [getattr(getattr(getattr(one, when), part), name) for one in turns]
                    for turns in (ours, theirs)
                )
                shown = "alone" if when == "alone" else "beside a cold reader"
                yield less_is_better(f"{who} {name}, {shown}", mine, others, "ms", aim)
    mine, others = ([one.cold_mb_s for one in turns] for turns in (ours, theirs))
    yield more_is_better("read from the disk meanwhile", mine, others, "MB/s")


def measure(scene: Scene, broker: Broker) -> Found:
    count = scene.sized(MESSAGES, QUICK_MESSAGES)
    seconds = scene.sized(SECONDS, QUICK_SECONDS)
    with topic(broker, "cold") as name:
        scene.load.produce(broker.address, name, count=count, size=SIZE, partition=0)
        drop_from_cache(segments(broker, name))
        alone = scene.load.latency(broker.address, name, rate=RATE, seconds=seconds)
        reader = ColdReader(scene, broker, name, count)
        with reader.reading():
            before, begun = disk_mb(broker.pid), time.perf_counter()
            beside = scene.load.latency(broker.address, name, rate=RATE, seconds=seconds)
            cold_mb_s = (disk_mb(broker.pid) - before) / (time.perf_counter() - begun)
        return Found(alone, beside, cold_mb_s)


def disk_mb(pid: int) -> float:
    """What a process had the disk read for it so far."""
    for line in Path(f"/proc/{pid}/io").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "read_bytes":
            return int(value) / MB
    raise AssertionError(f"/proc/{pid}/io does not say read_bytes")


def drop_from_cache(paths: list[Path]) -> None:
    """Let the kernel forget what it has of these files; it keeps what is not on the disk yet."""
    for path in paths:
        number = os.open(path, os.O_RDONLY)
        try:
            os.fdatasync(number)
            os.posix_fadvise(number, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(number)
