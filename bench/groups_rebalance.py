"""How long does it take from the first join of a new group until all of its members are stable?

All members join at once, each over a connection of its own that is open already, and heartbeat as fast as
they are answered: so it is the brokers that are timed, and not how often clients look. The new protocol is
timed with no pause between assignments, and with Kafka's pause of a second, which then is most of the time.

Expected cost of ours: a classic member is a join, the same again with its id, once more when the others are
there, a sync, and some heartbeats, at about 50 microseconds each. In the new protocol every join changes the
target of everybody; what is assigned anew is written down for those whose part has changed.
"""

from collections.abc import Callable, Iterator
from itertools import count

from broker_pair import Broker, Pair, create_topic
from broker_requests import await_leader
from broker_rows import Answer, less_is_better
from groups_classic import classic_rebalance
from groups_consumer import consumer_rebalance
from groups_load import Turn, await_coordinator, in_loop
from groups_pair import Scene, note

AIM = 1.5
SIZES = (10, 100, 1000)
QUICK_SIZES = (10, 100)
_numbers = count()


def rebalance_rows(scene: Scene) -> Iterator[Answer]:
    sizes = QUICK_SIZES if scene.quick else SIZES
    with scene.running("rebalance") as pair:
        prepare(pair, sizes)
        for size in sizes:
            yield row(scene, pair, f"rebalance, classic, {size} members", size, classic_turn, AIM)
        for size in sizes:
            yield row(scene, pair, f"rebalance, consumer, {size} members", size, consumer_turn, AIM)
    with scene.running("paused", group_consumer_assignment_interval_ms=1000) as pair:
        prepare(pair, sizes)
        for size in sizes:
            question = f"rebalance, consumer, {size} members, assigned once a second"
            yield row(scene, pair, question, size, consumer_turn, None)


def prepare(pair: Pair, sizes: tuple[int, ...]) -> None:
    for broker in (pair.ours, pair.theirs):
        for size in sizes:
            create_topic(broker, topic_of(size), size)
            await_leader(broker.address, topic_of(size), size - 1)


def topic_of(size: int) -> str:
    return f"bench-topic-{size}"


def row(
    scene: Scene,
    pair: Pair,
    question: str,
    size: int,
    run: Callable[[Broker, int], Turn],
    aim: float | None,
) -> Answer:
    ours, theirs = pair.alternate(lambda broker: run(broker, size), scene.rounds)
    busy = [100 * max(turn.client_share for turn in turns) for turns in (ours, theirs)]
    note(f"{question}: the client was busy {busy[0]:.0f}% and {busy[1]:.0f}%")
    mine, others = ([turn.seconds for turn in turns] for turns in (ours, theirs))
    return less_is_better(question, mine, others, "s", aim)


def classic_turn(broker: Broker, size: int) -> Turn:
    name = new_group(broker)
    return in_loop(classic_rebalance(broker.address, name, size))


def consumer_turn(broker: Broker, size: int) -> Turn:
    name = new_group(broker)
    return in_loop(consumer_rebalance(broker.address, name, size, topic_of(size)))


def new_group(broker: Broker) -> str:
    """Each time another one, so that nothing of the last round counts."""
    name = f"bench-group-{next(_numbers)}"
    await_coordinator(broker.address, name)
    return name
