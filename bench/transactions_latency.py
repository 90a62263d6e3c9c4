"""How long do commits take while others commit too, at a pace that both brokers keep up with?

Ten producers with ids of their own, 10 records of 100 B each time, acks=all. Each begins a transaction twenty
times a second, one after the other, whether its broker is quick or slow: where everybody goes as fast as they
are answered, the faster broker has the longer queue. A commit is timed from EndTxn to its answer, a whole
transaction from its first request to the same. How many of those that were due were begun is said as well.

Expected cost of ours: as in transactions_speed.py; two hundred transactions a second leave both mostly idle.
"""

import select
import time
from collections.abc import Iterator, Sequence
from itertools import product

from broker_pair import Broker
from broker_rows import Answer, less_is_better
from transactions_load import ANSWER_TIMEOUT_S, Producer, Shape, quantile_ms
from transactions_pair import Scene, note
from transactions_speed import LATENCY_RECORDS, PARTITIONS, VERSIONS, prepare, topic_of

AIM = 1.5
PRODUCERS = 10
EVERY_S = 0.05
TURN_S = 1.25
QUICK_TURN_S = 0.3
QUANTILES = {"p50": 0.5, "p99": 0.99}
Times = dict[str, list[float]]


def latency_rows(scene: Scene) -> Iterator[Answer]:
    prepare(scene, scene.pair, VERSIONS)
    seconds = QUICK_TURN_S if scene.quick else TURN_S
    for version, partitions in product(VERSIONS, PARTITIONS):
        shape = Shape(version, LATENCY_RECORDS, partitions)

        def run(broker: Broker, shape: Shape = shape) -> Times:
            return paced_turn(broker, shape, seconds)

        ours, theirs = scene.pair.alternate(run, scene.rounds)
        what = f"{shape}, {PRODUCERS / EVERY_S:.0f} txn/s"
        due = scene.rounds * round(seconds / EVERY_S) * PRODUCERS
        begun = [100 * sum(len(turn["commit"]) for turn in turns) / due for turns in (ours, theirs)]
        note(f"{what}: {begun[0]:.0f}% and {begun[1]:.0f}% of those that were due were begun")
        for timed, (name, share) in product(("commit", "transaction"), QUANTILES.items()):
            mine, others = ([quantile_ms(turn[timed], share) for turn in turns] for turns in (ours, theirs))
            aim = AIM if timed == "commit" else None
            yield less_is_better(f"{timed} {name}, {what}", mine, others, "ms", aim)


def paced_turn(broker: Broker, shape: Shape, seconds: float) -> Times:
    producers: list[Producer] = []
    try:
        for number in range(PRODUCERS):
            producers.append(Producer(broker.address, f"paced-{number}", topic_of(shape.partitions), shape))
        run_paced(producers, round(seconds / EVERY_S))
        return {
            "commit": [took for one in producers for took in one.commit_s],
            "transaction": [took for one in producers for took in one.whole_s],
        }
    finally:
        for one in producers:
            one.close()


def run_paced(producers: Sequence[Producer], times: int) -> None:
    """Each begins so many transactions, EVERY_S apart; one that is still busy then leaves that one out."""
    by_number = {one.socket.fileno(): one for one in producers}
    poll = select.epoll()
    for number in by_number:
        poll.register(number, select.EPOLLIN)
    step_s = EVERY_S / len(producers)
    first = time.perf_counter()
    schedule = [
        (first + turn * step_s, producers[turn % len(producers)]) for turn in range(times * len(producers))
    ]
    schedule.reverse()
    busy: set[Producer] = set()
    while schedule or busy:
        wait_s = schedule[-1][0] - time.perf_counter() if schedule else ANSWER_TIMEOUT_S
        ready = poll.poll(max(0.0, wait_s))
        assert ready or schedule, f"nothing came for {ANSWER_TIMEOUT_S} s"
        for number, _ in ready:
            one = by_number[number]
            answer = one.read()
            following = one.answered(answer) if answer is not None else None
            if following is not None:
                one.socket.sendall(following)
            elif answer is not None:
                busy.discard(one)
        while schedule and schedule[-1][0] <= time.perf_counter():
            _, one = schedule.pop()
            if one not in busy:
                busy.add(one)
                one.socket.sendall(one.begin())
    poll.close()
