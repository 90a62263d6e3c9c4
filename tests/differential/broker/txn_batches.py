"""Batches that belong to a transaction: Produce of both versions of transactions."""

from typing import Any

from barnabas.base.ids import Uuid
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from differential.broker.batches import batch
from differential.broker.group_requests import ready as groups_ready
from differential.broker.offsets import LATEST, list_offsets
from differential.broker.producers import new_producer, producers_of
from differential.broker.sending import fetch, produce
from differential.broker.talk import Family, Talk
from differential.broker.txn_requests import (
    OFFSETS_TOPIC,
    ONE_REPLICA,
    STATE_TOPIC,
    Producer,
    ready,
    started,
)

TXN_BATCHES = Family("txn-batches", settings=ONE_REPLICA)
EVERY = range(3, 14)


def bytes_of(
    talk: Talk, producer_id: int, epoch: int, sequence: int, *, transactional: bool = True, count: int = 1
) -> bytes:
    return batch(
        *(b"v%d" % number for number in range(count)),
        at_ms=talk.base_ms,
        producer=(producer_id, epoch, sequence),
        transactional=transactional,
    )


class Sender:
    """Sends batches of any producer to one partition, in one version."""

    def __init__(self, talk: Talk, topic: str, topic_id: Uuid, partition: int, version: int) -> None:
        self.talk = talk
        self.topic = topic
        self.topic_id = topic_id
        self.partition = partition
        self.version = version

    def send(self, step: str, name: str | None, records: bytes, acks: int = -1) -> Any:
        request = produce(
            self.topic,
            records,
            topic_id=self.topic_id,
            partition=self.partition,
            transactional_id=name,
            acks=acks,
        )
        return self.talk.ask(f"{step} v{self.version}", request, self.version)


@TXN_BATCHES.story
def what_is_let_in(talk: Talk) -> None:
    ready(talk)
    topic_id = talk.create("let-in", 16)
    for version in EVERY:
        producer = started(talk, f"comes v{version}", f"let-in-{version}")
        sender = Sender(talk, "let-in", topic_id, version, version)
        send, name, pid = sender.send, producer.name, producer.id
        send("without a transactional id", None, bytes_of(talk, pid, 0, 0))
        send("an unknown transactional id", "nobody", bytes_of(talk, pid, 0, 0))
        send("an empty transactional id", "", bytes_of(talk, pid, 0, 0))
        send("another producer id", name, bytes_of(talk, pid + 9_000, 0, 0))
        send("later epoch", name, bytes_of(talk, pid, 1, 0))
        send("no transaction's batch", name, bytes_of(talk, pid, 0, 0, transactional=False))
        producer.describe(f"nothing is added v{version}")
        talk.ask(f"producers v{version}", producers_of(("let-in", version)))
        if version < 12:
            send("not added", name, bytes_of(talk, pid, 0, 1))
            producer.add(f"adds v{version}", "let-in", version)
        send("a first one", name, bytes_of(talk, pid, 0, 1))
        send("a second one", name, bytes_of(talk, pid, 0, 2, count=2))
        send("the second again", name, bytes_of(talk, pid, 0, 2, count=2))
        send("a gap", name, bytes_of(talk, pid, 0, 9))
        send("another id's name", "nobody", bytes_of(talk, pid, 0, 4))
        send("no name", None, bytes_of(talk, pid, 0, 4))
        send("no transaction's batch within", name, bytes_of(talk, pid, 0, 4, transactional=False))
        producer.describe(f"described v{version}")
        talk.ask(f"producers within v{version}", producers_of(("let-in", version)))
        before = producer.epoch
        producer.ended(f"commits v{version}", commit=True, version=4 if version < 12 else 5)
        send("after the end", name, bytes_of(talk, pid, before, 4))
        send("with the next epoch", name, bytes_of(talk, pid, before + 1, 0))
        producer.describe(f"at last v{version}")
        talk.ask(f"producers at last v{version}", producers_of(("let-in", version)))


