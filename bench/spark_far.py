"""A broker that is far away: what several fetches under way bring, beside one, and beside spark-sql-kafka.

The way is a process that hands everything on later, with 4 MB under way at most for a connection, as Linux
has it.
"""

import json
from collections.abc import Iterator

from broker_rows import Answer, more_is_better
from spark_scene import OURS, SETTINGS, THEIRS, Scene, peer_named, timed
from support.long_way import long_way, settings_for
from support.our_broker import OurBroker
from support.ports import free_port

ROUND_TRIPS_MS = (20, 50)
RECORDS, RECORD_BYTES = 1_000_000, 1000
# spark-sql-kafka reads a part only: it takes so long that Spark would let our workers go meanwhile.
PART = 5


def far_rows(scene: Scene) -> Iterator[Answer]:
    port = free_port()
    broker = OurBroker(scene.directory / "far", settings={**SETTINGS, **settings_for(port)})
    with broker.running():
        broker.address = f"127.0.0.1:{port}"
        far = Scene(scene.spark, broker, scene.directory, scene.quick)
        rows = far.sized(RECORDS)
        with long_way(port, broker.port, 0):
            topic = far.filled("far", rows, RECORD_BYTES)

        def speed(kind: str, rows: int, **options: str) -> float:
            frame = far.read(kind, topic, endingOffsets=json.dumps({topic: {"0": rows}}), **options)
            return rows / timed(lambda: frame.write.format("noop").mode("overwrite").save()) / 1e6

        for trip_ms in ROUND_TRIPS_MS:
            ours, alone, theirs = [], [], []
            with long_way(port, broker.port, trip_ms):
                for number in range(far.rounds + 1):
                    found = (
                        speed(OURS, rows),
                        speed(OURS, rows, fetchesInFlight="1"),
                        speed(THEIRS, rows // PART),
                    )
                    if number > 0:
                        for speeds, one in zip((ours, alone, theirs), found, strict=True):
                            speeds.append(one)
            question = f"scan to noop, 1 kB, {trip_ms} ms away"
            yield peer_named(more_is_better(question, ours, alone, "M rows/s"), "fetchesInFlight=1")
            yield peer_named(more_is_better(question, ours, theirs, "M rows/s"), "spark-sql-kafka 4.2.0")
