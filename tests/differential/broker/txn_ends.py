"""How transactions end: EndTxn of both versions of transactions, once, twice, late and early."""

from differential.broker.talk import Family, Talk
from differential.broker.txn_requests import ONE_REPLICA, Producer, end, ready, started

TXN_ENDS = Family("txn-ends", settings=ONE_REPLICA)
OLD = range(5)
EVERY = range(6)


def says(talk: Talk, producer: Producer, version: int, step: str, commit: bool, **other: int) -> None:
    """It asks, and does not listen."""
    asked = end(
        producer.name,
        other.get("producer_id", producer.id),
        other.get("epoch", producer.epoch),
        commit,
    )
    talk.ask(f"{step} v{version}", asked, version)
    if producer.name:
        producer.settled()


@TXN_ENDS.story
def nothing_is_open(talk: Talk) -> None:
    ready(talk)
    for version in EVERY:
        for commit in (True, False):
            what = "commit" if commit else "abort"
            producer = started(talk, f"comes to {what} v{version}", f"nothing-{what}-{version}")
            says(talk, producer, version, what, commit)
            producer.describe(f"after a {what} v{version}")
            says(talk, producer, version, f"{what} again", commit)
            says(talk, producer, version, f"{what}, later epoch", commit, epoch=1)
            says(talk, producer, version, f"{what}, the epoch after that", commit, epoch=2)
            producer.describe(f"at last, {what} v{version}")
        nobody = Producer(talk, "nobody")
        says(talk, nobody, version, "unknown id", commit=True, producer_id=0, epoch=0)
        talk.ask(f"empty id v{version}", end("", 0, 0, True), version)


@TXN_ENDS.story
def once_and_again(talk: Talk) -> None:
    ready(talk)
    talk.create("ended", 2)
    for version in EVERY:
        for commit in (True, False):
            what = "commit" if commit else "abort"
            producer = started(talk, f"comes to {what} v{version}", f"once-{what}-{version}")
            producer.add(f"adds to {what} v{version}", "ended", 0, 1)
            says(talk, producer, version, what, commit)
            producer.describe(f"after a {what} v{version}")
            says(talk, producer, version, f"{what} again", commit)
            says(talk, producer, version, f"{what}, then the other", not commit)
            producer.describe(f"still so after a {what} v{version}")
            says(talk, producer, version, f"{what} with the next epoch", commit, epoch=1)
            says(talk, producer, version, f"{what}, then the other with the next epoch", not commit, epoch=1)
            producer.describe(f"at last, {what} v{version}")


@TXN_ENDS.story
def wrong_producers(talk: Talk) -> None:
    ready(talk)
    talk.create("kept")
    for version in EVERY:
        producer = started(talk, f"comes v{version}", f"kept-{version}")
        producer.init(f"comes again v{version}")
        producer.init(f"comes a third time v{version}")
        producer.add(f"adds v{version}", "kept", 0)
        says(talk, producer, version, "another id", commit=True, producer_id=producer.id + 9_000)
        says(talk, producer, version, "negative id", commit=True, producer_id=-1)
        says(talk, producer, version, "the epoch before", commit=True, epoch=1)
        says(talk, producer, version, "an epoch long before", commit=True, epoch=0)
        says(talk, producer, version, "the next epoch", commit=True, epoch=3)
        says(talk, producer, version, "a far epoch", commit=False, epoch=32_767)
        says(talk, producer, version, "negative epoch", commit=False, epoch=-1)
        producer.describe(f"still open v{version}")
        says(talk, producer, version, "its own", commit=True)
        producer.describe(f"committed v{version}")
        says(talk, producer, version, "another id, after it", commit=True, producer_id=producer.id + 9_000)
        says(talk, producer, version, "an epoch before, after it", commit=True, epoch=1)
        says(talk, producer, version, "a far epoch, after it", commit=True, epoch=9)


@TXN_ENDS.story
def one_after_another(talk: Talk) -> None:
    """Requests of a transaction that is over, while the next one is open."""
    ready(talk)
    talk.create("chained")
    producer = started(talk, "comes", "chained")
    for round_ in range(3):
        producer.add(f"adds {round_}", "chained", 0, version=5)
        before = producer.pair
        producer.describe(f"open {round_}")
        producer.ended(f"ends {round_}", commit=round_ != 1)
        producer.describe(f"ended {round_}")
        talk.ask(f"a retry {round_}", end(producer.name, *before, round_ != 1))
        talk.ask(f"the other, late {round_}", end(producer.name, *before, round_ == 1))
        talk.ask(f"a retry in an old version {round_}", end(producer.name, *before, round_ != 1), 4)
        producer.add(f"adds the next {round_}", "chained", 0, version=5)
        talk.ask(f"a retry while the next is open {round_}", end(producer.name, *before, round_ != 1))
        talk.ask(f"an abort while the next is open {round_}", end(producer.name, *before, False))
        producer.describe(f"the next is open {round_}")
        producer.ended(f"ends the next {round_}", commit=True)
    producer.end("commits nothing", commit=True)
    producer.ended("aborts nothing", commit=False)
    producer.ended("aborts nothing again", commit=False)
    producer.describe("at last")


@TXN_ENDS.story
def both_versions_of_transactions(talk: Talk) -> None:
    """One producer that speaks now as an old client, now as a new one."""
    ready(talk)
    talk.create("mixed")
    producer = started(talk, "comes", "mixed")
    for adds, ends in ((3, 5), (5, 4), (3, 4), (4, 5), (0, 5), (5, 0)):
        producer.add(f"adds in {adds}, ends in {ends}", "mixed", 0, version=adds)
        producer.describe(f"added in {adds} for {ends}")
        before = producer.pair
        producer.ended(f"ends in {ends} after {adds}", commit=True, version=ends)
        producer.describe(f"ended in {ends} after {adds}")
        talk.ask(f"again in 5 after {adds} and {ends}", end(producer.name, *before, True), 5)
        talk.ask(f"again in 4 after {adds} and {ends}", end(producer.name, *before, True), 4)
        producer.settled()
        producer.init(f"comes anew after {adds} and {ends}")