@TXN_BATCHES.story
def stale_epochs(talk: Talk) -> None:
    ready(talk)
    topic_id = talk.create("stale", 16)
    for version in (3, 8, 10, 11, 12, 13):
        old = started(talk, f"old v{version}", f"stale-{version}")
        sender = Sender(talk, "stale", topic_id, version, version)
        if version < 12:
            old.add(f"old adds v{version}", "stale", version)
        sender.send("old writes", old.name, bytes_of(talk, *old.pair, 0))
        new = Producer(talk, old.name)
        new.init(f"new comes too early v{version}")
        new.settled()
        new.init(f"new comes v{version}")
        sender.send("old writes on", old.name, bytes_of(talk, *old.pair, 1))
        if version < 12:
            new.add(f"new adds v{version}", "stale", version)
        sender.send("new writes", new.name, bytes_of(talk, *new.pair, 0))
        sender.send("old writes late", old.name, bytes_of(talk, *old.pair, 1))
        sender.send("a later one", new.name, bytes_of(talk, new.id, new.epoch + 1, 0))
        sender.send("new does not start at zero", new.name, bytes_of(talk, *new.pair, 5))
        new.ended(f"new commits v{version}", commit=True, version=4 if version < 12 else 5)
        sender.send("old is still late", old.name, bytes_of(talk, *old.pair, 1))
        talk.ask(f"producers v{version}", producers_of(("stale", version)))
        talk.ask(f"read v{version}", fetch("stale", topic_id=topic_id, partition=version))


@TXN_BATCHES.story
def several_in_one_request(talk: Talk) -> None:
    ready(talk)
    topic_id = talk.create("together", 4)
    plain = new_producer(talk, "plain")
    for version in (3, 11, 12, 13):
        one = started(talk, f"one v{version}", f"together-1-{version}")
        two = started(talk, f"two v{version}", f"together-2-{version}")

        def send(step: str, name: str | None, rows: dict[int, bytes], version: int = version) -> None:
            data = [PartitionProduceData(index=index, records=records) for index, records in rows.items()]
            topic = TopicProduceData(name="together", topic_id=topic_id, partition_data=data)
            request = ProduceRequest(transactional_id=name, acks=-1, timeout_ms=5_000, topic_data=[topic])
            talk.ask(f"{step} v{version}", request, version)

        if version < 12:
            one.add(f"one adds v{version}", "together", 0, 1)
            two.add(f"two adds v{version}", "together", 0, 1)
        first, second = bytes_of(talk, *one.pair, 0), bytes_of(talk, *two.pair, 0)
        send("two producers in two partitions", one.name, {0: first, 1: second})
        send(
            "a transaction and none",
            one.name,
            {0: first, 1: bytes_of(talk, plain, version, 0, transactional=False)},
        )
        send("two batches in one partition", one.name, {0: first + bytes_of(talk, *one.pair, 1)})
        send("one partition added, one not", one.name, {0: first, 2: first})
        send("one partition unknown", one.name, {0: first, 9: first})
        send("two good ones", one.name, {0: first, 1: bytes_of(talk, *one.pair, 0)})
        one.describe(f"one is so v{version}")
        two.describe(f"two is so v{version}")
        one.ended(f"one ends v{version}", commit=True, version=4 if version < 12 else 5)


@TXN_BATCHES.story
def acknowledged_or_not(talk: Talk) -> None:
    ready(talk)
    topic_id = talk.create("acks", 4)
    for partition, version in enumerate((3, 11, 12, 13)):
        producer = started(talk, f"comes v{version}", f"acks-{version}")
        sender = Sender(talk, "acks", topic_id, partition, version)
        if version < 12:
            sender.send("acks 1, not added", producer.name, bytes_of(talk, *producer.pair, 0), acks=1)
            producer.add(f"adds v{version}", "acks", partition)
        sender.send("acks 1", producer.name, bytes_of(talk, *producer.pair, 0), acks=1)
        silent = produce(
            "acks",
            bytes_of(talk, *producer.pair, 1),
            topic_id=topic_id,
            partition=partition,
            transactional_id=producer.name,
            acks=0,
        )
        talk.tell(silent, version)
        talk.ask(f"after acks 0 v{version}", list_offsets("acks", LATEST, partition=partition))
        stale = produce(
            "acks",
            bytes_of(talk, producer.id, 5, 0),
            topic_id=topic_id,
            partition=partition,
            transactional_id="nobody",
            acks=0,
        )
        talk.tell(stale, version)
        talk.ask(f"after acks 0 of nobody v{version}", list_offsets("acks", LATEST, partition=partition))
        talk.ask(f"and then v{version}", list_offsets("acks", LATEST, partition=partition))
        sender.send("acks 2", producer.name, bytes_of(talk, *producer.pair, 2), acks=2)


