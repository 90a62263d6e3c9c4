"""Who is the producer of a transactional id: FindCoordinator, InitProducerId, and what administrators see."""

from barnabas.protocol.messages.classic_groups import FindCoordinatorRequest
from differential.broker.producers import init
from differential.broker.talk import Family, Talk
from differential.broker.txn_requests import (
    ONE_REPLICA,
    TRANSACTIONS,
    Producer,
    describe,
    listed,
    ready,
    started,
)

TXN_PRODUCERS = Family("txn-producers", settings=ONE_REPLICA)
KNOWS_ITSELF = range(3, 6)


@TXN_PRODUCERS.story
def find_coordinators(talk: Talk) -> None:
    ready(talk)
    for version in range(1, 7):
        for key in ("find-me", "", "ä" * 300, "a b/c"):
            named = {"coordinator_keys": [key]} if version >= 4 else {"key": key}
            asked = FindCoordinatorRequest(key_type=TRANSACTIONS, **named)
            talk.ask(f"{key[:8]!r} v{version}", asked, version)
    several = FindCoordinatorRequest(key_type=TRANSACTIONS, coordinator_keys=["one", "two", "", "one"])
    talk.same("several", several, range(4, 7))
    talk.same("none", FindCoordinatorRequest(key_type=TRANSACTIONS, coordinator_keys=[]), range(4, 7))


@TXN_PRODUCERS.story
def new_ids(talk: Talk) -> None:
    ready(talk)
    for version in range(6):
        producer = Producer(talk, f"new-{version}")
        producer.init(f"new v{version}", version)
        producer.init(f"again v{version}", version)
        producer.describe(f"described v{version}")
    talk.same("once more", init("new-0"))
    talk.same("empty id", init(""))
    for timeout_ms in (0, -1, 900_001, 2_147_483_647, -2_147_483_648):
        talk.same(f"timeout {timeout_ms}", init("bad-timeout", timeout_ms))
    talk.ask("not made by that", describe("bad-timeout"))
    for timeout_ms in (1, 900_000):
        talk.same(f"timeout {timeout_ms}", init(f"timeout-{timeout_ms}", timeout_ms))
        talk.ask(f"timeout {timeout_ms}: described", describe(f"timeout-{timeout_ms}"))
    talk.same("another timeout", init("timeout-1", 70_000), [5])
    talk.ask("another timeout: described", describe("timeout-1"))
    talk.same("a wrong timeout of a known one", init("timeout-1", 0))
    talk.same("a long id", init("x" * 32_767), [1, 5])
    talk.same("a strange id", init("a b/c\u00e4\n"), [1, 5])


@TXN_PRODUCERS.story
def the_same_producer(talk: Talk) -> None:
    """It says which id and epoch it had."""
    ready(talk)
    for version in KNOWS_ITSELF:
        name = f"same-{version}"

        def again(step: str, producer_id: int, epoch: int, name: str = name, version: int = version) -> None:
            talk.ask(f"{step} v{version}", init(name, producer_id=producer_id, epoch=epoch), version)

        again("unknown, with an id and epoch", 4_711, 0)
        again("unknown, with another id and epoch", 4_712, 7)
        talk.ask(f"described v{version}", describe(name))
        producer = Producer(talk, f"goes-on-{version}")
        producer.init(f"first v{version}", version)
        name = producer.name
        again("goes on", producer.id, 0, name)
        again("goes on, again", producer.id, 0, name)
        again("goes on from there", producer.id, 1, name)
        again("the epoch before the last", producer.id, 0, name)
        again("the last epoch but one, again", producer.id, 1, name)
        again("a later epoch", producer.id, 9, name)
        again("another id", producer.id + 7_000, 2, name)
        again("another id with the last epoch", producer.id + 7_000, 32_766, name)
        again("an id only", producer.id, -1, name)
        again("an epoch only", -1, 2, name)
        again("a negative id", -5, 2, name)
        again("a negative epoch", producer.id, -5, name)
        again("the highest epoch", producer.id, 32_767, name)
        talk.ask(f"described at last v{version}", describe(name))
        producer.init(f"somebody new v{version}", version)
        again("the one before", producer.id, 2, name)
        again("the new one", producer.id, 3, name)


