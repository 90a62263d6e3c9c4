"""Transactions after their coordinator was started again, and those at the end of a producer's epochs.

Nobody uses up 32,767 epochs in a story: what the coordinator finds is written into its topic as only
administrators may, and read when it starts.
"""

from collections.abc import Mapping

from barnabas.protocol.stored.framing import encode_key, encode_value
from barnabas.protocol.stored.transactions import PartitionsSchema, TransactionLogKey, TransactionLogValue
from differential.broker.batches import batch
from differential.broker.group_requests import ready as groups_ready
from differential.broker.offset_requests import fetch_offsets
from differential.broker.producers import init, producers_of
from differential.broker.sending import fetch, produce
from differential.broker.talk import Family, Talk
from differential.broker.txn_requests import (
    ONE_REPLICA,
    STATE_TOPIC,
    Producer,
    commit_offsets,
    describe,
    end,
    listed,
    ready,
    started,
)
from support.wire.client import WireClient, key_of

TXN_RESTARTS = Family(
    "txn-restarts",
    settings={**ONE_REPLICA, "transaction.abort.timed.out.transaction.cleanup.interval.ms": 200},
)

EMPTY, ONGOING, PREPARE_COMMIT, PREPARE_ABORT, COMPLETE_COMMIT, COMPLETE_ABORT = range(6)
ADMINISTRATOR = "__admin_client"
AN_HOUR_MS = 3_600_000
LAST = 32_766
NOTHING: Mapping[str, list[int]] = {}


