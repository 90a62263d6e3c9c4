"""How long after a commit is asked for does a reader with read_committed have the records?

One producer writes one record to one partition, commits, and waits until its reader, whose fetch waits at
the end of what is stable, is answered; then it begins again. Timed is from EndTxn to what the reader gets:
the markers have to be written first, for which the answer to EndTxn itself does not wait.

Expected cost of ours: the prepared commit, a marker, and the fetch that it wakes, about 50 microseconds each.
"""

import time
from collections.abc import Iterator

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.exchange import decode_response
from broker_pair import Broker, create_topic
from broker_requests import await_leader
from broker_rows import Answer, less_is_better
from support.wire.client import WireClient
from transactions_load import Producer, Shape, quantile_ms
from transactions_pair import Scene
from transactions_reading import FETCH_VERSION, LEVELS, fetch_request, place_of, stable_end

TOPIC = "bench-seen"
VERSIONS = (2, 1)
FETCH_BYTES = 1 << 20
WAIT_MS = 20_000
TURN_S = 0.75
QUICK_TURN_S = 0.3


def seen_rows(scene: Scene) -> Iterator[Answer]:
    seconds = QUICK_TURN_S if scene.quick else TURN_S
    for broker in (scene.pair.ours, scene.pair.theirs):
        create_topic(broker, TOPIC)
        await_leader(broker.address, TOPIC)
    for version in VERSIONS:

        def run(broker: Broker, version: int = version) -> list[float]:
            return seen_after(broker, version, seconds)

        ours, theirs = scene.pair.alternate(run, scene.rounds)
        for name, share in (("p50", 0.5), ("p99", 0.99)):
            mine, others = ([quantile_ms(turn, share) for turn in turns] for turns in (ours, theirs))
            yield less_is_better(f"commit to reader {name}, v{version}", mine, others, "ms")


def seen_after(broker: Broker, version: int, seconds: float) -> list[float]:
    """Seconds from EndTxn to the reader's answer, for as many transactions as there is time for."""
    took = []
    producer = Producer(broker.address, f"seen-{version}", TOPIC, Shape(version, 1, 1))
    with WireClient(broker.address) as reader:
        offset = stable_end(reader, TOPIC)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            reader.send(
                fetch_request(TOPIC, offset, LEVELS["read_committed"], FETCH_BYTES, wait_ms=WAIT_MS),
                FETCH_VERSION,
            )
            end = up_to_the_end(producer)
            begun = time.perf_counter()
            producer.socket.sendall(end)
            answer = reader.read_frame()
            took.append(time.perf_counter() - begun)
            assert producer.answered(answer_of(producer)) is None
            _, body = decode_response(answer, FETCH_VERSION, key=ApiKey.FETCH)
            place = place_of(body)
            assert place.records, "the fetch was answered with nothing"
            offset = place.last_stable_offset
    producer.close()
    return took


def up_to_the_end(producer: Producer) -> bytearray:
    """One transaction, all but its EndTxn, which is returned."""
    following: bytearray | None = producer.begin()
    while not producer.is_ending:
        assert following is not None
        producer.socket.sendall(following)
        following = producer.answered(answer_of(producer))
    assert following is not None
    return following


def answer_of(producer: Producer) -> bytes:
    while (answer := producer.read()) is None:
        pass
    return answer