@TXN_PRODUCERS.story
def while_a_transaction_is_open(talk: Talk) -> None:
    ready(talk)
    talk.create("interrupted")
    for version in (0, 3, 4, 5):
        producer = started(talk, f"first v{version}", f"open-{version}", is_old=True)
        producer.add(f"adds v{version}", "interrupted", 0)
        old = producer.pair
        talk.ask(f"another comes v{version}", init(producer.name), version)
        producer.settled()
        producer.describe(f"described v{version}")
        talk.ask(f"it comes again v{version}", init(producer.name), version)
        producer.end(f"the first ends it v{version}", commit=True)
        producer.add(f"the first adds v{version}", "interrupted", 0)
        if version >= 3:
            request = init(producer.name, producer_id=old[0], epoch=old[1])
            talk.ask(f"the first goes on v{version}", request, version)
    for version in KNOWS_ITSELF:
        producer = started(talk, f"second v{version}", f"open-known-{version}", is_old=True)
        producer.add(f"second adds v{version}", "interrupted", 0)
        own = init(producer.name, producer_id=producer.id, epoch=producer.epoch)
        wrong = init(producer.name, producer_id=producer.id, epoch=producer.epoch + 1)
        talk.ask(f"a wrong id v{version}", init(producer.name, producer_id=999_999, epoch=0), version)
        talk.ask(f"a wrong timeout v{version}", init(producer.name, 0), version)
        producer.describe(f"still open v{version}")
        talk.ask(f"a wrong epoch v{version}", wrong, version)
        producer.settled()
        producer.describe(f"after a wrong epoch v{version}")
        talk.ask(f"its own v{version}", own, version)
        producer.settled()
        producer.describe(f"after its own v{version}")
        talk.ask(f"its own again v{version}", own, version)
        producer.describe(f"after its own again v{version}")


@TXN_PRODUCERS.story
def described(talk: Talk) -> None:
    ready(talk)
    talk.create("seen", 3)
    talk.create("also-seen", 2)
    producer = started(talk, "comes", "seen-1")
    producer.describe("empty")
    producer.add("adds", "seen", 2, 0)
    producer.describe("ongoing")
    producer.add("adds more", "also-seen", 1)
    producer.describe("ongoing with more")
    producer.ended("commits", commit=True, version=4)
    producer.describe("committed")
    producer.add("adds again", "seen", 1)
    producer.ended("aborts", commit=False, version=4)
    producer.describe("aborted")
    producer.add("adds in version 5", "seen", 1, version=5)
    producer.ended("commits in version 5", commit=True, version=5)
    producer.describe("committed in version 5")
    producer.init("comes anew")
    producer.describe("empty again")
    talk.ask("unknown", describe("nobody"))
    talk.ask("no name", describe(""))
    talk.ask("none", describe())
    talk.ask("several", describe("seen-1", "nobody", "seen-1", ""))


@TXN_PRODUCERS.story
def list_transactions(talk: Talk) -> None:
    ready(talk)
    talk.create("listed")
    empty = started(talk, "empty", "list-empty")
    ongoing = started(talk, "ongoing", "list-ongoing")
    ongoing.add("ongoing: adds", "listed")
    committed, aborted = started(talk, "committed", "list-done"), started(talk, "aborted", "list-not-done")
    for producer, commit in ((committed, True), (aborted, False)):
        producer.add(f"{producer.name}: adds", "listed")
        producer.ended(f"{producer.name}: ends", commit)

    here = "list-.*"
    for state in ("Empty", "Ongoing", "PrepareCommit", "CompleteCommit", "CompleteAbort", "Dead"):
        talk.ask(f"state {state}", listed(state, pattern=here))
    talk.ask("two states", listed("Ongoing", "CompleteAbort", pattern=here))
    for names in (
        ("ongoing",),
        ("Unknown",),
        ("",),
        ("Unknown", "Unknown", "Ongoing"),
        ("PrepareEpochFence",),
    ):
        talk.ask(f"states {names}", listed(*names, pattern=here))
    for version in range(3):
        ids = [empty.id, ongoing.id]
        talk.ask(f"by producers v{version}", listed(producers=ids), version)
        talk.ask(f"by producers and state v{version}", listed("Ongoing", producers=ids), version)
        talk.ask(f"unknown producer v{version}", listed(producers=[987_654_321]), version)
        talk.ask(f"negative producer v{version}", listed(producers=[-1]), version)
        talk.ask(f"unknown state v{version}", listed("Unknown", producers=ids), version)
    for longer_ms in (-2, -1, 0, 3_600_000, 2**63 - 1, -(2**63)):
        asked = listed(producers=[empty.id, ongoing.id, aborted.id], longer_ms=longer_ms)
        talk.same(f"longer than {longer_ms}", asked, [1, 2])
    for pattern in (
        "",
        "list-.*",
        "list",
        "list-(done|empty)",
        "LIST-.*",
        "(?i)LIST-.*",
        ".*-done",
        "nothing",
    ):
        asked = listed(producers=[empty.id, ongoing.id, committed.id, aborted.id], pattern=pattern)
        talk.ask(f"pattern {pattern!r}", asked)
    for pattern in ("(", "[", "*", "a{2,1}", "(?<=a)b", "(a)\\1", "\\"):
        talk.ask(f"bad pattern {pattern!r}", listed(pattern=pattern))
    talk.ask("bad pattern and unknown state", listed("Unknown", pattern="("))