@TXN_BATCHES.story
def internal_topics(talk: Talk) -> None:
    ready(talk)
    groups_ready(talk)
    for version in (3, 9, 11, 12):
        producer = started(talk, f"comes v{version}", f"internal-{version}")
        for topic in (STATE_TOPIC, OFFSETS_TOPIC):
            records = bytes_of(talk, *producer.pair, 0)
            request = produce(topic, records, transactional_id=producer.name)
            talk.ask(f"{topic}, not added v{version}", request, version)
            producer.add(f"{topic}, added v{version}", topic, 0)
            talk.ask(f"{topic} v{version}", request, version)
            talk.ask(
                f"{topic}, without a transaction v{version}",
                produce(topic, batch(b"a", at_ms=talk.base_ms)),
                version,
            )
        producer.describe(f"described v{version}")
        producer.ended(f"aborts v{version}", commit=False)


@TXN_BATCHES.story
def strange_batches(talk: Talk) -> None:
    ready(talk)
    topic_id = talk.create("strange", 14)
    for version in (3, 11, 12, 13):
        producer = started(talk, f"comes v{version}", f"strange-{version}")
        sender = Sender(talk, "strange", topic_id, version, version)
        send, name = sender.send, producer.name
        if version < 12:
            producer.add(f"adds v{version}", "strange", version)
        control = batch(
            b"x", at_ms=talk.base_ms, producer=(*producer.pair, 0), transactional=True, control=True
        )
        send("a marker", name, control)
        send("a control batch of none", name, batch(b"x", at_ms=talk.base_ms, control=True))
        send("no sequence", name, bytes_of(talk, *producer.pair, -1))
        send("negative epoch", name, bytes_of(talk, producer.id, -1, 0))
        send("plain records", name, batch(b"x", at_ms=talk.base_ms))
        send("no records", name, b"")
        unknown = produce("nobody-made-this", bytes_of(talk, *producer.pair, 0), transactional_id=name)
        talk.ask(f"unknown topic v{version}", unknown, version)
        producer.describe(f"described v{version}")
        talk.ask(f"producers v{version}", producers_of(("strange", version)))
        send("good", name, bytes_of(talk, *producer.pair, 0))
        producer.ended(f"commits v{version}", commit=True, version=4 if version < 12 else 5)
        talk.ask(f"read v{version}", fetch("strange", topic_id=topic_id, partition=version))


@TXN_BATCHES.story
def of_no_producer(talk: Talk) -> None:
    ready(talk)
    topic_id = talk.create("ownerless")
    started(talk, "comes", "ownerless")
    for version in (3, 11, 12, 13):
        sender = Sender(talk, "ownerless", topic_id, 0, version)
        sender.send("no id", "ownerless", batch(b"x", at_ms=talk.base_ms, transactional=True))
        sender.send("negative id", "ownerless", bytes_of(talk, -2, 0, 0))


@TXN_BATCHES.story
def idempotent_before_it(talk: Talk) -> None:
    """A producer's batches outside of transactions and within them, in one partition."""
    ready(talk)
    topic_id = talk.create("before", 2)
    for partition, version in enumerate((11, 13)):
        producer = started(talk, f"comes v{version}", f"before-{version}")
        sender = Sender(talk, "before", topic_id, partition, version)
        sender.send("outside", None, bytes_of(talk, *producer.pair, 0, transactional=False))
        if version < 12:
            producer.add(f"adds v{version}", "before", partition)
        sender.send("within", producer.name, bytes_of(talk, *producer.pair, 1))
        sender.send("outside again", None, bytes_of(talk, *producer.pair, 2, transactional=False))
        producer.ended(f"commits v{version}", commit=True, version=4 if version < 12 else 5)
        sender.send("outside after it", None, bytes_of(talk, *producer.pair, 2, transactional=False))
        sender.send("outside, from zero", None, bytes_of(talk, *producer.pair, 0, transactional=False))
        talk.ask(f"producers v{version}", producers_of(("before", partition)))
