"""Fetch without a session: where to read from, how much, how long to wait, and who leads."""

import time

from barnabas.protocol.messages.fetch import FetchRequest, ReplicaState
from differential.broker.batches import batch
from differential.broker.cluster import NO_TOPIC
from differential.broker.offsets import delete_records
from differential.broker.sending import fetch, fetch_partition, send
from differential.broker.talk import Family, Talk

FETCH = Family("fetch")
EVERY = range(4, 19)


def fill(talk: Talk, name: str, partitions: int = 1) -> None:
    """Three batches of three records in each partition."""
    for partition in range(partitions):
        for number in range(3):
            values = [b"%d of %d" % (at, number) for at in range(3)]
            send(talk, name, batch(*values, at_ms=talk.base_ms + number * 10), partition=partition)


@FETCH.story
def offsets(talk: Talk) -> None:
    topic_id = talk.create("read")
    talk.same("an empty partition", fetch("read", topic_id=topic_id))
    fill(talk, "read")
    talk.same("from the start", fetch("read", topic_id=topic_id))
    talk.same("from the middle of a batch", fetch("read", 4, topic_id=topic_id), [4, 11, 12, 18])
    talk.same("the last batch", fetch("read", 6, topic_id=topic_id), [4, 18])
    talk.same("at the end", fetch("read", 9, topic_id=topic_id))
    talk.same("past the end", fetch("read", 10, topic_id=topic_id))
    talk.same("far past the end", fetch("read", 2**62, topic_id=topic_id), [4, 18])
    talk.same("before the start", fetch("read", -1, topic_id=topic_id), [4, 11, 18])
    talk.quietly(delete_records("read", 4), 2)
    talk.same("after records were deleted", fetch("read", 4, topic_id=topic_id), [4, 5, 18])
    talk.same("deleted records", fetch("read", 3, topic_id=topic_id), [4, 5, 18])


@FETCH.story
def wrong_places(talk: Talk) -> None:
    topic_id = talk.create("placed", 2)
    fill(talk, "placed", 2)
    talk.same("unknown topic", fetch("nobody-made-this", topic_id=NO_TOPIC))
    talk.same("unknown partition", fetch("placed", topic_id=topic_id, partition=2))
    talk.same("negative partition", fetch("placed", topic_id=topic_id, partition=-1), [4, 12, 13, 18])
    talk.same("bad name", fetch("a b"), [4, 12])
    talk.same("no id", fetch("placed"), [13, 18])
    both = fetch("placed", topic_id=topic_id)
    both.topics += fetch("nobody-made-this", topic_id=NO_TOPIC).topics
    talk.same("a known and an unknown topic", both, [4, 12, 13, 18])
    parts = [fetch_partition(0), fetch_partition(7), fetch_partition(1, 99)]
    talk.same(
        "three partitions, one good", fetch("placed", topic_id=topic_id, partitions=parts), [4, 12, 13, 18]
    )
    parts = [fetch_partition(0), fetch_partition(0, 6)]
    talk.same("a partition twice", fetch("placed", topic_id=topic_id, partitions=parts), [4, 13, 18])
    nothing = FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=1000, topics=[])
    talk.same("nothing", nothing, [4, 7, 18])


@FETCH.story
def sizes(talk: Talk) -> None:
    topic_id = talk.create("sized", 2)
    fill(talk, "sized", 2)
    parts = [fetch_partition(0), fetch_partition(1)]
    for max_bytes in (0, 1, 100, 250, 2**31 - 1):
        asked = fetch("sized", topic_id=topic_id, partitions=parts, max_bytes=max_bytes)
        talk.same(f"at most {max_bytes} in all", asked, [4, 18])
    for size in (0, 1, 100, 250):
        one = [fetch_partition(0, partition_max_bytes=size), fetch_partition(1, partition_max_bytes=size)]
        talk.same(f"at most {size} each", fetch("sized", topic_id=topic_id, partitions=one), [4, 18])
    middle = [fetch_partition(0, 1, partition_max_bytes=1)]
    talk.ask("one byte from the middle of a batch", fetch("sized", topic_id=topic_id, partitions=middle))
    negative = [fetch_partition(0, partition_max_bytes=-1)]
    talk.ask("at most -1 each", fetch("sized", topic_id=topic_id, partitions=negative))
    talk.ask("at most -1 in all", fetch("sized", topic_id=topic_id, max_bytes=-1))


