"""What readers see around transactions: Fetch and ListOffsets with both isolation levels."""

from barnabas.base.ids import Uuid
from differential.broker.batches import batch
from differential.broker.offsets import EARLIEST, LATEST, MAX_TIMESTAMP, delete_records, list_offsets
from differential.broker.producers import producers_of
from differential.broker.sending import fetch, send
from differential.broker.talk import Family, Talk
from differential.broker.txn_requests import ONE_REPLICA, Producer, ready, started

TXN_READING = Family("txn-reading", settings=ONE_REPLICA)
LEVELS = (0, 1)
VERSIONS = (4, 5, 11, 12, 13, 18)


def read(
    talk: Talk, step: str, topic: str, topic_id: Uuid, offset: int = 0, *, more: tuple[int, ...] = ()
) -> None:
    """At both levels, in the last version and in these."""
    for level in LEVELS:
        asked = fetch(topic, offset, topic_id=topic_id, isolation_level=level)
        talk.same(f"{step}, level {level}", asked, more or [18])
    ends(talk, step, topic)


def ends(talk: Talk, step: str, topic: str) -> None:
    for level in LEVELS:
        for timestamp in (EARLIEST, LATEST):
            asked = list_offsets(topic, timestamp, isolation=level)
            talk.ask(f"{step}: offset {timestamp}, level {level}", asked)


@TXN_READING.story
def one_transaction(talk: Talk) -> None:
    ready(talk)
    for commit in (True, False):
        for is_old in (True, False):
            kind = f"{'committed' if commit else 'aborted'}-{'old' if is_old else 'new'}"
            topic_id = talk.create(kind)
            producer = started(talk, f"{kind}: comes", kind, is_old=is_old)
            send(talk, kind, batch(b"before", at_ms=talk.base_ms))
            read(talk, f"{kind}: before", kind, topic_id)
            if is_old:
                producer.add(f"{kind}: adds", kind)
                read(talk, f"{kind}: added", kind, topic_id)
            producer.send(f"{kind}: writes", kind, b"a", b"b", topic_id=topic_id)
            read(talk, f"{kind}: open", kind, topic_id, more=VERSIONS)
            read(talk, f"{kind}: open, from its start", kind, topic_id, 1)
            read(talk, f"{kind}: open, from the end", kind, topic_id, 3)
            send(talk, kind, batch(b"beside", at_ms=talk.base_ms + 5))
            producer.send(f"{kind}: writes more", kind, b"c", topic_id=topic_id)
            read(talk, f"{kind}: still open", kind, topic_id)
            for level in LEVELS:
                asked = list_offsets(kind, MAX_TIMESTAMP, isolation=level)
                talk.ask(f"{kind}: still open, the latest, level {level}", asked)
            producer.ended(f"{kind}: ends", commit)
            read(talk, f"{kind}: over", kind, topic_id, more=VERSIONS)
            read(talk, f"{kind}: over, from within", kind, topic_id, 2)
            read(talk, f"{kind}: over, from its last record", kind, topic_id, 4)
            read(talk, f"{kind}: over, from its marker", kind, topic_id, 5)
            read(talk, f"{kind}: over, from the end", kind, topic_id, 6)
            talk.ask(f"{kind}: producers", producers_of((kind, 0)))
            for level in LEVELS:
                talk.ask(
                    f"{kind}: the latest, level {level}", list_offsets(kind, MAX_TIMESTAMP, isolation=level)
                )
            for version in range(2, 12):
                for level in LEVELS:
                    asked = list_offsets(kind, talk.base_ms + 1, isolation=level)
                    talk.ask(f"{kind}: by time v{version}, level {level}", asked, version)


