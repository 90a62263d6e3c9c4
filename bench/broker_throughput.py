"""How many messages a second does a broker take and give, and what does that cost it?

librdkafka produces to a fresh topic and then reads it back from the page cache: 100 B and 1 kB, one partition
and 16, plain and lz4, all else at its defaults (acks=all, linger 5 ms). CPU seconds are those of the broker
while the client ran, for a gigabyte of values; memory is measured before all load and after all of it.

Expected cost of ours: a produce request is one call from the socket to the file, its bytes are copied twice
(out of the socket, into the page cache) and summed once; a fetch is one sendfile. So the client is what
limits: about 2 M messages of 100 B a second and 1 GB/s, of two cores that the broker and the client share.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass

from broker_load import Done
from broker_pair import GB, Broker, cpu_seconds, memory_mb, topic
from broker_rows import Answer, less_is_better, more_is_better
from broker_scene import Scene

COUNTS = {100: 2_000_000, 1000: 400_000}
QUICK_COUNTS = {100: 300_000, 1000: 60_000}
PRODUCE_AIMS = {100: 1.5, 1000: 3.0}
CONSUME_AIM = 1.0
CPU_AIM = 1 / 0.35
MEMORY_AIM = 1 / 0.15


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of traffic."""

    size: int
    partitions: int
    codec: str

    def __str__(self) -> str:
        count = "1 partition" if self.partitions == 1 else f"{self.partitions} partitions"
        return f"{self.size} B, {count}, {self.codec}"


@dataclass(frozen=True, slots=True)
class Turn:
    """What one broker did in one round, and the CPU seconds that it took."""

    produced: Done
    consumed: Done
    produce_cpu_s: float
    consume_cpu_s: float


KINDS = tuple(Kind(size, parts, codec) for codec in ("none", "lz4") for parts in (1, 16) for size in COUNTS)


def throughput_rows(scene: Scene) -> Iterator[Answer]:
    yield from memory_rows(scene, "idle, with one topic")
    for kind in KINDS:
        yield from rows_of(scene, kind)
    yield from memory_rows(scene, "after load")


def rows_of(scene: Scene, kind: Kind) -> Iterator[Answer]:
    counts = QUICK_COUNTS if scene.quick else COUNTS
    ours, theirs = scene.pair.alternate(
        lambda broker: turn(scene, broker, kind, counts[kind.size]), scene.rounds
    )
    plain = kind.codec == "none"
    for verb, aim in (("produce", PRODUCE_AIMS[kind.size]), ("consume", CONSUME_AIM)):
        mine, others = ([speed(one, verb, kind) for one in turns] for turns in (ours, theirs))
        unit = "k msg/s" if kind.size == min(COUNTS) else "MB/s"
        yield more_is_better(f"{verb} {kind}", mine, others, unit, aim if plain else None)
    if kind.partitions == 1 and plain:
        for verb in ("produce", "consume"):
            mine, others = ([cpu_per_gb(one, verb) for one in turns] for turns in (ours, theirs))
            aim_or_none = CPU_AIM if verb == "produce" else None
            yield less_is_better(f"CPU to {verb}, {kind.size} B", mine, others, "s/GB", aim_or_none)
            note_client(verb, kind, ours[0])


def turn(scene: Scene, broker: Broker, kind: Kind, count: int) -> Turn:
    with topic(broker, "throughput", kind.partitions) as name:
        start = cpu_seconds(broker.pid)
        settings = {"compression.codec": kind.codec}
        produced = scene.load.produce(broker.address, name, count=count, size=kind.size, settings=settings)
        middle = cpu_seconds(broker.pid)
        consumed = scene.load.consume(broker.address, name, partitions=kind.partitions, count=count)
        return Turn(produced, consumed, middle - start, cpu_seconds(broker.pid) - middle)


def speed(one: Turn, verb: str, kind: Kind) -> float:
    done = one.produced if verb == "produce" else one.consumed
    return done.messages_per_s / 1000 if kind.size == min(COUNTS) else done.mb_per_s


def cpu_per_gb(one: Turn, verb: str) -> float:
    if verb == "produce":
        return one.produce_cpu_s / (one.produced.bytes / GB)
    return one.consume_cpu_s / (one.consumed.bytes / GB)


def note_client(verb: str, kind: Kind, one: Turn) -> None:
    """What the client needs is the same for both, and bounds the ratio where they share the cores."""
    done = one.produced if verb == "produce" else one.consumed
    used = done.cpu_seconds / (done.bytes / GB)
    print(f"  {verb} {kind}: the client itself needed {used:.2f} CPU s/GB", file=sys.stderr)


def memory_rows(scene: Scene, when: str) -> Iterator[Answer]:
    with topic(scene.pair.ours, "memory"), topic(scene.pair.theirs, "memory"):
        ours, theirs = memory_mb(scene.pair.ours.pid), memory_mb(scene.pair.theirs.pid)
    for name in ("Rss", "Pss"):
        aim = MEMORY_AIM if name == "Rss" else None
        yield less_is_better(f"memory {when}, {name.upper()}", [ours[name]], [theirs[name]], "MB", aim)
