"""What is asked before anybody has looked for a coordinator of transactions: there is no topic for them."""

from differential.broker.producers import init
from differential.broker.talk import Family, Talk
from differential.broker.txn_batches import Sender, bytes_of
from differential.broker.txn_requests import (
    OFFSETS_TOPIC,
    ONE_REPLICA,
    STATE_TOPIC,
    add,
    add_offsets,
    commit_offsets,
    describe,
    end,
    listed,
    marker,
    markers,
    ready,
    started,
    transaction,
)

TXN_EARLY = Family("txn-early", settings=ONE_REPLICA)


@TXN_EARLY.story
def before_there_is_a_coordinator(talk: Talk) -> None:
    topic_id = talk.create("first", 14)
    talk.same("init", init("first"))
    talk.same("init with a wrong timeout", init("first", 0), [0, 5])
    talk.same("init with an empty id", init(""), [0, 5])
    talk.same("init of the same", init("first", producer_id=5, epoch=0), [3, 5])
    for version in range(6):
        there, elsewhere = {"first": [0, 1]}, {"nobody-made-this": [0]}
        talk.ask(f"adds v{version}", add(version, transaction("first", 5, 0, there)), version)
        unknown = transaction("first", 5, 0, {**there, **elsewhere})
        talk.ask(f"adds what is not there v{version}", add(version, unknown), version)
        talk.ask(f"adds without an id v{version}", add(version, transaction("", 5, 0, there)), version)
        if version > 3:
            verified = transaction("first", 5, 0, there, verify=True)
            talk.ask(f"verifies v{version}", add(version, verified), version)
    talk.same("adds offsets", add_offsets("first", 5, 0, "group"))
    talk.same("commits offsets", commit_offsets("first", (5, 0), "group", "first", 1))
    talk.same("ends", end("first", 5, 0, True))
    talk.same("ends without an id", end("", 5, 0, True), [0, 5])
    talk.same("describes", describe("first"))
    talk.same("describes without an id", describe(""))
    talk.same("lists", listed())
    talk.same("lists a state", listed("Ongoing", "Unknown"))
    for version in (3, 9, 11, 12, 13):
        sender = Sender(talk, "first", topic_id, version, version)
        sender.send("writes", "first", bytes_of(talk, 5, 0, 0))
        sender.send("writes without an id", "", bytes_of(talk, 5, 0, 0))
    row = marker(5, 0, {"first": [0], OFFSETS_TOPIC: [0], STATE_TOPIC: [0]})
    talk.same("marks", markers(row))
    ready(talk)
    producer = started(talk, "comes", "first")
    producer.describe("is there")
    talk.ask("adds offsets of a group that nobody knows", add_offsets("first", *producer.pair, "group"))
    producer.ended("ends what has no partition", commit=True, version=4)
    producer.describe("it is over")
