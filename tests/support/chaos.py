"""Clients that do whatever they like and leave whenever they like, over a network that breaks now and then.

Nobody checks single answers here: a client only insists that what it is answered is an answer to what it
asked, and that errors are those that may come of such a life.
"""

import asyncio
from asyncio import IncompleteReadError
from random import Random

from barnabas.base.ids import TopicPartition
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.cluster import MetadataRequest
from barnabas.protocol.messages.offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from barnabas.protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    DeleteTopicsRequest,
)
from barnabas.server.broker import Broker
from barnabas.sim.world import World
from support.stories import Client, connect
from support.wire.requests import fetch_of

TOPICS = ("a", "b", "c")
PARTITIONS = 2
_STEPS_MAX = 30
_PRODUCE, _FETCH = 12, 12
# What somebody is told whose topic was deleted, made again or not there yet, or who read too far.
ALLOWED = frozenset(
    {
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.OFFSET_OUT_OF_RANGE,
        ErrorCode.TOPIC_ALREADY_EXISTS,
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    }
)


async def live(broker: Broker, dice: Random) -> None:
    """One client's life: some requests, answered or not, then it is gone."""
    try:
        client = await connect(broker)
    except OSError:
        return
    try:
        for _ in range(dice.randrange(_STEPS_MAX)):
            for _ in range(dice.choice([1, 1, 5])):
                ask(client, broker, dice)
            if dice.random() < 0.7:
                async with asyncio.timeout(dice.uniform(0.01, 2)):
                    _, answer = await client.answer()
                    check(answer)
            await asyncio.sleep(dice.uniform(0, 0.01))
    except (IncompleteReadError, OSError):
        pass
    finally:
        client.close()


def ask(client: Client, broker: Broker, dice: Random) -> None:
    topic, partition = dice.choice(TOPICS), dice.randrange(PARTITIONS)
    match dice.choice(["produce"] * 4 + ["fetch"] * 4 + ["metadata", "offsets", "create", "delete"]):
        case "produce":
            acks = dice.choice([1, -1])
            client.send_produce(topic, dice.randbytes(dice.randrange(3000)), partition=partition, acks=acks)
        case "fetch":
            offsets = {n: _place(broker, topic, n, dice) for n in range(PARTITIONS)}
            wait_ms = dice.choice([0, 10, 100_000])
            epoch = dice.choice([-1, 0])
            client.ask(fetch_of(topic, offsets, max_wait_ms=wait_ms, session_epoch=epoch), _FETCH)
        case "metadata":
            client.ask(MetadataRequest(topics=None), 12)
        case "offsets":
            asked = ListOffsetsPartition(partition_index=partition, timestamp=dice.choice([-1, -2, -3]))
            topics = [ListOffsetsTopic(name=topic, partitions=[asked])]
            client.ask(ListOffsetsRequest(replica_id=-1, topics=topics), 7)
        case "create":
            client.ask(CreateTopicsRequest(topics=[_new(topic, dice)], timeout_ms=5_000), 7)
        case "delete":
            client.ask(DeleteTopicsRequest(topic_names=[topic], timeout_ms=5_000), 5)


def _place(broker: Broker, topic: str, partition: int, dice: Random) -> int:
    """Where to read from: mostly the end, where there is something to wait for."""
    found = broker.replicas.partitions.get(TopicPartition(topic, partition))
    return dice.randrange(20) if found is None or dice.random() < 0.1 else found.log.end_offset


def _new(topic: str, dice: Random) -> CreatableTopic:
    codec = CreatableTopicConfig(name="compression.type", value=dice.choice(["producer", "gzip"]))
    return CreatableTopic(name=topic, num_partitions=PARTITIONS, replication_factor=1, configs=[codec])


def check(answer: object) -> None:
    """Every error code in an answer is one that may be there."""
    for code in _codes(answer):
        assert ErrorCode(code) in ALLOWED, f"{ErrorCode(code).name} in {answer}"


def _codes(answer: object) -> list[int]:
    found = [getattr(answer, "error_code", 0)]
    for name in ("responses", "topics", "partitions", "partition_responses"):
        for inner in getattr(answer, name, None) or []:
            found += _codes(inner)
    return found


async def disturb(world: World, dice: Random) -> None:
    """Break all connections, or hold everything up for a while; until cancelled."""
    while True:
        await asyncio.sleep(dice.uniform(0.02, 0.2))
        if dice.random() < 0.5:
            world.network.reset("localhost", "localhost")
        else:
            world.network.cut("localhost", "localhost")
            await asyncio.sleep(dice.uniform(0.01, 0.5))
            world.network.heal()
