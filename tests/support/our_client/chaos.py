"""A broker that is stopped and killed, a network that breaks, and clients of ours who work on regardless.

BrokerLife keeps one broker running at a time, on a disk that goes from one life to the next. The actors note
what they were told (Notes), and check_notes() compares that with what is in the logs at the end.
"""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from random import Random
from typing import Any, Final

import pyarrow as pa

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.admin import Admin
from barnabas.client.consumer.consumer import Consumer
from barnabas.client.errors import ClientError
from barnabas.client.producer.errors import DeliveryInDoubt, DeliveryTimedOut
from barnabas.client.producer.producer import Delivered, Delivery, Producer
from barnabas.server.broker import Broker
from barnabas.sim.disk import SimDisk
from barnabas.sim.world import World
from support.brokers import broker_settings, make_broker

STEADY: Final = ("a", "b")
FLEETING: Final = "x"
PARTITIONS: Final = 2
PARTITIONS_MAX: Final = 4
HOST: Final = "localhost"

Outcome = Delivered | ClientError


class BrokerLife:
    """One broker after the other at one address."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._disk: SimDisk = world.disk
        self._broker: Broker | None = None
        self._lives = 0

    async def begin(self) -> None:
        settings = broker_settings({"auto.create.topics.enable": "false"})
        self._broker = make_broker(self._world, settings, self._disk)
        await self._broker.start()

    async def stop(self) -> None:
        if self._broker is not None:
            broker, self._broker = self._broker, None
            await broker.stop()

    async def kill(self) -> None:
        """Nothing that it does from now on reaches anybody, and the disk is what a killed process leaves."""
        assert self._broker is not None, "it is not running"
        self._world.network.cut(HOST, HOST)
        self._world.network.reset(HOST, HOST)
        self._lives += 1
        self._disk = self._disk.branch(self._world.dice(f"disk {self._lives}"))
        await self.stop()
        self._world.network.heal()


async def disturb(world: World, life: BrokerLife, dice: Random, until_s: float) -> None:
    """Whatever can happen to a broker and to its connections; at the end it is running and reached."""
    network = world.network
    while world.loop.time() < until_s:
        await asyncio.sleep(dice.uniform(0.05, 1.5))
        match dice.choice(["reset", "reset", "cut", "refuse", "delay", "clock", "stop", "kill"]):
            case "reset":
                network.reset(HOST, HOST)
            case "cut":
                network.cut(HOST, HOST)
                await asyncio.sleep(dice.choice([0.05, 0.5, 3.0]))
            case "refuse":
                network.refuse(HOST, HOST)
                network.reset(HOST, HOST)
                await asyncio.sleep(dice.uniform(0.05, 1))
            case "delay":
                network.delay_all((1, dice.choice([5, 50, 300])))
                await asyncio.sleep(dice.uniform(0.1, 2))
                network.delay_all((0.1, 0.5))
            case "clock":
                world.clock.jump(dice.choice([-600_000, 600_000]))
            case "stop":
                await life.stop()
                await asyncio.sleep(dice.uniform(0, 1))
                await life.begin()
            case "kill":
                await life.kill()
                await asyncio.sleep(dice.uniform(0, 1))
                await life.begin()
        network.heal()


class Notes:
    """What the actors did and were told."""

    def __init__(self) -> None:
        # Who sent it and the how manieth of his it is are in the value.
        self.sent: list[tuple[bytes, int, Delivery]] = []
        self.seen: list[tuple[str, dict[TopicPartition, list[tuple[int, bytes]]]]] = []


async def produce(producer: Producer, name: str, dice: Random, notes: Notes, until_s: float) -> None:
    """Send one record after the other, and tables, until the time is over."""
    loop = asyncio.get_running_loop()
    number = 0
    while loop.time() < until_s:
        topic = dice.choice([*STEADY, *STEADY, FLEETING])
        partition = dice.choice([None, None, 0, 1])
        count = dice.choice([1, 1, 1, 5])
        values = [b"%s-%d" % (name.encode(), number + index) for index in range(count)]
        number += count
        with suppress(ClientError):
            if count == 1:
                notes.sent.append((values[0], 0, await producer.send(topic, values[0], partition=partition)))
            else:
                table = pa.table({"value": values})
                deliveries = await producer.send_table(topic, table, partition=partition)
                assert sum(each.records for each in deliveries) == count
                rows = iter(values)
                for each in deliveries:
                    notes.sent += [(next(rows), index, each) for index in range(each.records)]
        if dice.random() < 0.3:
            await asyncio.sleep(dice.uniform(0, 0.3))


async def administer(admin: Admin, dice: Random, until_s: float) -> None:
    """Topics come, grow and go."""
    loop = asyncio.get_running_loop()
    grown = PARTITIONS
    while loop.time() < until_s:
        with suppress(ClientError):
            match dice.choice(["create", "delete", "grow"]):
                case "create":
                    await admin.create_topic(FLEETING, partitions=dice.choice([1, 2, 3]), timeout_ms=2000)
                case "delete":
                    await admin.delete_topic(FLEETING, timeout_ms=2000)
                case "grow" if grown < PARTITIONS_MAX:
                    grown += 1
                    await admin.create_partitions("b", grown, timeout_ms=2000)
        await asyncio.sleep(dice.uniform(0.1, 2))


def places(topics: Iterable[str] = STEADY) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for topic in topics for number in range(PARTITIONS)]


async def read_messages(consumer: Consumer, notes: Notes) -> None:
    """Until it is cancelled or the consumer is closed."""
    seen = _new_seen(notes, "messages")
    await _assign(consumer)
    async for message in consumer:
        seen.setdefault(message.tp, []).append((message.offset, message.value or b""))


async def read_tables(consumer: Consumer, notes: Notes) -> None:
    seen = _new_seen(notes, "arrow")
    await _assign(consumer)
    async for table in consumer.arrow():
        columns = (table.column(each).to_pylist() for each in ("topic", "partition", "offset", "value"))
        for topic, partition, offset, value in zip(*columns, strict=True):
            seen.setdefault(TopicPartition(topic, partition), []).append((offset, value))


async def _assign(consumer: Consumer) -> None:
    while True:
        with suppress(ClientError):
            await consumer.assign(places())
            return


def _new_seen(notes: Notes, who: str) -> dict[TopicPartition, list[tuple[int, bytes]]]:
    seen: dict[TopicPartition, list[tuple[int, bytes]]] = {}
    notes.seen.append((who, seen))
    return seen


async def read_all(consumer: Consumer) -> dict[TopicPartition, list[bytes]]:
    """What the logs of the steady topics hold."""
    found = {tp: list[bytes]() for tp in await consumer.assign_topic(*STEADY)}
    ends = await consumer.end_offsets(found)
    while any(len(found[tp]) < ends[tp] for tp in found):
        for message in await consumer.batch(timeout_ms=5000):
            assert message.offset == len(found[message.tp]), f"{message.tp} has a gap"
            found[message.tp].append(message.value or b"")
    return found


async def until_all_is_seen(notes: Notes, logs: dict[TopicPartition, list[bytes]]) -> None:
    """Until those who read along have read to the end."""
    while any(len(seen.get(tp, ())) < len(logs[tp]) for _, seen in notes.seen for tp in places()):
        await asyncio.sleep(0.1)


def outcome_of(delivery: Delivery) -> Outcome:
    error = delivery.exception()
    if error is None:
        return delivery.result()
    assert isinstance(error, ClientError), repr(error)
    return error


def check_notes(notes: Notes, logs: dict[TopicPartition, list[bytes]]) -> None:
    """What was said of each record is true; each is there once and in order; who read along saw the same."""
    where = {value: (tp, at) for tp, log in logs.items() for at, value in enumerate(log)}
    assert len(where) == sum(len(log) for log in logs.values()), "a record is there twice"
    last: dict[tuple[TopicPartition, bytes], int] = {}
    for value, index, delivery in notes.sent:
        if delivery.topic == FLEETING:
            continue
        said = outcome_of(delivery)
        match said:
            case Delivered(topic=topic, partition=partition, offset=offset):
                tp, at = where[value]
                assert tp == (topic, partition), f"{value!r} is in {tp}"
                assert offset in (-1, at - index), f"{value!r} is at {at}, and not {index} after {offset}"
                sender = (tp, value.partition(b"-")[0])
                assert last.get(sender, -1) < at, f"{value!r} comes before what was sent before it"
                last[sender] = at
            case DeliveryInDoubt() | DeliveryTimedOut(maybe_written=True):
                pass
            case _:
                assert value not in where, f"{value!r} is said not to be there: {said!r}"
    for who, seen in notes.seen:
        for tp, read in seen.items():
            expected = list(enumerate(logs[tp]))[: len(read)]
            assert read == expected, f"{who} of {tp}"


def tasks_of_clients(before: "set[asyncio.Task[Any]]") -> "list[asyncio.Task[Any]]":
    return [task for task in asyncio.all_tasks() - before if "barnabas/client/" in repr(task)]