@FETCH.story
def waiting(talk: Talk) -> None:
    topic_id = talk.create("waited")
    fill(talk, "waited")

    def timed(step: str, at_least_s: float, request: FetchRequest) -> None:
        started = time.monotonic()
        talk.ask(step, request)
        talk.keep(f"{step}: it waited", time.monotonic() - started >= at_least_s)

    timed("enough bytes", 1.0, fetch("waited", topic_id=topic_id, max_wait_ms=2_000, min_bytes=1))
    timed("too few bytes", 0.25, fetch("waited", topic_id=topic_id, max_wait_ms=300, min_bytes=10_000))
    timed("at the end", 0.25, fetch("waited", 9, topic_id=topic_id, max_wait_ms=300, min_bytes=1))
    timed("no minimum", 1.0, fetch("waited", 9, topic_id=topic_id, max_wait_ms=2_000, min_bytes=0))
    timed("an error does not wait", 1.0, fetch("waited", 99, topic_id=topic_id, max_wait_ms=2_000))
    missing = fetch("nobody-made-this", topic_id=NO_TOPIC, max_wait_ms=2_000)
    timed("an unknown topic does not wait", 1.0, missing)
    timed("a negative wait", 1.0, fetch("waited", 9, topic_id=topic_id, max_wait_ms=-1))
    nothing = FetchRequest(max_wait_ms=2_000, min_bytes=1, max_bytes=1000, topics=[])
    timed("nothing asked", 1.0, nothing)


@FETCH.story
def epochs(talk: Talk) -> None:
    topic_id = talk.create("epochs")
    fill(talk, "epochs")
    for epoch in (0, 1, 5, -2):
        asked = fetch("epochs", topic_id=topic_id, current_leader_epoch=epoch)
        talk.same(f"current epoch {epoch}", asked, [9, 12, 18])
    for last, offset in ((0, 9), (0, 5), (0, 10), (1, 9), (5, 3), (-1, 9)):
        asked = fetch("epochs", offset, topic_id=topic_id, last_fetched_epoch=last)
        talk.same(f"last fetched epoch {last} at {offset}", asked, [12, 18])
    asked = fetch("epochs", 0, topic_id=topic_id, last_fetched_epoch=-5)
    talk.same("last fetched epoch -5", asked, [12, 18])


@FETCH.story
def isolation(talk: Talk) -> None:
    topic_id = talk.create("isolated")
    fill(talk, "isolated")
    talk.same("committed", fetch("isolated", topic_id=topic_id, isolation_level=1))
    for level in (2, -1):
        talk.same(f"level {level}", fetch("isolated", topic_id=topic_id, isolation_level=level), [4, 18])


@FETCH.story
def replicas(talk: Talk) -> None:
    topic_id = talk.create("followed")
    fill(talk, "followed")
    for replica in (1, 7, -2):
        asked = fetch("followed", topic_id=topic_id, replica_id=replica)
        talk.same(f"as replica {replica}", asked, [4, 12, 14])
    for replica, epoch in ((7, -1), (7, 5), (1, 5), (-2, -1)):
        asked = fetch("followed", topic_id=topic_id)
        asked.replica_state = ReplicaState(replica_id=replica, replica_epoch=epoch)
        talk.same(f"as replica {replica} of epoch {epoch}", asked, [15, 18])
    rack = fetch("followed", topic_id=topic_id)
    rack.rack_id = "north"
    talk.same("from a rack", rack, [11, 18])
    named = fetch("followed", topic_id=topic_id)
    named.cluster_id = "another-cluster"
    talk.same("of another cluster", named, [12, 18])
