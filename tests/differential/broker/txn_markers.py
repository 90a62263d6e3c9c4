"""Markers: WriteTxnMarkers as coordinators and administrators send it, and what DescribeProducers says."""

from typing import Any

from differential.broker.group_requests import ready as groups_ready
from differential.broker.offset_requests import fetch_offsets
from differential.broker.producers import producers_of
from differential.broker.sending import fetch
from differential.broker.talk import Family, Talk
from differential.broker.txn_batches import Sender, bytes_of
from differential.broker.txn_requests import (
    OFFSETS_TOPIC,
    ONE_REPLICA,
    STATE_TOPIC,
    commit_offsets,
    marker,
    markers,
    ready,
    started,
)

TXN_MARKERS = Family("txn-markers", settings=ONE_REPLICA)
EVERY = (1, 2)


@TXN_MARKERS.story
def of_an_open_transaction(talk: Talk) -> None:
    ready(talk)
    topic_id = talk.create("open", 4)
    for version in EVERY:
        for transactions in (0, 2):
            partition = version - 1 + transactions
            kind = f"of {transactions} v{version}"
            producer = started(talk, f"comes {kind}", f"open-{version}-{transactions}")
            sender = Sender(talk, "open", topic_id, partition, 13)
            sender.send(f"writes {kind}", producer.name, bytes_of(talk, *producer.pair, 0))

            def ask(
                step: str,
                producer_id: int,
                epoch: int,
                kind: str = kind,
                partition: int = partition,
                transactions: int = transactions,
                version: int = version,
                **more: Any,
            ) -> None:
                row = marker(producer_id, epoch, {"open": [partition]}, version=transactions, **more)
                talk.ask(f"{step} {kind}", markers(row), version)
                talk.ask(f"{step}: producers {kind}", producers_of(("open", partition)))

            pid = producer.id
            ask("negative epoch", pid, -1)
            ask("negative id", -1, 0)
            ask("negative coordinator epoch", pid, 0, coordinator_epoch=-1)
            sender.send(f"writes on {kind}", producer.name, bytes_of(talk, *producer.pair, 1))
            ask("good", pid, 1 if transactions else 0, commit=False)
            ask("again", pid, 1 if transactions else 0, commit=False)
            ask("the other way round", pid, 1 if transactions else 0)
            ask("stale epoch", pid, 0)
            ask("later epoch", pid, 5, coordinator_epoch=3)
            ask("stale coordinator", pid, 6, coordinator_epoch=2)
            ask("stale coordinator, same epoch", pid, 5, coordinator_epoch=2)
            ask("later coordinator", pid, 6, coordinator_epoch=7)
            ask("the highest epoch", pid, 32_767, coordinator_epoch=7)
            ask("the highest epoch again", pid, 32_767, coordinator_epoch=7)
            for level in (0, 1):
                asked = fetch("open", topic_id=topic_id, partition=partition, isolation_level=level)
                talk.ask(f"read at level {level} {kind}", asked)


@TXN_MARKERS.story
def of_strangers(talk: Talk) -> None:
    ready(talk)
    topic_id = talk.create("strangers", 4)
    for version in EVERY:
        for transactions in (0, 1, 2, 3, -1):
            kind = f"of {transactions} v{version}"
            pid = 880_000 + 10 * version + transactions

            def ask(
                step: str,
                epoch: int,
                kind: str = kind,
                pid: int = pid,
                transactions: int = transactions,
                version: int = version,
                **more: Any,
            ) -> None:
                row = marker(pid, epoch, {"strangers": [0]}, version=transactions, **more)
                talk.ask(f"{step} {kind}", markers(row), version)

            ask("first", 3, coordinator_epoch=5)
            ask("again", 3, coordinator_epoch=5)
            ask("earlier epoch", 2, coordinator_epoch=5)
            ask("next epoch", 4, coordinator_epoch=5)
            ask("earlier coordinator", 4, coordinator_epoch=4)
    talk.ask("producers", producers_of(("strangers", 0)))
    talk.ask("read", fetch("strangers", topic_id=topic_id))


