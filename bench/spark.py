"""How fast does Spark read and write topics with format("barnabas"), beside spark-sql-kafka?

Both in one Spark (local[2]), on the same broker (ours), in turns, after a round that does not count. Topics
have one partition, which minPartitions=2 shares between both cores. Scans go to `noop`, which is Spark's way
to do nothing with rows, and to Parquet. `--only scan,stream` asks only some questions; `--quick` takes a
twentieth of the records.
"""

import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median

# The broker is started the way the tests start it, and the JARs are found as they find them.
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from broker_rows import Answer, less_is_better, more_is_better
from report import machine, parse_options, report
from spark_far import far_rows
from spark_scene import OURS, PEER, SETTINGS, THEIRS, Scene, make_spark, peer_named, timed
from support.process.our_broker import OurBroker
from support.spark.kafka_jars import find_jars

SIZES = [("100 B", 10_000_000, 100, 2.5), ("1 kB", 2_000_000, 1000, 2.0)]
# Rows of a micro-batch that has next to nothing to do, and how many of them are looked at.
SMALL_ROWS, SMALL_BATCHES = 10, 20
MEMORY_BYTES = 10_000_000_000
# What the guide advises: Java takes so much from Python at a time, instead of 64 kB.
BUFFER_SETTING, BUFFER_BYTES = "spark.sql.execution.pandas.udf.buffer.size", "262144"


def scan_rows(scene: Scene) -> Iterator[Answer]:
    for name, records, size, aim in SIZES:
        rows = scene.sized(records)
        topic = scene.filled("scan", rows, size)

        def to_noop(kind: str, topic: str = topic) -> float:
            frame = scene.read(kind, topic)
            return timed(lambda: frame.write.format("noop").mode("overwrite").save())

        def to_parquet(kind: str, topic: str = topic) -> float:
            frame = scene.read(kind, topic)
            path = str(scene.directory / "parquet")
            return timed(lambda: frame.write.mode("overwrite").parquet(path))

        yield scene.compare(f"scan to noop, {name}", rows, to_noop, aim)
        yield scene.compare(f"scan to Parquet, {name}", rows, to_parquet, None)
        scene.forget(topic)


def stream_rows(scene: Scene) -> Iterator[Answer]:
    for name, records, size, aim in SIZES:
        rows = scene.sized(records)
        topic = scene.filled("stream", rows, size)

        def streamed(kind: str, topic: str = topic) -> float:
            return scene.available_now(scene.stream(kind, topic).writeStream.format("noop"))

        yield scene.compare(f"AvailableNow to noop, {name}", rows, streamed, aim)
        scene.spark.conf.set(BUFFER_SETTING, BUFFER_BYTES)
        yield scene.compare(f"AvailableNow to noop, {name}, larger buffer", rows, streamed, None)
        scene.spark.conf.unset(BUFFER_SETTING)
        scene.forget(topic)


def copy_rows(scene: Scene) -> Iterator[Answer]:
    for name, records, size, _ in SIZES:
        rows = scene.sized(records) // 4
        source = scene.filled("from", rows, size)

        def copied(kind: str, source: str = source, **options: str) -> float:
            target = scene.new_topic("to", partitions=2)
            frame = scene.stream(kind, source).select("value")
            writer = frame.writeStream.format(kind).option("kafka.bootstrap.servers", scene.broker.address)
            took = scene.available_now(writer.option("topic", target).options(**options))
            scene.forget(target)
            return took

        yield scene.compare(f"topic to topic, {name}", rows, copied, 1.5)
        plain, exact = [], []
        for _ in range(scene.rounds):
            plain.append(rows / copied(OURS) / 1e6)
            exact.append(rows / copied(OURS, deliveryGuarantee="exactly-once") / 1e6)
        # At most a fifth slower.
        answer = more_is_better(f"exactly once, topic to topic, {name}", exact, plain, "M rows/s", 1 / 1.2)
        yield peer_named(answer, "at least once")
        scene.forget(source)


def small_rows(scene: Scene) -> Iterator[Answer]:
    took: dict[str, list[float]] = {OURS: [], THEIRS: []}
    rows = SMALL_ROWS * (SMALL_BATCHES + 5)
    topic = scene.filled("small", rows, 100)
    for kind in (THEIRS, OURS):
        with tempfile.TemporaryDirectory(dir=scene.directory) as checkpoint:
            frame = scene.stream(kind, topic, maxOffsetsPerTrigger=str(SMALL_ROWS))
            query = (
                frame.writeStream.format("noop")
                .option("checkpointLocation", checkpoint)
                .trigger(availableNow=True)
                .start()
            )
            query.awaitTermination()
            done = [one["durationMs"]["triggerExecution"] for one in query.recentProgress]
            took[kind] = [float(median(done[-SMALL_BATCHES:]))]
    yield peer_named(less_is_better("smallest micro-batch", took[OURS], took[THEIRS], "ms"), PEER)
    scene.forget(topic)


def memory_rows(scene: Scene) -> Iterator[Answer]:
    """What the largest worker holds while a large topic is scanned, over what it holds with a small one."""
    from spark_memory import peak_while

    small = scene.filled("small", 100_000, 1000)
    large = scene.filled("large", scene.sized(MEMORY_BYTES // 1000), 1000)
    peaks = [
        peak_while(lambda t=topic: scene.read(OURS, t).write.format("noop").mode("overwrite").save())
        for topic in (small, large)
    ]
    yield peer_named(
        less_is_better("peak memory of a worker, large topic", [peaks[1]], [peaks[0]], "MB"), "small topic"
    )
    scene.forget(small, large)


# Memory comes first, whatever is asked for: workers that have written topics keep some of what that took.
QUESTIONS: dict[str, Callable[[Scene], Iterator[Answer]]] = {
    "memory": memory_rows,
    "scan": scan_rows,
    "stream": stream_rows,
    "copy": copy_rows,
    "small": small_rows,
    "far": far_rows,
}


def main() -> int:
    names = list(QUESTIONS)
    if "--only" in sys.argv[:-1]:
        at = sys.argv.index("--only")
        wanted = sys.argv[at + 1].split(",")
        if unknown := set(wanted).difference(names):
            sys.exit(f"--only: there is no question {', '.join(unknown)}; there are {', '.join(names)}")
        names = [name for name in names if name in wanted]
        del sys.argv[at : at + 2]
    options = parse_options(__doc__)
    machine(options)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    found: list[Answer] = []
    failed = []
    with tempfile.TemporaryDirectory(prefix="barnabas-bench-") as name:
        directory = Path(name)
        broker = OurBroker(directory / "broker", settings=SETTINGS)
        with broker.running():
            spark = make_spark(find_jars(), directory)
            scene = Scene(spark, broker, directory, options.quick)
            for question in names:
                start = time.monotonic()
                try:
                    for answer in QUESTIONS[question](scene):
                        print("  " + answer.line(), flush=True)
                        found.append(answer)
                except Exception:
                    traceback.print_exc()
                    failed.append(question)
                print(f"  {question} took {time.monotonic() - start:.0f} s", flush=True)
            spark.stop()
    report([one.shown() for one in found], replace(options, json=options.json))
    missed = sum(one.is_missed for one in found)
    print(f"aims:    {sum(one.aim is not None for one in found) - missed} met, {missed} missed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
