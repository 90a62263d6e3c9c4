"""How long does it take from starting the process to the first record that is acknowledged?

The directory is formatted and has a topic. One client tries from the first moment on, every few milliseconds,
so that the time says when the broker served and not when it said so.

Expected cost of ours: Python and its imports, reading a small metadata log, one election with one voter and
one registration: about 0.3 s.
"""

import threading
import time
from collections.abc import Iterator

from broker_pair import Broker, create_topic, make_pair
from broker_requests import VERSION, await_leader, one_record
from broker_rows import Answer, less_is_better
from broker_scene import Scene
from support.wire.client import ConnectionClosed, WireClient

AIM = 10.0
TOPIC = "start"
TRY_EVERY_S = 0.005
SERVED_WITHIN_S = 120.0
ANSWER_WITHIN_S = 10.0


def start_rows(scene: Scene) -> Iterator[Answer]:
    # The pair that runs for the other questions has nothing to do meanwhile.
    pair = make_pair(scene.directory / "start", scene.pair.tools)
    try:
        for broker in (pair.ours, pair.theirs):
            broker.start()
            create_topic(broker, TOPIC)
            await_leader(broker.address, TOPIC)
            broker.stop()
        ours, theirs = pair.alternate(start_and_stop, scene.rounds, warm_up=0)
    finally:
        pair.ours.kill()
        pair.theirs.kill()
    yield less_is_better("start to first acknowledged record", ours, theirs, "s", AIM)


def start_and_stop(broker: Broker) -> float:
    took = start_time(broker, TOPIC)
    broker.stop()
    return took


def start_time(broker: Broker, name: str) -> float:
    """Start it, and return the seconds until a record was acknowledged."""
    found: list[float] = []
    begun = time.perf_counter()
    prober = threading.Thread(target=lambda: found.append(_first_acknowledged(broker, name)))
    prober.start()
    broker.start()
    prober.join()
    assert found, f"{name}: nothing was acknowledged within {SERVED_WITHIN_S} s"
    return found[0] - begun


def _first_acknowledged(broker: Broker, name: str) -> float:
    deadline = time.perf_counter() + SERVED_WITHIN_S
    while time.perf_counter() < deadline:
        try:
            with WireClient(broker.address, timeout_s=ANSWER_WITHIN_S) as client:
                answer = client.ask(one_record(name), VERSION)
        except (OSError, ConnectionClosed):
            # Nobody listens yet.
            time.sleep(TRY_EVERY_S)
            continue
        if answer.responses[0].partition_responses[0].error_code == 0:
            return time.perf_counter()
        time.sleep(TRY_EVERY_S)
    raise TimeoutError(f"{broker.address} acknowledged nothing within {SERVED_WITHIN_S} s")