class Found:
    """What the coordinator finds in its topic when it starts."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self._next_id = 770_000
        self._keys: list[bytes] = []
        self._values: list[bytes] = []

    def row(
        self,
        name: str,
        state: int,
        epoch: int,
        topics: Mapping[str, list[int]] = NOTHING,
        *,
        version: int = 1,
        client: int = 0,
        previous: int = -1,
        following: int = -1,
        is_late: bool = False,
    ) -> Producer:
        """A producer of its own, which speaks with this epoch."""
        self._next_id += 1
        tagged = {
            "previous_producer_id": previous,
            "next_producer_id": following,
            "client_transaction_version": client,
        }
        now_ms = self._talk.base_ms if is_late else self._talk.base_ms + AN_HOUR_MS
        partitions = [PartitionsSchema(topic=topic, partition_ids=rows) for topic, rows in topics.items()]
        value = TransactionLogValue(
            producer_id=self._next_id,
            producer_epoch=epoch,
            transaction_timeout_ms=60_000,
            transaction_status=state,
            transaction_partitions=None if state == EMPTY else partitions,
            transaction_last_update_timestamp_ms=now_ms,
            transaction_start_timestamp_ms=-1 if state == EMPTY else now_ms,
            **(tagged if version else {}),
        )
        self._keys.append(encode_key(TransactionLogKey(transactional_id=name)))
        self._values.append(encode_value(value, version))
        producer = Producer(self._talk, name)
        producer.id, producer.epoch = self._next_id, epoch
        return producer

    def restart(self) -> None:
        records = batch(*self._values, keys=self._keys, at_ms=self._talk.base_ms)
        request = produce(STATE_TOPIC, records)
        with WireClient(self._talk.address) as administrator:
            administrator.send(request, 9, client_id=ADMINISTRATOR)
            _, answer = administrator.receive(key_of(request), 9)
        self._talk.keep("found", answer.responses[0].partition_responses[0].error_code)
        self._talk.restart()
        ready(self._talk)


@TXN_RESTARTS.story
def a_clean_restart(talk: Talk) -> None:
    ready(talk)
    groups_ready(talk)
    topic_id = talk.create("lasting", 2)
    empty = started(talk, "empty", "lasting-empty")
    old = started(talk, "old", "lasting-old", is_old=True)
    old.add("old: adds", "lasting", 0)
    old.send("old: writes", "lasting", b"a", topic_id=topic_id)
    new = started(talk, "new", "lasting-new")
    new.send("new: writes", "lasting", b"b", topic_id=topic_id)
    offsets = commit_offsets(new.name, new.pair, "lasting", "lasting", 7)
    talk.ask("new: commits offsets", offsets)
    done = started(talk, "done", "lasting-done")
    done.send("done: writes", "lasting", b"c", topic_id=topic_id, partition=1)
    before = done.pair
    done.ended("done: commits", commit=True)

    talk.restart()
    ready(talk)
    groups_ready(talk)
    talk.led("lasting", [0, 1])

    for producer in (empty, old, new, done):
        producer.describe(f"{producer.name}: described")
    talk.ask("listed", listed(pattern="lasting-.*"))
    talk.ask("producers", producers_of(("lasting", 0), ("lasting", 1)))
    talk.ask("offsets meanwhile", fetch_offsets("lasting", stable=True), 9)
    talk.ask("done: a retry", end(done.name, *before, True))
    talk.ask("done: goes on from before", init(done.name, producer_id=before[0], epoch=before[1]))
    talk.ask("done: goes on", init(done.name, producer_id=done.id, epoch=done.epoch))
    talk.ask("empty: goes on", init(empty.name, producer_id=empty.id, epoch=empty.epoch))
    talk.ask("empty: goes on again", init(empty.name, producer_id=empty.id, epoch=empty.epoch))
    old.send("old: writes on", "lasting", b"d", topic_id=topic_id)
    old.ended("old: aborts", commit=False)
    new.send("new: writes on", "lasting", b"e", topic_id=topic_id)
    new.ended("new: commits", commit=True)
    talk.ask("offsets at last", fetch_offsets("lasting", stable=True), 9)
    for level in (0, 1):
        talk.ask(f"read at level {level}", fetch("lasting", topic_id=topic_id, isolation_level=level))


@TXN_RESTARTS.story
def decided_before_it(talk: Talk) -> None:
    """What was decided is carried out when the coordinator is back."""
    ready(talk)
    topic_id = talk.create("decided", 8)
    found = Found(talk)
    rows = [
        found.row("decided-commit", PREPARE_COMMIT, 3, {"decided": [0]}, client=2),
        found.row("decided-abort", PREPARE_ABORT, 3, {"decided": [1]}, client=2),
        found.row("decided-old", PREPARE_COMMIT, 3, {"decided": [2]}),
        found.row("decided-very-old", PREPARE_ABORT, 3, {"decided": [3]}, version=0),
        found.row("decided-next", PREPARE_COMMIT, LAST + 1, {"decided": [4]}, client=2, following=771_001),
        found.row("decided-gone", PREPARE_COMMIT, 3, {"nobody-made-this": [0], "decided": [99]}, client=2),
        found.row("decided-nothing", PREPARE_ABORT, 3, client=2),
        found.row("complete", COMPLETE_COMMIT, 3, version=0),
        found.row("complete-too", COMPLETE_ABORT, 4, client=2, previous=771_002),
        found.row("open", ONGOING, 3, {"decided": [5], "nobody-made-this": [1]}, version=0),
    ]
    found.restart()
    talk.led("decided", range(8))
    for producer in rows:
        producer.settled()
        producer.describe(f"{producer.name}: described")
    talk.ask("producers", producers_of(*(("decided", index) for index in range(6))))
    for index in range(6):
        talk.ask(f"read {index}", fetch("decided", topic_id=topic_id, partition=index))
    for producer in rows:
        for commit in (True, False):
            for version in (4, 5):
                what = f"{'commit' if commit else 'abort'} v{version}"
                asked = end(producer.name, producer.id, producer.epoch, commit)
                talk.ask(f"{producer.name}: {what}", asked, version)
                producer.settled()
        asked = init(producer.name, producer_id=producer.id, epoch=producer.epoch)
        talk.ask(f"{producer.name}: goes on", asked)
        producer.settled()
        producer.describe(f"{producer.name}: at last")


@TXN_RESTARTS.story
def the_last_epochs(talk: Talk) -> None:
    ready(talk)
    talk.create("epochs", 8)
    some = {"epochs": [0]}
    found = Found(talk)
    states = {"empty": EMPTY, "committed": COMPLETE_COMMIT, "aborted": COMPLETE_ABORT, "open": ONGOING}
    asked = ("init", "init-known", "init-stale", "commit-4", "abort-4", "commit-5", "abort-5")
    rows = [
        (found.row(f"{state}-{epoch}-{what}", number, epoch, some if number == ONGOING else NOTHING), what)
        for state, number in states.items()
        for epoch in (LAST - 1, LAST, LAST + 1)
        for what in asked
    ]
    found.restart()
    talk.led("epochs", range(8))
    for producer, what in rows:
        name, (pid, epoch) = producer.name, producer.pair
        for round_ in ("first", "again"):
            step = f"{name}: {round_}"
            if what == "init":
                talk.ask(step, init(name))
            elif what == "init-known":
                talk.ask(step, init(name, producer_id=pid, epoch=epoch))
            elif what == "init-stale":
                talk.ask(step, init(name, producer_id=pid, epoch=epoch - 1))
            else:
                word, _, version = what.partition("-")
                talk.ask(step, end(name, pid, epoch, word == "commit"), int(version))
            producer.settled()
            state = talk.quietly(describe(name), 0).transaction_states[0]
            # Fencing may have taken a new id, which is told to nobody yet.
            talk.keep(f"{step}, described", [state.transaction_state, state.producer_epoch])
        talk.ask(f"{name}: somebody new", init(name))
        producer.settled()
        talk.ask(f"{name}: somebody new again", init(name))


@TXN_RESTARTS.story
def too_late_with_the_last_epochs(talk: Talk) -> None:
    """They are aborted for their age as soon as the coordinator is there."""
    ready(talk)
    talk.create("too-late")
    found = Found(talk)
    some = {"too-late": [0]}
    rows = [
        found.row(f"late-{client}-{epoch}-{what}", ONGOING, epoch, some, client=client, is_late=True)
        for client in (0, 2)
        for epoch in (3, LAST - 1, LAST)
        for what in ("init", "known", "abort-4", "abort-5", "commit-5")
    ]
    found.restart()
    for producer in rows:
        name, (pid, epoch) = producer.name, producer.pair
        aborted = lambda answer: answer.transaction_states[0].transaction_state == "CompleteAbort"  # noqa: E731
        state = talk.until(describe(name), 0, aborted).transaction_states[0]
        talk.keep(f"{name}: described", state.producer_epoch)
        for round_ in ("first", "again"):
            step = f"{name}: {round_}"
            if name.endswith("init"):
                talk.ask(step, init(name))
            elif name.endswith("known"):
                talk.ask(step, init(name, producer_id=pid, epoch=epoch))
            else:
                talk.ask(step, end(name, pid, epoch, "commit" in name), int(name[-1]))
            producer.settled()
        talk.ask(f"{name}: somebody new", init(name))