@TXN_READING.story
def by_time_while_it_is_open(talk: Talk) -> None:
    ready(talk)
    topic_id = talk.create("timed")
    send(talk, "timed", batch(b"before", at_ms=talk.base_ms - 100))
    producer = started(talk, "comes", "timed")
    producer.send("writes", "timed", b"a", b"b", topic_id=topic_id)
    send(talk, "timed", batch(b"after", at_ms=talk.base_ms + 100))
    for distance in (-200, -100, -50, 0, 50, 100, 200):
        for level in LEVELS:
            asked = list_offsets("timed", talk.base_ms + distance, isolation=level)
            talk.same(f"at {distance}, level {level}", asked, [2, 7, 11])
    ends(talk, "open", "timed")
    producer.ended("aborts", commit=False)
    for distance in (-200, -100, -50, 0, 50, 100, 200):
        for level in LEVELS:
            asked = list_offsets("timed", talk.base_ms + distance, isolation=level)
            talk.ask(f"over, at {distance}, level {level}", asked)
    ends(talk, "over", "timed")
    talk.same("a level that is none", list_offsets("timed", LATEST, isolation=2), [2, 11])
    talk.same("a negative level", list_offsets("timed", LATEST, isolation=-1), [2, 11])
    talk.same(
        "a fetch of a level that is none", fetch("timed", topic_id=topic_id, isolation_level=2), [4, 18]
    )


@TXN_READING.story
def several_producers(talk: Talk) -> None:
    """Transactions that overlap, some of them aborted."""
    ready(talk)
    topic_id = talk.create("overlap")
    names = ("a", "b", "c", "d")
    some = [started(talk, f"{name} comes", f"overlap-{name}", is_old=name in "ac") for name in names]

    def write(number: int, value: bytes) -> None:
        producer: Producer = some[number]
        if producer.is_old:
            producer.add(f"{producer.name} adds for {value!r}", "overlap")
        producer.send(f"{producer.name} writes {value!r}", "overlap", value, topic_id=topic_id)

    write(0, b"a1")
    write(1, b"b1")
    write(2, b"c1")
    write(0, b"a2")
    read(talk, "three are open", "overlap", topic_id)
    some[1].ended("b aborts", commit=False)
    read(talk, "the second is over", "overlap", topic_id)
    write(3, b"d1")
    some[0].ended("a commits", commit=True)
    read(talk, "the first is over", "overlap", topic_id)
    write(0, b"a3")
    some[2].ended("c aborts", commit=False)
    read(talk, "the third is over", "overlap", topic_id)
    write(1, b"b2")
    some[3].ended("d commits", commit=True)
    some[0].ended("a aborts", commit=False)
    read(talk, "one is open", "overlap", topic_id)
    some[1].ended("b commits", commit=True)
    read(talk, "all are over", "overlap", topic_id)
    for offset in range(1, 14):
        asked = fetch("overlap", offset, topic_id=topic_id, isolation_level=1)
        talk.ask(f"from {offset}", asked)
        small = fetch("overlap", offset, topic_id=topic_id, isolation_level=1, partition_max_bytes=1)
        talk.ask(f"little from {offset}", small)
    talk.ask("producers", producers_of(("overlap", 0)))
    talk.quietly(delete_records("overlap", 3), 2)
    read(talk, "the first ones are deleted", "overlap", topic_id, 3)


@TXN_READING.story
def what_is_deleted(talk: Talk) -> None:
    ready(talk)
    topic_id = talk.create("deleted")
    producer = started(talk, "comes", "deleted")
    send(talk, "deleted", batch(b"before", at_ms=talk.base_ms))
    producer.send("writes", "deleted", b"a", b"b", topic_id=topic_id)
    send(talk, "deleted", batch(b"after", at_ms=talk.base_ms))
    talk.ask("up to the end", delete_records("deleted", -1))
    talk.ask("producers", producers_of(("deleted", 0)))
    for level in LEVELS:
        asked = list_offsets("deleted", LATEST, isolation=level)
        talk.ask(f"the end, level {level}", asked)
    producer.ended("commits", commit=True)
    for level in LEVELS:
        asked = list_offsets("deleted", LATEST, isolation=level)
        talk.ask(f"the end after it, level {level}", asked)
    talk.create("gone")
    other = started(talk, "another comes", "gone", is_old=True)
    other.add("it adds", "gone")
    talk.delete("gone")
    other.describe("its topic is gone")
    other.ended("it commits", commit=True)
    other.describe("it is over")
    other.add("it adds what is gone", "gone")
    talk.create("gone")
    other.add("it adds what is there again", "gone")
    other.ended("it aborts", commit=False)
    talk.ask("read again", fetch("gone", isolation_level=1), 12)
