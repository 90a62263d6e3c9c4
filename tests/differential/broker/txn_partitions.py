"""What becomes part of a transaction: AddPartitionsToTxn of clients and of brokers, AddOffsetsToTxn."""

from differential.broker.group_requests import ready as groups_ready
from differential.broker.talk import Family, Talk
from differential.broker.txn_requests import (
    OFFSETS_TOPIC,
    OLD_ADD,
    ONE_REPLICA,
    STATE_TOPIC,
    Producer,
    Topics,
    add,
    add_offsets,
    ready,
    started,
    transaction,
)

TXN_PARTITIONS = Family("txn-partitions", settings=ONE_REPLICA)
CLIENTS, BROKERS = range(4), range(4, 6)
EVERY = range(6)


@TXN_PARTITIONS.story
def partitions(talk: Talk) -> None:
    ready(talk)
    groups_ready(talk)
    talk.create("added", 3)
    for version in EVERY:
        producer = started(talk, f"comes v{version}", f"adds-{version}")

        def asked(step: str, topics: Topics, who: Producer = producer, version: int = version) -> None:
            talk.ask(f"{step} v{version}", add(version, transaction(who.name, *who.pair, topics)), version)

        asked("no topics", {})
        asked("no partitions", {"added": []})
        producer.describe(f"nothing v{version}")
        asked("unknown topic", {"nobody-made-this": [0]})
        asked("unknown partition", {"added": [3]})
        asked("negative partition", {"added": [-1]})
        asked("a known and an unknown one", {"added": [0, 3], "nobody-made-this": [0]})
        asked("empty name", {"": [0]})
        asked("bad name", {"a b": [0]})
        producer.describe(f"still nothing v{version}")
        asked("one", {"added": [1]})
        producer.describe(f"one, described v{version}")
        asked("again", {"added": [1]})
        asked("one more", {"added": [1, 2]})
        asked("a partition twice", {"added": [0, 0]})
        asked("the offsets topic", {OFFSETS_TOPIC: [0]})
        asked("the state topic", {STATE_TOPIC: [0]})
        asked("no topics while it is open", {})
        producer.describe(f"several, described v{version}")


@TXN_PARTITIONS.story
def wrong_producers(talk: Talk) -> None:
    ready(talk)
    talk.create("refused", 2)
    some = {"refused": [0, 1]}
    for version in EVERY:
        producer = started(talk, f"comes v{version}", f"refused-{version}")

        def asked(
            step: str, name: str, producer_id: int, epoch: int, topics: Topics = some, version: int = version
        ) -> None:
            request = add(version, transaction(name, producer_id, epoch, topics))
            talk.ask(f"{step} v{version}", request, version)

        asked("unknown transactional id", "nobody", producer.id, 0)
        asked("empty transactional id", "", producer.id, 0)
        asked("another producer id", producer.name, producer.id + 9_000, 0)
        asked("negative producer id", producer.name, -1, 0)
        asked("later epoch", producer.name, producer.id, 1)
        asked("negative epoch", producer.name, producer.id, -1)
        asked("unknown id and unknown topic", "nobody", producer.id, 0, {"nobody-made-this": [0]})
        asked("empty id and unknown topic", "", producer.id, 0, {"nobody-made-this": [0]})
        producer.init(f"comes again v{version}")
        asked("earlier epoch", producer.name, producer.id, 0)
        asked("right", producer.name, *producer.pair)
        asked("earlier epoch while it is open", producer.name, producer.id, 0)
        asked("another producer id while it is open", producer.name, producer.id + 9_000, 1)
        before = producer.epoch
        producer.ended(f"commits v{version}", commit=True)
        asked("after the end", producer.name, producer.id, before)
        asked("with what it was given", producer.name, *producer.pair)
        producer.ended(f"aborts v{version}", commit=False, version=4)
        asked("after an end that gives no epoch", producer.name, *producer.pair)


