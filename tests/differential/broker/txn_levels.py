"""Transactions where something is turned down: the cluster's transaction.version, verification, groups."""

from differential.broker.admin import SAFE_DOWNGRADE, feature
from differential.broker.group_requests import ready as groups_ready
from differential.broker.offset_requests import fetch_offsets
from differential.broker.producers import init, producers_of
from differential.broker.sending import fetch
from differential.broker.talk import Family, Talk
from differential.broker.txn_batches import Sender, bytes_of
from differential.broker.txn_requests import (
    ONE_REPLICA,
    add_offsets,
    commit_offsets,
    end,
    ready,
    started,
)

TXN_LEVELS = Family(
    "txn-levels",
    settings={**ONE_REPLICA, "transaction.abort.timed.out.transaction.cleanup.interval.ms": 200},
)
TXN_UNVERIFIED = Family(
    "txn-unverified", settings={**ONE_REPLICA, "transaction.partition.verification.enable": "false"}
)


@TXN_LEVELS.story
def before_there_are_groups(talk: Talk) -> None:
    """Nobody has asked for the coordinator of a group, so there is no topic for offsets."""
    ready(talk)
    talk.create("early")
    for version in (0, 3, 4):
        producer = started(talk, f"comes v{version}", f"early-{version}")
        for group in ("early", "and-another", "and-one-more"):
            asked_for = add_offsets(producer.name, *producer.pair, group)
            talk.ask(f"adds {group} v{version}", asked_for, version)
        producer.describe(f"described v{version}")
        asked = commit_offsets(producer.name, producer.pair, "early", "early", 3)
        talk.ask(f"commits offsets v{version}", asked, version)
        talk.ask(f"wrong id v{version}", add_offsets("nobody", *producer.pair, "early"), version)
        talk.ask(f"no id v{version}", add_offsets("", *producer.pair, "early"), version)
    producer = started(talk, "comes v5", "early-5")
    talk.ask("commits offsets v5", commit_offsets(producer.name, producer.pair, "early", "early", 3), 5)
    producer.describe("described v5")


def at_level(talk: Talk, level: int) -> None:
    ready(talk)
    name = f"level-{level}"
    topic_id = talk.create(name, 14)
    talk.ask("turned down", feature("transaction.version", level, SAFE_DOWNGRADE))
    talk.settle()
    # At level 0 nothing of what later versions say can be written down: see below.
    for version in (3, 11, 12, 13) if level else (3, 11):
        producer = started(talk, f"comes v{version}", f"{name}-{version}", is_old=version < 12)
        sender = Sender(talk, name, topic_id, version, version)
        sender.send("not added", producer.name, bytes_of(talk, *producer.pair, 0))
        producer.describe(f"described v{version}")
        producer.add(f"adds v{version}", name, version)
        sender.send("added", producer.name, bytes_of(talk, *producer.pair, 0))
        talk.ask(f"producers v{version}", producers_of((name, version)))
        producer.ended(f"ends v{version}", commit=True, version=4)
        producer.describe(f"ended v{version}")
        sender.send("after the end", producer.name, bytes_of(talk, *producer.pair, 1))
        producer.add(f"adds again v{version}", name, version)
        sender.send("added again", producer.name, bytes_of(talk, *producer.pair, 1))
        talk.ask(f"another comes v{version}", init(producer.name))
        producer.settled()
        producer.describe(f"fenced v{version}")
        talk.ask(f"the first ends v{version}", end(producer.name, *producer.pair, False), 4)
        producer.init(f"another comes again v{version}")
        sender.send("another writes", producer.name, bytes_of(talk, *producer.pair, 0))
        producer.ended(f"another aborts v{version}", commit=False, version=4)
        talk.ask(f"read v{version}", fetch(name, topic_id=topic_id, partition=version, isolation_level=1))
        talk.ask(f"producers at last v{version}", producers_of((name, version)))


def as_new_clients_speak(talk: Talk, level: int) -> None:
    """They should not, below level 2. Each has its own id: in Kafka what fails leaves an id unusable."""
    name = f"level-{level}-new"
    topic_id = talk.create(name)
    for version in (4, 5):
        producer = started(talk, f"to add in {version}", f"{name}-add-{version}")
        producer.add(f"adds in {version}", name, version=version)
        if level:
            producer.describe(f"added in {version}")
            producer.ended(f"added in {version}, ends in 4", commit=True, version=4)
    for version in (12, 13):
        producer = started(talk, f"to write in {version}", f"{name}-write-{version}")
        sender = Sender(talk, name, topic_id, 0, version)
        sender.send("written", producer.name, bytes_of(talk, *producer.pair, 0))
        if level:
            producer.describe(f"written in {version}")
            producer.ended(f"written in {version}, ends in 5", commit=True, version=5)
            producer.describe(f"written in {version}, ended in 5")
    for commit in (True, False):
        what = "commit" if commit else "abort"
        for is_open in (True, False):
            step = f"to {what} {'something' if is_open else 'nothing'}"
            producer = started(talk, step, f"{name}-{what}-{is_open}")
            if is_open:
                producer.add(f"{step}: adds", name)
            producer.end(f"{step}: ends in 5", commit, version=5)
            if level:
                producer.settled()
                producer.describe(f"{step}: described")


@TXN_LEVELS.story
def at_level_1(talk: Talk) -> None:
    at_level(talk, 1)
    as_new_clients_speak(talk, 1)


@TXN_LEVELS.story
def at_level_0(talk: Talk) -> None:
    at_level(talk, 0)
    as_new_clients_speak(talk, 0)


@TXN_UNVERIFIED.story
def without_verification(talk: Talk) -> None:
    ready(talk)
    groups_ready(talk)
    topic_id = talk.create("unverified", 14)
    for version in (3, 11, 12, 13):
        producer = started(talk, f"comes v{version}", f"unverified-{version}")
        sender = Sender(talk, "unverified", topic_id, version, version)
        sender.send("of nobody", "nobody", bytes_of(talk, producer.id + 9_000, 0, 0))
        sender.send("without a name", None, bytes_of(talk, *producer.pair, 0))
        sender.send("not added", producer.name, bytes_of(talk, *producer.pair, 0))
        sender.send("later epoch", producer.name, bytes_of(talk, producer.id, 4, 0))
        sender.send("earlier epoch", producer.name, bytes_of(talk, *producer.pair, 1))
        producer.describe(f"described v{version}")
        talk.ask(f"producers v{version}", producers_of(("unverified", version)))
        for ends in (4, 5):
            producer.ended(f"ends in {ends} v{version}", commit=True, version=ends)
        asked = fetch("unverified", topic_id=topic_id, partition=version, isolation_level=1)
        talk.ask(f"read v{version}", asked)
        group = f"unverified-{version}"
        for commits in (0, 4, 5):
            asked_offsets = commit_offsets(producer.name, producer.pair, group, "unverified", commits)
            talk.ask(f"offsets in {commits} v{version}", asked_offsets, commits)
        talk.ask(f"offsets meanwhile v{version}", fetch_offsets(group, stable=True), 9)
        producer.ended(f"aborts v{version}", commit=False)
