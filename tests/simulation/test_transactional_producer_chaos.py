"""A transactional producer among brokers that lose, delay and refuse at random: what it says is true.

First with a broker of a script, then with ours, which is stopped and killed. Each transaction writes three
records and one offset. It is seen whole or not at all, once, in order; those of which the producer said that
they are committed are there, and those that it called aborted are not.
"""

import asyncio
from random import Random

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.admin import Admin
from barnabas.client.consumer.consumer import Consumer
from barnabas.client.consumer.message import EndOfPartition
from barnabas.client.errors import ClientError
from barnabas.client.producer.producer import Producer
from barnabas.client.producer.transaction_errors import MustAbort, OutcomeUnknown, TransactionAborted
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.sim.world import World
from support.brokers import broker_settings, make_broker
from support.log.fault_world import replayable
from support.our_client.chaos import BrokerLife, disturb
from support.our_client.worlds import ADDRESS, ports_of, producer_of
from support.scale import seeds
from support.txn.worlds import (
    BOTH,
    OURS,
    Do,
    Doing,
    DoLater,
    DoSilently,
    Lose,
    Say,
    TransactionalBrokers,
    transacting,
)

ORDERS = TopicPartition("orders", 0)
GROUP = "billing"
TRANSACTIONS = 40
RECORDS = 3
REFUSALS = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.UNKNOWN_SERVER_ERROR,
)
# Said by brokers that have not done it. TRANSACTION_ABORTABLE is no answer to a commit that was done.
REFUSALS_WITHIN = (*REFUSALS, ErrorCode.TRANSACTION_ABORTABLE)


class Told:
    """What the producer said of each transaction."""

    def __init__(self) -> None:
        self.committed: set[int] = set()
        self.aborted: set[int] = set()
        self.unknown: set[int] = set()

    def check(self, seen: list[bytes], offset: int | None) -> None:
        numbers = [int(value.split(b"-")[0]) for value in seen]
        whole = {number for number in numbers if numbers.count(number) == RECORDS}
        assert set(numbers) == whole, "seen in part"
        assert len(seen) == len(set(seen)), "seen twice"
        assert self.committed <= whole, f"lost: {self.committed - whole}"
        assert not self.aborted & whole, f"aborted and seen: {self.aborted & whole}"
        assert offset == max(whole, default=None)


async def transact(producer: Producer, number: int, dice: Random) -> None:
    async with producer.transaction() as transaction:
        for record in range(RECORDS):
            await producer.send("orders", b"%d-%d" % (number, record), partition=record % 2)
        if dice.random() < 0.5:
            await producer.flush()
        await transaction.send_offsets({ORDERS: number}, GROUP)
        if dice.random() < 0.1:
            raise KeyError


async def drive(producer: Producer, told: Told, dice: Random) -> None:
    for number in range(TRANSACTIONS):
        work = asyncio.ensure_future(transact(producer, number, dice))
        patience_s = dice.choice([None, None, dice.uniform(0, 2)])
        done, _ = await asyncio.wait([work], timeout=patience_s)
        if not done:
            work.cancel()
            await asyncio.wait([work])
        if work.cancelled():
            told.unknown.add(number)
            continue
        match work.exception():
            case None:
                told.committed.add(number)
            case TransactionAborted() | MustAbort() | KeyError():
                told.aborted.add(number)
            case OutcomeUnknown() | ClientError():
                # Also one that could not be begun: the last one is not known yet.
                told.unknown.add(number)
            case other:
                raise AssertionError(repr(other))
        await asyncio.sleep(dice.uniform(0, 0.2))


@BOTH
@pytest.mark.parametrize("seed", seeds(20))
def test_reported_outcomes_are_true_with_lost_and_refused_requests(seed: int, version: int) -> None:
    told = Told()
    brokers = TransactionalBrokers(version=version)
    with World(seed) as world, replayable(seed, []):
        dice = world.dice("script")
        trouble = dice.choice([0.05, 0.15, 0.3])

        def chance(key: ApiKey) -> Doing:
            if dice.random() > trouble:
                return Do()
            refusals = REFUSALS if key is ApiKey.END_TXN else REFUSALS_WITHIN
            doings: list[Doing] = [
                Lose(),
                DoSilently(),
                DoSilently(stalls=True),
                DoLater(dice.uniform(0, 2)),
                Say(dice.choice(refusals)),
            ]
            return dice.choice(doings)

        async def story() -> None:
            async with brokers.running():
                brokers.chance = chance
                async with transacting(
                    world, request_timeout_ms=1_000, max_block_ms=6_000, delivery_timeout_ms=5_000
                ) as producer:
                    await drive(producer, told, dice)
                    brokers.chance = lambda key: Do()
                    await asyncio.sleep(10)
                    # The producer goes on.
                    await producer.begin_transaction()

        world.run(story())
    seen = [value for log in brokers.committed.values() for value in log]
    told.check([value or b"" for value in seen], brokers.offsets.get((GROUP, ORDERS)))
    assert told.committed


class LifeWithTransactions(BrokerLife):
    async def begin(self) -> None:
        settings = broker_settings(
            {
                "auto.create.topics.enable": "false",
                "transaction.state.log.replication.factor": 1,
                "transaction.state.log.min.isr": 1,
                "transaction.state.log.num.partitions": 2,
            }
        )
        self._broker = make_broker(self._world, settings, self._disk)
        await self._broker.start()


async def look(world: World) -> tuple[list[bytes], int | None]:
    """What is committed in the end."""
    seen: list[bytes] = []
    async with Consumer(
        bootstrap_servers=ADDRESS,
        group_id=GROUP,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        enable_partition_eof=True,
        ports=ports_of(world, "reader"),
    ) as consumer:
        left = {TopicPartition("orders", partition) for partition in (0, 1)}
        await consumer.assign(left)
        for tp in left:
            consumer.seek(tp, 0)
        async for message in consumer:
            if isinstance(message, EndOfPartition):
                left.discard(message.tp)
                if not left:
                    break
            else:
                seen.append(message.value or b"")
        committed = (await consumer.committed([ORDERS]))[ORDERS]
    return seen, None if committed is None else committed.offset


@pytest.mark.parametrize("seed", seeds(10))
def test_reported_outcomes_are_true_while_the_broker_is_stopped_and_killed(seed: int) -> None:
    told = Told()
    with World(seed) as world, replayable(seed, []):
        dice = world.dice("story")

        async def story() -> tuple[list[bytes], int | None]:
            life = LifeWithTransactions(world)
            await life.begin()
            async with Admin(bootstrap_servers=ADDRESS, ports=ports_of(world, "admin")) as admin:
                await admin.create_topic("orders", partitions=2)
            producer = producer_of(
                world,
                transactional_id=OURS,
                request_timeout_ms=2_000,
                max_block_ms=20_000,
                delivery_timeout_ms=15_000,
            )
            async with producer:
                troubles = asyncio.ensure_future(disturb(world, life, dice, world.loop.time() + 30))
                await drive(producer, told, dice)
                await troubles
                await producer.begin_transaction()
            seen = await look(world)
            await life.stop()
            return seen

        seen, offset = world.run(story())
    told.check(seen, offset)
    assert told.committed
