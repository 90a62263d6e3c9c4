"""A broker that is far away: what several fetches under way bring, beside one, and beside spark-sql-kafka.

The way is a process that hands everything on later, with 4 MB under way at most for a connection, as Linux
has it. One task reads all: several would have several connections anyway. It needs some twenty answers of
14 MiB to show anything: the first one tells how large the chunks are, and the last ones have nothing beside
them. So `--quick` has fewer rounds, and nearly as many records. On a busy machine the nearer ways show less:
there one fetch after the other brings as much as the processors can take.
"""

import json
from collections.abc import Iterator

from broker_rows import Answer, more_is_better
from spark_scene import OURS, SETTINGS, THEIRS, Scene, peer_named, timed
from support.process.our_broker import OurBroker
from support.process.ports import free_port
from support.wire.long_way import long_way, settings_for

ROUND_TRIPS_MS = (20, 50, 100)
RECORDS, RECORD_BYTES = 500_000, 1000
QUICK_RECORDS = 300_000
ROUNDS_LEAST = 3
# spark-sql-kafka reads a part only: it takes so long that Spark would let our workers go meanwhile.
PART = 15


def far_rows(scene: Scene) -> Iterator[Answer]:
    port = free_port()
    broker = OurBroker(scene.directory / "far", settings={**SETTINGS, **settings_for(port)})
    with broker.running():
        broker.address = f"127.0.0.1:{port}"
        far = Scene(scene.spark, broker, scene.directory, scene.quick)
        rows = QUICK_RECORDS if scene.quick else RECORDS
        with long_way(port, broker.port, 0):
            topic = far.filled("far", rows, RECORD_BYTES)

        def speed(kind: str, rows: int, **options: str) -> float:
            end = json.dumps({topic: {"0": rows}})
            frame = far.read(kind, topic, endingOffsets=end, minPartitions="1", **options)
            return rows / timed(lambda: frame.write.format("noop").mode("overwrite").save()) / 1e6

        for trip_ms in ROUND_TRIPS_MS:
            ours, alone, theirs = [], [], []
            with long_way(port, broker.port, trip_ms):
                for number in range(max(ROUNDS_LEAST, far.rounds) + 1):
                    found = (
                        speed(OURS, rows),
                        speed(OURS, rows, fetchesInFlight="1"),
                        speed(THEIRS, rows // PART),
                    )
                    if number > 0:
                        for speeds, one in zip((ours, alone, theirs), found, strict=True):
                            speeds.append(one)
            question = f"scan to noop by one task, 1 kB, {trip_ms} ms away"
            yield peer_named(more_is_better(question, ours, alone, "M rows/s"), "fetchesInFlight=1")
            yield peer_named(more_is_better(question, ours, theirs, "M rows/s"), "spark-sql-kafka 4.2.0")
