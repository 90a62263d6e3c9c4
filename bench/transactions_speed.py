"""How many transactions a second does a broker take, and how long does a commit take?

1, 10 and 100 records of 100 B, to one partition and to ten, acks=all; one producer that waits for every
answer, and ten side by side with ids of their own; both versions of transactions. A turn lasts a fixed time.
The latency of a commit is that from EndTxn to its answer: then it is decided, and its markers may still have
to be written. It is shown for one producer; what commits take while others commit is asked in
transactions_latency.py, at the same pace for both.

With version 2 Kafka keeps a Produce that comes before the markers of the last transaction are written for
20 ms (add.partitions.to.txn.retry.backoff.ms) before it looks again, and with one producer nearly every one
comes that early. So version 2 is asked a second time with that pause at a millisecond, its least.

Expected cost of ours: two or three requests, three records of the coordinator (the partitions, the prepared
commit, the end), and a batch and a marker for each partition, at 20 to 80 microseconds each.
"""

import time
from collections.abc import Iterator, Sequence
from itertools import product

from barnabas.protocol.messages.offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from broker_pair import Broker, Pair, create_topic
from broker_requests import await_leader
from broker_rows import Answer, less_is_better, more_is_better
from support.wire.client import WireClient
from transactions_load import Producer, Shape, Turn, run_turn
from transactions_pair import Scene, note

AIM = 1.5
TOPIC = "bench-transactions"
PARTITIONS = (1, 10)
RECORDS = (1, 10, 100)
QUICK_RECORDS = (10,)
PRODUCERS = (1, 10)
VERSIONS = (2, 1)
# The latency of these is shown; it hardly depends on the number of records.
LATENCY_RECORDS = 10
TURN_S = 0.6
QUICK_TURN_S = 0.2
# Java compiles what is used often, and takes its time to find that out.
WARM_UP_S = 5.0
QUICK_WARM_UP_S = 0.5
LIST_VERSION = 7
LATEST = -1
READ_COMMITTED = 1
STABLE_WITHIN_S = 30.0
UNPAUSED = {"add.partitions.to.txn.retry.backoff.ms": 1}


def speed_rows(scene: Scene) -> Iterator[Answer]:
    prepare(scene, scene.pair, VERSIONS)
    sizes = QUICK_RECORDS if scene.quick else RECORDS
    for version, producers, partitions, records in product(VERSIONS, PRODUCERS, PARTITIONS, sizes):
        yield from rows_of(scene, scene.pair, Shape(version, records, partitions), producers, "")


def unpaused_rows(scene: Scene) -> Iterator[Answer]:
    with scene.running("unpaused", UNPAUSED) as pair:
        prepare(scene, pair, [2])
        for producers, partitions in product(PRODUCERS, PARTITIONS):
            yield from rows_of(scene, pair, Shape(2, LATENCY_RECORDS, partitions), producers, ", pause 1 ms")


def prepare(scene: Scene, pair: Pair, versions: Sequence[int]) -> None:
    """Topics, and a first load; questions that share the brokers share these too."""
    for broker in (pair.ours, pair.theirs):
        if any(broker.logs.glob(f"{TOPIC}-*")):
            continue
        for partitions in PARTITIONS:
            create_topic(broker, topic_of(partitions), partitions)
            for partition in range(partitions):
                await_leader(broker.address, topic_of(partitions), partition)
        for version in versions:
            seconds = QUICK_WARM_UP_S if scene.quick else WARM_UP_S
            turn_of(broker, Shape(version, LATENCY_RECORDS, max(PARTITIONS)), max(PRODUCERS), seconds)


def topic_of(partitions: int) -> str:
    return f"{TOPIC}-{partitions}"


def rows_of(scene: Scene, pair: Pair, shape: Shape, producers: int, setting: str) -> Iterator[Answer]:
    seconds = QUICK_TURN_S if scene.quick else TURN_S
    ours, theirs = pair.alternate(lambda broker: turn_of(broker, shape, producers, seconds), scene.rounds)
    by = "1 producer" if producers == 1 else f"{producers} producers"
    what = f"{shape}, {by}{setting}"
    note_load(what, ours, theirs)
    mine, others = ([turn.per_s for turn in turns] for turns in (ours, theirs))
    yield more_is_better(f"transactions, {what}", mine, others, "txn/s", AIM)
    if shape.records == LATENCY_RECORDS and producers == 1:
        for name, share in (("p50", 0.5), ("p99", 0.99)):
            mine, others = ([turn.commit_ms(share) for turn in turns] for turns in (ours, theirs))
            yield less_is_better(f"commit {name}, {what}", mine, others, "ms", AIM)


def turn_of(broker: Broker, shape: Shape, producers: int, seconds: float) -> Turn:
    lines: list[Producer] = []
    try:
        for number in range(producers):
            lines.append(Producer(broker.address, f"bench-{number}", topic_of(shape.partitions), shape))
        begun = stable_sum(broker, shape.partitions)
        turn = run_turn(broker, lines, seconds=seconds)
    finally:
        for line in lines:
            line.close()
    await_stable(broker, shape, begun + turn.transactions * shape.offsets)
    return turn


def await_stable(broker: Broker, shape: Shape, wanted: int) -> None:
    """Until every record and marker of a turn is there, and none more: also, none disturbs the next turn."""
    deadline = time.monotonic() + STABLE_WITHIN_S
    while (found := stable_sum(broker, shape.partitions)) != wanted:
        assert time.monotonic() < deadline, f"{shape}: {found} offsets are stable, not {wanted}"
        time.sleep(0.01)


def stable_sum(broker: Broker, partitions: int) -> int:
    """The last stable offsets of a topic's partitions, added up."""
    places = [ListOffsetsPartition(partition_index=index, timestamp=LATEST) for index in range(partitions)]
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=READ_COMMITTED,
        topics=[ListOffsetsTopic(name=topic_of(partitions), partitions=places)],
    )
    with WireClient(broker.address) as client:
        answer = client.ask(request, LIST_VERSION)
    found = answer.topics[0].partitions
    assert not any(place.error_code for place in found), found
    return sum(place.offset for place in found)


def note_load(what: str, ours: list[Turn], theirs: list[Turn]) -> None:
    busy = [100 * max(turn.client_share for turn in turns) for turns in (ours, theirs)]
    count = [sum(turn.transactions for turn in turns) for turns in (ours, theirs)]
    again = [sum(turn.retries for turn in turns) for turns in (ours, theirs)]
    cost = [1e6 * sum(turn.broker_cpu_s for turn in turns) for turns in (ours, theirs)]
    note(
        f"{what}: the client was busy {busy[0]:.0f}% and {busy[1]:.0f}%; "
        f"retries for a transaction {again[0] / count[0]:.2f} and {again[1] / count[1]:.2f}; "
        f"CPU of the broker {cost[0] / count[0]:.0f} and {cost[1] / count[1]:.0f} us"
    )
