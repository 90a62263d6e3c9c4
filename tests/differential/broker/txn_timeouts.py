"""What time does to transactions: those that take too long are aborted, and their producers are fenced."""

from differential.broker.producers import init, producers_of
from differential.broker.sending import fetch
from differential.broker.talk import Family, Talk
from differential.broker.txn_requests import ONE_REPLICA, Producer, describe, end, listed, ready

INTERVAL_MS = 200
TIMEOUT_MS = 400
TXN_TIMEOUTS = Family(
    "txn-timeouts",
    settings={**ONE_REPLICA, "transaction.abort.timed.out.transaction.cleanup.interval.ms": INTERVAL_MS},
)


def timed_out(talk: Talk, producer: Producer) -> None:
    """Wait until it is aborted."""
    talk.until(
        describe(producer.name),
        0,
        lambda answer: answer.transaction_states[0].transaction_state == "CompleteAbort",
    )


@TXN_TIMEOUTS.story
def an_open_transaction(talk: Talk) -> None:
    ready(talk)
    topic_id = talk.create("late")
    for version in (0, 4, 5):
        producer = Producer(talk, f"late-{version}", is_old=version < 5)
        producer.init(f"comes v{version}", timeout_ms=TIMEOUT_MS)
        if version < 5:
            producer.add(f"adds v{version}", "late")
        producer.send(f"writes v{version}", "late", b"a", topic_id=topic_id)
        timed_out(talk, producer)
        producer.describe(f"described v{version}")
        talk.ask(f"commits v{version}", end(producer.name, *producer.pair, True), version)
        talk.ask(f"aborts v{version}", end(producer.name, *producer.pair, False), version)
        talk.ask(f"aborts again v{version}", end(producer.name, *producer.pair, False), version)
        producer.settled()
        producer.send(f"writes on v{version}", "late", b"b", topic_id=topic_id)
        producer.add(f"adds on v{version}", "late", version=3 if version < 5 else 5)
        own = init(producer.name, TIMEOUT_MS, producer_id=producer.id, epoch=producer.epoch)
        producer.heard(talk.ask(f"goes on v{version}", own))
        producer.describe(f"described again v{version}")
        talk.ask(f"goes on again v{version}", own)
        producer.init(f"comes anew v{version}")
        producer.describe(f"described at last v{version}")
    talk.ask("producers", producers_of(("late", 0)))
    talk.ask("read", fetch("late", topic_id=topic_id, isolation_level=1))


@TXN_TIMEOUTS.story
def nothing_is_open(talk: Talk) -> None:
    """Only what is open has a time."""
    ready(talk)
    talk.create("patient")
    producer = Producer(talk, "patient")
    producer.init("comes", timeout_ms=1)
    other = Producer(talk, "impatient")
    other.init("another comes", timeout_ms=1)
    other.add("it adds", "patient")
    timed_out(talk, other)
    producer.describe("the first is as before")
    talk.ask("listed", listed("CompleteAbort", pattern="impatient"))