@TXN_PARTITIONS.story
def verification(talk: Talk) -> None:
    """A broker asks whether the partition of a batch is part of the transaction."""
    ready(talk)
    talk.create("verified", 3)
    for version in BROKERS:
        producer = started(talk, f"comes v{version}", f"verified-{version}")

        def asked(
            step: str, name: str, producer_id: int, epoch: int, topics: Topics, version: int = version
        ) -> None:
            request = add(version, transaction(name, producer_id, epoch, topics, verify=True))
            talk.ask(f"{step} v{version}", request, version)

        asked("nothing is open", producer.name, *producer.pair, {"verified": [0]})
        producer.add(f"adds v{version}", "verified", 0, 2, version=OLD_ADD)
        asked("all of it", producer.name, *producer.pair, {"verified": [0, 2]})
        asked("one of it", producer.name, *producer.pair, {"verified": [2]})
        asked("one that is not", producer.name, *producer.pair, {"verified": [1]})
        asked("some that are not", producer.name, *producer.pair, {"verified": [0, 1, 2]})
        asked("one that does not exist", producer.name, *producer.pair, {"verified": [0, 7]})
        asked("a topic that does not exist", producer.name, *producer.pair, {"nobody-made-this": [0]})
        asked("no topics", producer.name, *producer.pair, {})
        asked("unknown transactional id", "nobody", *producer.pair, {"verified": [0]})
        asked("empty transactional id", "", *producer.pair, {"verified": [0]})
        asked("another producer id", producer.name, producer.id + 9_000, 0, {"verified": [0]})
        asked("later epoch", producer.name, producer.id, producer.epoch + 1, {"verified": [0]})
        asked("negative epoch", producer.name, producer.id, -1, {"verified": [0]})
        producer.describe(f"nothing is added v{version}")
        producer.ended(f"commits v{version}", commit=True, version=4)
        asked("after the end", producer.name, *producer.pair, {"verified": [0]})


@TXN_PARTITIONS.story
def several_at_once(talk: Talk) -> None:
    ready(talk)
    talk.create("several", 3)
    for version in BROKERS:
        one = started(talk, f"one v{version}", f"several-1-{version}")
        two = started(talk, f"two v{version}", f"several-2-{version}")
        first = transaction(one.name, *one.pair, {"several": [0, 1]})
        second = transaction(two.name, *two.pair, {"several": [2]})
        talk.ask(f"both v{version}", add(version, first, second), version)
        verified = transaction(one.name, *one.pair, {"several": [2]}, verify=True)
        added = transaction(two.name, *two.pair, {"several": [1]})
        talk.ask(f"one is verified, one added v{version}", add(version, verified, added), version)
        unknown = transaction("nobody", *one.pair, {"several": [0]})
        nowhere = transaction(one.name, *one.pair, {"nobody-made-this": [0], "several": [2]})
        mixed = add(version, unknown, nowhere, second)
        talk.ask(f"one is unknown, one nowhere, one good v{version}", mixed, version)
        talk.ask(f"none v{version}", add(version), version)
        third = transaction(two.name, *two.pair, {"several": [0]})
        talk.ask(f"one twice v{version}", add(version, second, third), version)
        one.describe(f"one is so v{version}")
        two.describe(f"two is so v{version}")


@TXN_PARTITIONS.story
def offsets(talk: Talk) -> None:
    ready(talk)
    groups_ready(talk)
    for version in range(5):
        producer = started(talk, f"comes v{version}", f"offsets-{version}")

        def asked(
            step: str, name: str, producer_id: int, epoch: int, group: str = "g", v: int = version
        ) -> None:
            talk.ask(f"{step} v{v}", add_offsets(name, producer_id, epoch, group), v)

        asked("unknown transactional id", "nobody", producer.id, 0)
        asked("empty transactional id", "", producer.id, 0)
        asked("another producer id", producer.name, producer.id + 9_000, 0)
        asked("later epoch", producer.name, producer.id, 1)
        asked("negative epoch", producer.name, producer.id, -1)
        producer.describe(f"nothing v{version}")
        asked("good", producer.name, *producer.pair)
        asked("again", producer.name, *producer.pair)
        asked("another group", producer.name, *producer.pair, "another")
        asked("no group", producer.name, *producer.pair, "")
        producer.describe(f"added v{version}")
        before = producer.pair
        producer.ended(f"commits v{version}", commit=True)
        asked("after the end", producer.name, *before)
        asked("with what it was given", producer.name, *producer.pair)
