"""A cluster under load: a writer for each partition, an administrator, and what of it must be there later.

The writers number their records, so that the log itself shows what is missing, doubled or out of order. What
the broker acknowledged is noted when its answer arrives.
"""

import asyncio
from asyncio import IncompleteReadError
from dataclasses import dataclass, field
from random import Random

from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.cluster import MetadataRequest
from barnabas.server.broker import Broker
from support.stories import Client, connect, partition_of
from support.wire.requests import produced

# Unanswered produces of one writer.
_IN_FLIGHT = 20
# Settings that change nothing for the load, to be set and found again.
_RETENTIONS_MS = range(100_000_000, 100_001_000)
_RETENTION_MS_DEFAULT = 604_800_000
# How much is sent in a while, so that a life of a second is one of some hundred records.
_PAUSE_S = 0.002
_LARGE_SHARE = 0.03
# Several, so that requests come while the disk is busy with others.
_ADMINISTRATORS = 3
TOPICS = ("never-flushed", "flushed-often")


@dataclass
class Known:
    """What clients were told."""

    topics: set[str] = field(default_factory=set)
    # Those whose deletion was acknowledged.
    deleted: set[str] = field(default_factory=set)
    producer_ids: set[int] = field(default_factory=set)
    # Of every topic the values of retention.ms that may hold: the last acknowledged, or one after it.
    retention_ms: dict[str, list[int]] = field(default_factory=dict)
    written: dict[tuple[str, int], int] = field(default_factory=dict)
    sent: dict[tuple[str, int], int] = field(default_factory=dict)


async def prepare(broker: Broker, known: Known) -> None:
    """The topics that are written to. Small segments, so that some are finished."""
    client = await connect(broker)
    await client.create(TOPICS[0], partitions=2, segment_bytes=1 << 20)
    await client.create(TOPICS[1], partitions=2, segment_bytes=1 << 20, flush_messages=3)
    known.topics.update(TOPICS)


def begin(broker: Broker, known: Known, dice: Random) -> list["asyncio.Task[None]"]:
    """Everybody starts, and goes on until the broker is gone."""
    work = [write(broker, known, topic, index, dice) for topic in TOPICS for index in range(2)]
    work += [administrate(broker, known, dice, number) for number in range(_ADMINISTRATORS)]
    work += [tune(broker, known, topic, dice) for topic in TOPICS]
    return [asyncio.ensure_future(one) for one in work]


async def write(broker: Broker, known: Known, topic: str, index: int, dice: Random) -> None:
    where = (topic, index)
    client = await connect(broker)
    acks = dice.choice([1, -1])
    try:
        while True:
            if dice.random() < 0.3:
                await asyncio.sleep(_PAUSE_S)
            sent, written = known.sent.setdefault(where, 0), known.written.setdefault(where, 0)
            if sent - written < _IN_FLIGHT and dice.random() < 0.7:
                known.sent[where] = sent + 1
                client.send_produce(topic, value(sent, dice), partition=index, acks=acks)
            elif written < sent:
                _, answer = await client.answer()
                done = produced(answer)
                assert done.error_code == 0, ErrorCode(done.error_code).name
                assert done.base_offset == written
                known.written[where] = written + 1
    except (IncompleteReadError, ConnectionError):
        client.close()


def value(number: int, dice: Random) -> bytes:
    """Sometimes a large one, so that segments become full."""
    large = dice.random() < _LARGE_SHARE
    return b"%d " % number + b"." * (300_000 if large else dice.choice([10, 100, 1_000]))


async def administrate(broker: Broker, known: Known, dice: Random, number: int) -> None:
    """Each has topics of its own, so that it knows what they are like."""
    client = await connect(broker)
    made = 0
    try:
        while True:
            mine = sorted(topic for topic in known.topics if topic.startswith(f"topic-{number}-"))
            match dice.choice(["create", "create", "delete", "configure", "configure", "producer"]):
                case "delete" if mine:
                    await delete(client, known, dice.choice(mine))
                case "configure" if mine:
                    await configure(client, known, dice.choice(mine), dice.choice(_RETENTIONS_MS))
                case "producer":
                    known.producer_ids.add((await client.producer()).id)
                case _:
                    made += 1
                    await client.create(f"topic-{number}-{made}", partitions=dice.randint(1, 2))
                    known.topics.add(f"topic-{number}-{made}")
            await asyncio.sleep(dice.uniform(0, 8 * _PAUSE_S))
    except (IncompleteReadError, ConnectionError):
        client.close()


async def tune(broker: Broker, known: Known, topic: str, dice: Random) -> None:
    """Change a setting again and again: nothing is acknowledged sooner."""
    client = await connect(broker)
    try:
        while True:
            await configure(client, known, topic, dice.choice(_RETENTIONS_MS))
    except (IncompleteReadError, ConnectionError):
        client.close()


async def delete(client: Client, known: Known, topic: str) -> None:
    known.topics.discard(topic)
    known.retention_ms.pop(topic, None)
    await client.delete(topic)
    known.deleted.add(topic)


async def configure(client: Client, known: Known, topic: str, wanted: int) -> None:
    known.retention_ms.setdefault(topic, [_RETENTION_MS_DEFAULT]).append(wanted)
    await client.configure(topic, retention_ms=wanted)
    known.retention_ms[topic] = [wanted]


def flushed(broker: Broker) -> dict[tuple[str, int], int]:
    """How far each log is on the disk itself, as the broker knows it."""
    return {
        (topic, index): partition_of(broker, topic, index).log.recovery_point
        for topic in TOPICS
        for index in range(2)
    }


# Afterwards


async def check_metadata(client: Client, known: Known) -> None:
    """Every topic and every setting that was acknowledged is there."""
    answer = await client.asked(MetadataRequest(topics=None), 12)
    found = {topic.name: topic for topic in answer.topics}
    missing = known.topics - set(found)
    assert not missing, f"topics were acknowledged and are gone: {sorted(missing)}"
    back = known.deleted & set(found)
    assert not back, f"topics were deleted and are there: {sorted(back)}"
    for topic in found.values():
        assert [part.leader_id for part in topic.partitions] == [1] * len(topic.partitions)
    for name, possible in known.retention_ms.items():
        value = await client.setting(name, "retention.ms")
        assert value in [str(one) for one in possible], f"retention.ms of {name} is {value}, not {possible}"


async def check_records(client: Client, known: Known, at_least: dict[tuple[str, int], int]) -> None:
    """Each log holds what was sent, from the first record on and without a hole, and at least so much."""
    for (topic, index), sent in known.sent.items():
        found = await client.read(topic, partition=index)
        assert [record.offset for record in found] == list(range(len(found))), f"{topic}-{index} has holes"
        numbers = [int((record.value or b"").split()[0]) for record in found]
        assert numbers == list(range(len(found))), f"{topic}-{index} is out of order"
        least = at_least.get((topic, index), 0)
        assert least <= len(found) <= sent, (
            f"{topic}-{index} has {len(found)} records; {least} had to be there, and {sent} were sent"
        )


async def check_it_goes_on(client: Client) -> None:
    """It can be written to where it ends."""
    for topic in TOPICS:
        for index in range(2):
            before = len(await client.read(topic, partition=index))
            assert await client.produce(topic, b"%d after" % before, partition=index) == before
    await client.create("afterwards")


async def check_ids(client: Client, known: Known) -> None:
    """No producer gets the id of another, however many there are."""
    fresh = {(await client.producer()).id for _ in range(3)}
    assert len(fresh) == 3
    assert not fresh & known.producer_ids
