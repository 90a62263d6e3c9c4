"""Brokers that answer anything, at random: nothing is doubled, the order holds, and what is said is true."""

import asyncio
from random import Random

import pytest

from barnabas.client.errors import ClientError
from barnabas.client.producer.errors import DeliveryInDoubt, DeliveryTimedOut
from barnabas.client.producer.producer import Delivered, Delivery
from barnabas.protocol.error_codes import ErrorCode
from barnabas.sim.world import World
from support.log.fault_world import replayable
from support.our_client.worlds import (
    ORDERS,
    Arrival,
    Break,
    Reaction,
    Refuse,
    ScriptedBrokers,
    Take,
    TakeSilently,
    Wait,
    producing,
)
from support.scale import seeds

RECORDS = 120
# Each as a broker can say it: before it appended anything, so what is refused is not in the log.
REFUSALS = (
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.UNKNOWN_PRODUCER_ID,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_RECORD,
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.UNKNOWN_SERVER_ERROR,
)


def random_script(brokers: ScriptedBrokers, dice: Random, trouble: float) -> None:
    def script(arrival: Arrival) -> Reaction:
        if dice.random() > trouble:
            return Take()
        if dice.random() < 0.2:
            brokers.forget_all_but_the_last_batch()
        reactions: list[Reaction] = [
            TakeSilently(),
            TakeSilently(breaks=True),
            Break(),
            Wait(dice.uniform(0, 2)),
            Refuse(dice.choice(REFUSALS)),
            Refuse(dice.choice(REFUSALS)),
        ]
        return dice.choice(reactions)

    brokers.script = script


async def outcome(delivery: Delivery) -> Delivered | ClientError:
    try:
        return await delivery
    except ClientError as error:
        return error


def check(brokers: ScriptedBrokers, outcomes: list[Delivered | ClientError]) -> None:
    log = [int(value or b"") for value in brokers.log.get(ORDERS, [])]
    assert len(log) == len(set(log)), "each at most once"
    told = [number for number in log if isinstance(outcomes[number], Delivered)]
    # What is in doubt may come later: a broker may find it in the buffer of a connection that is long closed.
    assert told == sorted(told), "in the order of sending"
    for number, said in enumerate(outcomes):
        match said:
            case Delivered(offset=-1):
                assert number in log
            case Delivered(offset=offset):
                assert log[offset] == number
            case DeliveryInDoubt() | DeliveryTimedOut(maybe_written=True):
                pass
            case _:
                assert number not in log, f"{number} is said not to be there: {said}"


@pytest.mark.parametrize("seed", seeds(30))
def test_reported_deliveries_are_true_and_unique_for_any_response(seed: int) -> None:
    with World(seed) as world, replayable(seed, []):
        dice = world.dice("script")

        async def story() -> None:
            async with ScriptedBrokers().running() as brokers:
                random_script(brokers, dice, trouble=dice.choice([0.05, 0.2, 0.5]))
                async with producing(
                    world, batch_size=150, linger_ms=1, request_timeout_ms=1000, delivery_timeout_ms=5000
                ) as producer:
                    sent: list[Delivery] = []
                    for number in range(RECORDS):
                        sent.append(await producer.send("orders", b"%d" % number))
                        if dice.random() < 0.2:
                            await asyncio.sleep(dice.uniform(0, 0.3))
                    outcomes = [await outcome(each) for each in sent]
                    brokers.script = lambda arrival: Take()
                    # Whoever still waits for an answer gets one, or gives up.
                    await asyncio.sleep(10)
                    last = await (await producer.send("orders", b"%d" % RECORDS))
                    assert last.offset >= 0, "the producer goes on"
                check(brokers, [*outcomes, last])

        world.run(story())