@TXN_MARKERS.story
def places(talk: Talk) -> None:
    ready(talk)
    groups_ready(talk)
    talk.create("placed", 2)
    pid = 990_001
    for version in EVERY:
        for step, topics in {
            "unknown topic": {"nobody-made-this": [0]},
            "unknown partition": {"placed": [2]},
            "negative partition": {"placed": [-1]},
            "a known and an unknown one": {"placed": [0, 2]},
            "several": {"placed": [0, 1]},
            "no partitions": {"placed": []},
            "no topics": {},
            "empty name": {"": [0]},
            "bad name": {"a b": [0]},
            "the offsets topic": {OFFSETS_TOPIC: [0]},
            "an unknown partition of the offsets topic": {OFFSETS_TOPIC: [60]},
            "the offsets topic and another": {OFFSETS_TOPIC: [0], "placed": [0]},
            "the state topic": {STATE_TOPIC: [0]},
        }.items():
            talk.ask(f"{step} v{version}", markers(marker(pid, 0, topics)), version)
        talk.ask(f"no markers v{version}", markers(), version)
        one, two = marker(pid + 1, 0, {"placed": [0]}), marker(pid + 2, 0, {"placed": [0, 5]})
        talk.ask(f"two markers v{version}", markers(one, two), version)
        again = markers(marker(pid + 3, 0, {"placed": [0]}), marker(pid + 3, 1, {"placed": [1]}))
        talk.ask(f"one producer twice v{version}", again, version)
        same = markers(marker(pid + 4, 0, {"placed": [0]}), marker(pid + 4, 0, {"placed": [0]}, commit=False))
        talk.ask(f"one producer twice in one place v{version}", same, version)
    talk.ask("producers", producers_of(("placed", 0), ("placed", 1)))
    talk.ask("read", fetch("placed"), 12)
    talk.ask("a partition twice", markers(marker(pid + 5, 0, {"placed": [1, 1]})))


@TXN_MARKERS.story
def of_nobody(talk: Talk) -> None:
    ready(talk)
    groups_ready(talk)
    talk.create("nobodys", 2)
    for version in EVERY:
        for who, (producer_id, epoch) in {
            "no id": (-1, 0),
            "no epoch": (5, -1),
            "negative id": (-3, 0),
            "negative epoch": (5, -3),
        }.items():
            for where, topics in {
                "here": {"nobodys": [0]},
                "in several": {"nobodys": [0, 1]},
                "in the offsets topic": {OFFSETS_TOPIC: [0]},
                "nowhere": {"nobody-made-this": [0]},
                "here and nowhere": {"nobodys": [0, 7]},
            }.items():
                row = marker(producer_id, epoch, topics)
                talk.ask(f"{who} {where} v{version}", markers(row), version)
        bad, good = marker(-1, 0, {"nobodys": [0]}), marker(990_100, 0, {"nobodys": [1]})
        talk.ask(f"a good one and one of nobody v{version}", markers(good, bad), version)
        talk.ask(f"one of nobody and a good one v{version}", markers(bad, good), version)


@TXN_MARKERS.story
def of_offsets(talk: Talk) -> None:
    """A marker that an administrator writes into the offsets topic ends what is pending there."""
    ready(talk)
    groups_ready(talk)
    talk.create("pending")
    for version in EVERY:
        for commit in (True, False):
            what = f"{'commit' if commit else 'abort'} v{version}"
            group = f"pending-{version}-{commit}"
            producer = started(talk, f"comes for {what}", group)
            talk.ask(f"before {what}", commit_offsets(producer.name, producer.pair, group, "pending", 4))
            talk.ask(f"pending before {what}", fetch_offsets(group, stable=True), 9)
            stale = marker(producer.id, -1, {OFFSETS_TOPIC: [0]}, commit=commit)
            talk.ask(f"negative epoch, {what}", markers(stale), version)
            row = marker(producer.id, 1, {OFFSETS_TOPIC: [0]}, commit=commit, version=2)
            talk.ask(what, markers(row), version)
            talk.ask(f"after {what}", fetch_offsets(group, stable=True), 9)
            late = marker(producer.id, 0, {OFFSETS_TOPIC: [0]}, commit=not commit)
            talk.ask(f"late, {what}", markers(late), version)


@TXN_MARKERS.story
def hanging(talk: Talk) -> None:
    """As an administrator ends what the coordinator knows nothing of: with the producer's own epoch."""
    ready(talk)
    topic_id = talk.create("hanging", 3)
    producer = started(talk, "comes", "hanging")
    for partition in range(3):
        sender = Sender(talk, "hanging", topic_id, partition, 13)
        sender.send(f"writes to {partition}", producer.name, bytes_of(talk, *producer.pair, 0))
    talk.ask("producers", producers_of(("hanging", 0), ("hanging", 1)))
    row = marker(*producer.pair, {"hanging": [0]}, commit=False)
    talk.ask("aborted in one place", markers(row), 1)
    modern = marker(*producer.pair, {"hanging": [1]}, commit=False, version=2)
    talk.ask("aborted in one place, of version 2", markers(modern), 2)
    talk.ask("producers after it", producers_of(("hanging", 0), ("hanging", 1)))
    producer.describe("still open")
    Sender(talk, "hanging", topic_id, 0, 13).send(
        "writes on", producer.name, bytes_of(talk, *producer.pair, 1)
    )
    producer.ended("commits", commit=True)
    talk.ask("producers at last", producers_of(("hanging", 0), ("hanging", 1), ("hanging", 2)))
    for partition in range(3):
        asked = fetch("hanging", topic_id=topic_id, partition=partition, isolation_level=1)
        talk.ask(f"read {partition}", asked)
