"""Members of one group, ours and confluent-kafka's, that share a topic under load while they come and go.

A ledger is kept of who owns what and of every record that anybody got. Members tell it in their rebalance
callbacks, which run before a partition is given back and after it is taken: two owners at once are seen.
"""

import asyncio
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from confluent_kafka import Consumer as ConfluentConsumer

from barnabas.client import Admin, Consumer, Producer, TopicPartition

PARTITIONS = 8
SETTLE_S = 60
# Fast enough for a test, slow enough for a busy machine.
CLASSIC = {"session_timeout_ms": 10_000, "heartbeat_interval_ms": 300}


class Ledger:
    """Used by threads and by the loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.owners: dict[TopicPartition, str] = {}
        self.overlaps: list[str] = []
        self.seen: Counter[tuple[int, int]] = Counter()
        # The last offset that anybody got, to see that records of a partition come in order.
        self.disorder: list[str] = []
        self._last: dict[tuple[str, int], int] = {}

    def take(self, member: str, tps: "frozenset[TopicPartition] | list[TopicPartition]") -> None:
        with self._lock:
            for tp in tps:
                if tp in self.owners:
                    self.overlaps.append(f"{tp}: {member} and {self.owners[tp]}")
                self.owners[tp] = member
                self._last.pop((member, tp.partition), None)

    def give(self, member: str, tps: "frozenset[TopicPartition] | list[TopicPartition]") -> None:
        with self._lock:
            for tp in tps:
                if self.owners.get(tp) == member:
                    del self.owners[tp]

    def note(self, member: str, partition: int, offset: int) -> None:
        with self._lock:
            last = self._last.get((member, partition), -1)
            if offset <= last:
                self.disorder.append(f"{member} {partition}: {offset} after {last}")
            self._last[member, partition] = offset
            self.seen[partition, offset] += 1

    def share_of(self, member: str) -> int:
        with self._lock:
            return sum(owner == member for owner in self.owners.values())


class OurMember:
    """A consumer of ours in a task."""

    def __init__(
        self, address: str, group: str, topic: str, name: str, ledger: Ledger, **settings: Any
    ) -> None:
        self.name = name
        self._ledger = ledger
        self._topic = topic
        self._streams = settings.pop("streams", 0)
        named = {"auto_offset_reset": "earliest", "client_id": name, **settings}
        self.consumer = Consumer(bootstrap_servers=address, group_id=group, **named)
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        await self.consumer.start()
        await self.consumer.subscribe(
            [self._topic],
            on_assigned=lambda tps: self._ledger.take(self.name, tps),
            on_revoked=lambda tps: self._ledger.give(self.name, tps),
            on_lost=lambda tps: self._ledger.give(self.name, tps),
        )
        readers: list[Any] = self.consumer.streams(self._streams) if self._streams else [self.consumer]
        self._tasks = [asyncio.create_task(self._read(reader)) for reader in readers]

    async def _read(self, reader: Any) -> None:
        async for message in reader:
            self._ledger.note(self.name, message.partition, message.offset)

    async def stop(self) -> None:
        await self.consumer.close()
        await asyncio.gather(*self._tasks)


class ConfluentMember:
    """One of confluent-kafka in a thread."""

    def __init__(
        self, address: str, group: str, topic: str, name: str, ledger: Ledger, **settings: Any
    ) -> None:
        self.name = name
        self._ledger = ledger
        self._topic = topic
        self._cooperative = settings.get("group.protocol") == "consumer" or (
            settings.get("partition.assignment.strategy") == "cooperative-sticky"
        )
        self._settings = {
            "bootstrap.servers": address,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "client.id": name,
            **settings,
        }
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)

    async def start(self) -> None:
        self._thread.start()

    async def stop(self) -> None:
        self._stopping.set()
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        consumer = ConfluentConsumer(self._settings)
        consumer.subscribe(
            [self._topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked
        )
        while not self._stopping.is_set():
            message = consumer.poll(0.05)
            if message is not None and message.error() is None:
                self._ledger.note(self.name, message.partition(), message.offset())
        consumer.close()

    def _assigned(self, consumer: Any, found: Any) -> None:
        self._ledger.take(self.name, [TopicPartition(each.topic, each.partition) for each in found])

    def _revoked(self, consumer: Any, found: Any) -> None:
        self._ledger.give(self.name, [TopicPartition(each.topic, each.partition) for each in found])


Member = OurMember | ConfluentMember


@asynccontextmanager
async def under_load(address: str, topic: str) -> AsyncIterator[Counter[int]]:
    """A topic that is written to until the block ends; how many records each partition has got."""
    async with Admin(bootstrap_servers=address) as admin:
        await admin.create_topic(topic, partitions=PARTITIONS)
    written: Counter[int] = Counter()
    async with Producer(bootstrap_servers=address, linger_ms=5) as producer:

        async def write() -> None:
            number = 0
            while True:
                for partition in range(PARTITIONS):
                    await producer.send(topic, b"%d" % number, partition=partition)
                    written[partition] += 1
                number += 1
                await asyncio.sleep(0.005)

        writer = asyncio.create_task(write())
        try:
            yield written
        finally:
            writer.cancel()
            await asyncio.gather(writer, return_exceptions=True)


async def until(done: Callable[[], bool], what: str) -> None:
    try:
        async with asyncio.timeout(SETTLE_S):
            while not done():
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise AssertionError(f"never: {what}") from None


async def share_and_change(ledger: Ledger, address: str, topic: str, members: list[Member]) -> None:
    """They join one by one, half of them leave, one by one, and the rest reads everything there is."""
    leaving, staying = members[: len(members) // 2], members[len(members) // 2 :]
    async with under_load(address, topic) as written:
        for count, member in enumerate(members, 1):
            await member.start()
            await until(lambda count=count: _is_shared(ledger, members[:count]), f"{count} members share")  # type: ignore[misc]
        for count, member in enumerate(leaving, 1):
            await member.stop()
            rest = members[count:]
            await until(lambda rest=rest: _is_shared(ledger, rest), f"{len(rest)} members share")  # type: ignore[misc]
    wanted = {(partition, offset) for partition, count in written.items() for offset in range(count)}
    await until(lambda: ledger.seen.keys() >= wanted, "everything is read")
    for member in staying:
        await member.stop()
    assert ledger.overlaps == []
    assert ledger.disorder == []
    assert set(ledger.seen) == wanted
    assert ledger.owners == {}


def _is_shared(ledger: Ledger, members: list[Member]) -> bool:
    """Everything has an owner, and everybody has a share."""
    shares = [ledger.share_of(member.name) for member in members]
    return sum(shares) == PARTITIONS and min(shares) > 0


# Members of one group: ours, and those of confluent-kafka that come in between.
_THEIRS: dict[str, Any] = {"session.timeout.ms": 10_000, "heartbeat.interval.ms": 300}
_COOPERATIVE = {**CLASSIC, "partition_assignment_strategy": "cooperative-sticky"}
_JAVA_RANGE = "org.apache.kafka.clients.consumer.RangeAssignor"
CASES: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]] = {
    "classic": ([dict(CLASSIC)] * 4, []),
    **{
        f"classic {name}": ([{**CLASSIC, "partition_assignment_strategy": name}] * 4, [])
        for name in (_JAVA_RANGE, "roundrobin", "sticky", "cooperative-sticky")
    },
    "consumer": ([{"group_protocol": "consumer"}] * 4, []),
    **{
        f"classic {name} with confluent-kafka": (
            [{**CLASSIC, "partition_assignment_strategy": name}] * 2,
            [{**_THEIRS, "partition.assignment.strategy": name}] * 2,
        )
        for name in ("range", "roundrobin", "cooperative-sticky")
    },
    "consumer with confluent-kafka": (
        [{"group_protocol": "consumer"}] * 2,
        [{"group.protocol": "consumer"}] * 2,
    ),
    # A group is upgraded member by member: the broker translates between the two protocols.
    "classic with consumer": ([_COOPERATIVE, {"group_protocol": "consumer"}] * 2, []),
    "streams of classic members": ([{**CLASSIC, "streams": 3}] * 2, []),
    "streams of members of the consumer protocol": ([{"group_protocol": "consumer", "streams": 3}] * 2, []),
}
# What a broker is told so that rebalances do not take seconds.
BROKER_SETTINGS = {
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 1000,
    "group.consumer.heartbeat.interval.ms": 500,
    "group.consumer.min.heartbeat.interval.ms": 500,
}


def share(address: str, case: str) -> None:
    """Play a case with a group and a topic of its own; AssertionError if anything is lost or shared twice."""
    ours, theirs = CASES[case]
    name, ledger = f"shared-{time.time_ns()}", Ledger()

    async def story() -> None:
        members: list[Member] = []
        for number, settings in enumerate(ours):
            members.append(OurMember(address, name, name, f"ours-{number}", ledger, **settings))
            if number < len(theirs):
                members.append(
                    ConfluentMember(address, name, name, f"theirs-{number}", ledger, **theirs[number])
                )
        await share_and_change(ledger, address, name, members)

    asyncio.run(story())
    if not theirs:
        # Ours leave in good order, and commit before.
        assert set(ledger.seen.values()) == {1}
