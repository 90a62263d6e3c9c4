"""Two-phase commit with Apache Kafka 4.3.0: what its coordinator has of KIP-939, and what it has not.

Kafka 4.3.0 speaks version 6 of InitProducerId when unstable versions are on, and lets no time end a
transaction of such a producer. It keeps none for a successor: keep_prepared_txn is refused in every state.
There our broker does what the KIP says; everywhere else the answers are compared field by field.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from barnabas.client import (
    Admin,
    Consumer,
    EndOfPartition,
    Producer,
    ProducerFenced,
    Refused,
    UnsupportedByBroker,
)
from barnabas.client.producer.transaction import NOTHING_PREPARED, PreparedTransaction
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.classic_groups import FindCoordinatorRequest
from barnabas.protocol.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    EndTxnRequest,
    InitProducerIdRequest,
)
from support.kafka.broker import KafkaBroker
from support.kafka.tools import kafka_tools
from support.process.our_broker import OurBroker
from support.wire.client import WireClient

SMALL = {
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "transaction.state.log.num.partitions": 3,
    "offsets.topic.replication.factor": 1,
    "offsets.topic.num.partitions": 1,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 200,
}
UNSTABLE = {**SMALL, "unstable.api.versions.enable": "true"}
TWO_PHASE = {**UNSTABLE, "transaction.two.phase.commit.enable": "true"}
UNLIMITED_MS = 2**31 - 1
WAIT_S_MAX = 30.0
_NOT_YET = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)
_WAIT = (ErrorCode.CONCURRENT_TRANSACTIONS,)
names = (f"orders-{number}" for number in count())


def kafka_with(root: Path, settings: dict[str, object], *format_args: str) -> KafkaBroker:
    broker = KafkaBroker(kafka_tools(), root, settings=settings)
    broker.format(*format_args)
    return broker


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    broker = kafka_with(tmp_path_factory.mktemp("kafka"), dict(TWO_PHASE))
    with broker.running():
        yield broker


def producer_of(address: str, topic: str, **more: object) -> Producer:
    return Producer(
        bootstrap_servers=address,
        transactional_id=topic,
        transaction_two_phase_commit_enable=True,
        **more,
    )


async def new_topic(address: str) -> str:
    name = next(names)
    async with Admin(bootstrap_servers=address) as admin:
        await admin.create_topic(name, partitions=2)
    return name


async def values(address: str, topic: str, isolation: str = "read_committed") -> list[bytes]:
    found: list[bytes] = []
    async with Consumer(
        bootstrap_servers=address,
        auto_offset_reset="earliest",
        isolation_level=isolation,
        enable_partition_eof=True,
    ) as consumer:
        left = set(await consumer.assign_topic(topic))
        async for message in consumer:
            if isinstance(message, EndOfPartition):
                left.discard(message.tp)
                if not left:
                    break
            else:
                found.append(message.value or b"")
    return sorted(found)


async def until_seen(address: str, topic: str, expected: list[bytes]) -> None:
    deadline = time.monotonic() + WAIT_S_MAX
    while (found := await values(address, topic)) != expected:
        assert time.monotonic() < deadline, found
        await asyncio.sleep(0.1)


async def prepared(producer: Producer, topic: str, *sent: bytes) -> PreparedTransaction:
    async with producer.transaction() as transaction:
        for value in sent:
            await producer.send(topic, value)
        return await transaction.prepare()


# Our client


def test_a_prepared_transaction_is_completed_from_stored_state(kafka: KafkaBroker) -> None:
    async def story() -> None:
        topic = await new_topic(kafka.address)
        async with producer_of(kafka.address, topic) as producer:
            mine = await prepared(producer, topic, b"a", b"b")
            assert await values(kafka.address, topic) == []
            await producer.complete_transaction(str(mine))
            await until_seen(kafka.address, topic, [b"a", b"b"])

            other = await prepared(producer, topic, b"c")
            assert other != mine
            await producer.complete_transaction(mine)
            await producer.complete_transaction(await prepared(producer, topic, b"d"))
            await until_seen(kafka.address, topic, [b"a", b"b", b"d"])

    asyncio.run(story())


def test_no_time_ends_a_transaction_and_a_restart_of_the_broker_keeps_it(tmp_path: Path) -> None:
    broker = kafka_with(tmp_path, dict(TWO_PHASE))

    async def story() -> None:
        topic = await new_topic(broker.address)
        async with producer_of(broker.address, topic, max_block_ms=60_000) as producer:
            mine = await prepared(producer, topic, b"a", b"b")
            async with Admin(bootstrap_servers=broker.address) as admin:
                assert (await admin.describe_transactions([topic]))[topic].timeout_ms == UNLIMITED_MS
            await asyncio.to_thread(broker.kill)
            await asyncio.to_thread(broker.start)
            await producer.complete_transaction(mine)
            await until_seen(broker.address, topic, [b"a", b"b"])

    broker.start()
    try:
        asyncio.run(story())
    finally:
        broker.stop()


def test_kafka_rejects_keep_prepared_before_any_change(
    kafka: KafkaBroker,
) -> None:
    async def story() -> None:
        topic = await new_topic(kafka.address)
        async with (
            producer_of(kafka.address, topic) as older,
            producer_of(kafka.address, topic) as newer,
        ):
            mine = await prepared(older, topic, b"a")
            with pytest.raises(UnsupportedByBroker, match="cannot keep prepared transactions"):
                await newer.init_transactions(keep_prepared=True)
            await older.complete_transaction(mine)
            await until_seen(kafka.address, topic, [b"a"])

    asyncio.run(story())


def test_init_transactions_aborts_the_prepared_transaction_of_a_closed_producer(kafka: KafkaBroker) -> None:
    async def story() -> None:
        topic = await new_topic(kafka.address)
        older = producer_of(kafka.address, topic)
        async with older:
            await prepared(older, topic, b"a")
        async with Admin(bootstrap_servers=kafka.address) as admin:
            assert (await admin.describe_transactions([topic]))[topic].state == "Ongoing"
        async with producer_of(kafka.address, topic) as newer:
            assert await newer.init_transactions() == NOTHING_PREPARED
            async with newer.transaction():
                await newer.send(topic, b"b", partition=0)
                await newer.send(topic, b"c", partition=1)
        await until_seen(kafka.address, topic, [b"b", b"c"])

    asyncio.run(story())


def test_a_producer_that_prepared_before_a_newer_one_is_fenced(kafka: KafkaBroker) -> None:
    async def story() -> None:
        topic = await new_topic(kafka.address)
        async with (
            producer_of(kafka.address, topic) as older,
            producer_of(kafka.address, topic) as newer,
        ):
            mine = await prepared(older, topic, b"a")
            await newer.init_transactions()
            with pytest.raises(ProducerFenced):
                await older.complete_transaction(mine)

    asyncio.run(story())


@pytest.mark.parametrize(
    ("settings", "version", "reason"),
    [
        (SMALL, 2, "unstable.api.versions.enable"),
        (TWO_PHASE, 1, "transaction.version=2"),
        (UNSTABLE, 2, "transaction.two.phase.commit.enable"),
    ],
)
def test_a_kafka_that_does_not_allow_it_says_so_and_nothing_is_changed(
    tmp_path: Path, settings: dict[str, object], version: int, reason: str
) -> None:
    broker = kafka_with(tmp_path, dict(settings), "--feature", f"transaction.version={version}")

    async def story(address: str) -> None:
        topic = await new_topic(address)
        async with (
            Producer(bootstrap_servers=address, transactional_id=topic) as older,
            producer_of(address, topic) as newer,
        ):
            await older.begin_transaction()
            await older.send(topic, b"a")
            for keep in (True, False):
                with pytest.raises((UnsupportedByBroker, Refused), match=reason):
                    await newer.init_transactions(keep_prepared=keep)
            await older.commit_transaction()
            await until_seen(address, topic, [b"a"])

    with broker.running() as address:
        asyncio.run(story(address))


# Both brokers, answer by answer


@dataclass(frozen=True)
class Asked:
    """What a broker answered to one request: the code, and its numbers from those that came first."""

    code: str
    producer: int | None
    epoch: int
    ongoing_producer: int | None
    ongoing_epoch: int


class Scene:
    """One transactional id, on the wire of one broker, and the answers in order."""

    def __init__(self, client: WireClient, topic: str) -> None:
        self.answers: dict[str, Asked] = {}
        self.id = topic
        self._client = client
        self._topic = topic
        self._first: int | None = None
        self._is_ongoing = False
        self.now = (-1, -1)
        asked = FindCoordinatorRequest(key_type=1, coordinator_keys=[topic])
        self._until(lambda: client.ask(asked, 4).coordinators[0].error_code, _NOT_YET)

    def _until(self, code: Callable[[], int], not_yet: tuple[ErrorCode, ...]) -> None:
        deadline = time.monotonic() + WAIT_S_MAX
        while code() in not_yet:
            assert time.monotonic() < deadline, not_yet
            time.sleep(0.05)

    def init(
        self,
        name: str,
        *,
        two_phase: bool = True,
        keep: bool = False,
        who: tuple[int, int] = (-1, -1),
        timeout_ms: int = 60_000,
        follow: bool = True,
        version: int = 6,
    ) -> None:
        """Noted under `name`. If something ongoing is aborted for it, the answer after that is noted, too."""
        request = InitProducerIdRequest(
            transactional_id=self.id,
            transaction_timeout_ms=timeout_ms,
            producer_id=who[0],
            producer_epoch=who[1],
            enable2_pc=two_phase,
            keep_prepared_txn=keep,
        )
        # How long the markers of an end take is chance, and so is whether one is told to wait for them.
        answer = self._patiently(request, version, () if self._is_ongoing else _WAIT)
        if answer.error_code == ErrorCode.CONCURRENT_TRANSACTIONS:
            self._note(f"{name}, at once", answer)
            self._is_ongoing = False
            answer = self._patiently(request, version, _WAIT)
        self._note(name, answer)
        if answer.error_code == 0 and follow:
            self.now = (answer.producer_id, answer.producer_epoch)

    def _patiently(self, request: object, version: int, wait: tuple[ErrorCode, ...]) -> Any:
        deadline = time.monotonic() + WAIT_S_MAX
        while (answer := self._client.ask(request, version)).error_code in (*_NOT_YET, *wait):
            assert time.monotonic() < deadline, answer
            time.sleep(0.05)
        return answer

    def _note(self, name: str, answer: Any) -> None:
        assert name not in self.answers
        if self._first is None and answer.producer_id >= 0:
            self._first = answer.producer_id
        ongoing = answer.ongoing_txn_producer_id, answer.ongoing_txn_producer_epoch
        assert answer.throttle_time_ms == 0
        self.answers[name] = Asked(
            ErrorCode(answer.error_code).name,
            self._relative(answer.producer_id),
            answer.producer_epoch,
            self._relative(ongoing[0]),
            ongoing[1],
        )

    def _relative(self, producer_id: int) -> int | None:
        """Which id a broker begins with is its own business."""
        return None if producer_id < 0 or self._first is None else producer_id - self._first

    def begin(self) -> None:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.id,
            v3_and_below_producer_id=self.now[0],
            v3_and_below_producer_epoch=self.now[1],
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=self._topic, partitions=[0])],
        )

        def code() -> int:
            rows = self._client.ask(request, 3).results_by_topic_v3_and_below
            found: int = rows[0].results_by_partition[0].partition_error_code
            return found

        self._until(code, _WAIT)
        assert code() == 0
        self._is_ongoing = True

    def end(self, name: str, *, commit: bool, who: tuple[int, int] | None = None) -> None:
        producer_id, epoch = who or self.now
        answer = self._client.ask(
            EndTxnRequest(
                transactional_id=self.id, producer_id=producer_id, producer_epoch=epoch, committed=commit
            ),
            5,
        )
        self.answers[name] = Asked(
            ErrorCode(answer.error_code).name,
            self._relative(answer.producer_id),
            answer.producer_epoch,
            None,
            -1,
        )
        if answer.error_code == 0:
            self._is_ongoing = False
            self.now = (answer.producer_id, answer.producer_epoch)


def without_keeping(scene: Scene) -> None:
    scene.init("fresh id")
    scene.init("again")
    scene.begin()
    scene.init("ongoing, and not to be kept")
    scene.begin()
    scene.end("commit", commit=True)
    scene.init("after the commit")
    scene.begin()
    scene.end("abort", commit=False)
    scene.init("after the abort")
    mine = scene.now
    scene.init("who says who it is", who=mine)
    scene.init("who says it once more", who=mine)
    scene.init("who was fenced long ago", who=(mine[0], 0))
    scene.init("another producer id", who=(mine[0] + 1000, 0))
    scene.init("an epoch without an id", who=(-1, 3))
    scene.init("a time that counts for nothing", timeout_ms=0)
    scene.init("a time that is longer than any", timeout_ms=UNLIMITED_MS)
    scene.init("without two phases, and no time", two_phase=False, timeout_ms=0)
    scene.init("without two phases, and too long a time", two_phase=False, timeout_ms=UNLIMITED_MS)
    scene.init("without two phases", two_phase=False)
    scene.init("version 5", two_phase=False, version=5)


def two_phase_is_off(scene: Scene) -> None:
    scene.init("fresh id, without two phases", two_phase=False)
    scene.init("two phases")
    scene.init("two phases and keep", keep=True)
    scene.init("keep", two_phase=False, keep=True)
    scene.init("two phases, and no time", timeout_ms=0)
    scene.begin()
    scene.init("ongoing and keep", two_phase=False, keep=True)
    scene.end("commit", commit=True)


def keeping(scene: Scene) -> None:
    scene.init("fresh id", keep=True)
    scene.init("a producer without two phases", two_phase=False)
    scene.init("nothing is ongoing", keep=True)
    scene.init("nothing is ongoing, and no two phases", two_phase=False, keep=True)
    scene.init("and no time", keep=True, timeout_ms=0)
    scene.begin()
    mine = scene.now
    scene.init("ongoing, wrong epoch", keep=True, who=(mine[0], mine[1] + 1), follow=False)
    scene.init("ongoing, wrong id", keep=True, who=(mine[0] + 1000, mine[1]), follow=False)
    scene.init("an epoch without an id", keep=True, who=(-1, 3), follow=False)
    scene.init("ongoing", keep=True)
    scene.init("ongoing, the second time", keep=True)
    scene.init("ongoing, without two phases", two_phase=False, keep=True)
    scene.end("commit with the numbers of the records", commit=True, who=mine)
    scene.end("commit", commit=True)
    scene.init("after the commit", keep=True)


def answers_of(address: str, story: Callable[[Scene], None]) -> dict[str, Asked]:
    topic = asyncio.run(new_topic(address))
    with WireClient(address) as client:
        scene = Scene(client, topic)
        story(scene)
        return scene.answers


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OurBroker]:
    broker = OurBroker(tmp_path_factory.mktemp("ours"), settings=TWO_PHASE)
    with broker.running():
        yield broker


def test_answers_are_those_of_kafka_unless_a_transaction_is_to_be_kept(
    kafka: KafkaBroker, ours: OurBroker
) -> None:
    theirs = answers_of(kafka.address, without_keeping)

    assert answers_of(ours.address, without_keeping) == theirs
    # Else it would have shown nothing.
    assert {"NONE", "PRODUCER_FENCED", "INVALID_REQUEST", "CONCURRENT_TRANSACTIONS"} <= {
        one.code for one in theirs.values()
    }


def test_answers_are_those_of_kafka_where_two_phase_commit_is_off(tmp_path: Path) -> None:
    with (
        kafka_with(tmp_path, dict(UNSTABLE)).running() as kafka,
        OurBroker(tmp_path / "ours", settings=UNSTABLE).running() as ours,
    ):
        theirs = answers_of(kafka, two_phase_is_off)
        assert answers_of(ours, two_phase_is_off) == theirs
    assert theirs["two phases"].code == "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"
    assert theirs["keep"].code == "UNSUPPORTED_VERSION"


def given(epoch: int, ongoing_epoch: int | None = None) -> Asked:
    ongoing = None if ongoing_epoch is None else 0
    return Asked("NONE", 0, epoch, ongoing, -1 if ongoing_epoch is None else ongoing_epoch)


def refused(code: ErrorCode) -> Asked:
    return Asked(code.name, None, -1, None, -1)


FENCED = refused(ErrorCode.PRODUCER_FENCED)
# What the KIP asks for: who decides gets the next epoch, and the transaction goes by that of its records.
OURS_WHEN_KEEPING = {
    "fresh id": given(0),
    "a producer without two phases": given(1),
    "nothing is ongoing": given(2),
    "nothing is ongoing, and no two phases": given(3),
    "and no time": given(4),
    "ongoing, wrong epoch": FENCED,
    "ongoing, wrong id": FENCED,
    "an epoch without an id": refused(ErrorCode.INVALID_REQUEST),
    "ongoing": given(5, ongoing_epoch=4),
    "ongoing, the second time": given(6, ongoing_epoch=4),
    "ongoing, without two phases": given(7, ongoing_epoch=4),
    "commit with the numbers of the records": FENCED,
    "commit": given(8),
    "after the commit": given(9),
}
# On Kafka all others are refused before anything is looked at but the form.
NOT_ABOUT_KEEPING = {
    "a producer without two phases",
    "an epoch without an id",
    "commit with the numbers of the records",
    "commit",
}


def test_kafka_rejects_keep_prepared_and_we_follow_the_kip(kafka: KafkaBroker, ours: OurBroker) -> None:
    theirs, mine = answers_of(kafka.address, keeping), answers_of(ours.address, keeping)

    assert mine == OURS_WHEN_KEEPING
    assert theirs.keys() == mine.keys()
    assert theirs["an epoch without an id"] == mine["an epoch without an id"]
    about_keeping = {name: one for name, one in theirs.items() if name not in NOT_ABOUT_KEEPING}
    assert set(about_keeping.values()) == {refused(ErrorCode.UNSUPPORTED_VERSION)}


def test_keep_prepared_authorization_is_checked_before_the_timeout(tmp_path: Path) -> None:
    def story(scene: Scene) -> None:
        scene.init("keep, and no time", two_phase=False, keep=True, timeout_ms=0)

    with (
        kafka_with(tmp_path, dict(UNSTABLE)).running() as kafka,
        OurBroker(tmp_path / "ours", settings=UNSTABLE).running() as ours,
    ):
        assert answers_of(ours, story) == answers_of(kafka, story)
