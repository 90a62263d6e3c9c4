"""Members of groups that outlive their broker: they share partitions, commit, leave and come back.

Offsets that are committed for a partition only go up, whoever has it. `Acknowledged` notes what the broker
said was done, and where the log ended then: what lies before that is what a power loss must not take.
"""

import asyncio
from asyncio import IncompleteReadError
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from barnabas.coordinators.runtime.shards import partition_of as hash_of
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.server.broker import Broker
from barnabas.server.coordination.groups import OFFSETS_TOPIC
from support.group.wire import ClassicMember, ConsumerMember, committed, find_coordinator
from support.stories import Client, connect, partition_of

TOPIC = "orders"
PARTITIONS = 4
OFFSETS_PARTITIONS = 2
CLASSICS, MODERNS = "classics", "moderns"
_LEAVES = 0.03
_WITH_EPOCH = 9

# The coordinator is not there yet, or not any more: ask again.
_LATER = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
_AGAIN = frozenset(
    {
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.STALE_MEMBER_EPOCH,
    }
)


class Commit(NamedTuple):
    group: str
    partition: int
    offset: int
    # Where the group's partition of __consumer_offsets ended when it was acknowledged.
    log_end: int


@dataclass
class Acknowledged:
    sent: dict[tuple[str, int], int] = field(default_factory=dict)
    commits: list[Commit] = field(default_factory=list)

    def at_least(self, flushed: Sequence[int] | None = None) -> dict[tuple[str, int], int]:
        """The offsets that must be there: all that were acknowledged, or those in this part of the log."""
        least: dict[tuple[str, int], int] = {}
        for one in self.commits:
            if flushed is None or one.log_end <= flushed[hash_of(one.group, OFFSETS_PARTITIONS)]:
                place = one.group, one.partition
                least[place] = max(one.offset, least.get(place, 0))
        return least


class Life:
    """One member of either protocol. run() goes on until the broker is gone."""

    group: str

    def __init__(self, known: Acknowledged, dice: Random) -> None:
        self.known = known
        self.dice = dice
        self.owned: set[int] = set()
        self.leaves_at_times = True
        # Everybody, to see that nobody else works on the same. Not after a power loss: then the coordinator
        # may have forgotten what it gave.
        self.everybody: Sequence[Life] = ()

    async def run(self, broker: Broker) -> None:
        with suppress(IncompleteReadError, ConnectionError):
            client = await connect(broker)
            self._take_client(client)
            await find_coordinator(client, self.group)
            while True:
                await asyncio.sleep(self.dice.uniform(0, 0.05))
                if self.leaves_at_times and self.dice.random() < _LEAVES:
                    await self._leave()
                elif await self._step():
                    for partition in sorted(self.owned):
                        await self._commit(broker, client, partition)

    def _take_client(self, client: Client) -> None:
        raise NotImplementedError

    async def _step(self) -> bool:
        """Whether it is in the group and may work."""
        raise NotImplementedError

    async def _leave(self) -> None:
        raise NotImplementedError

    def _identity(self) -> tuple[str, int]:
        raise NotImplementedError

    async def _commit(self, broker: Broker, client: Client, partition: int) -> None:
        place = self.group, partition
        offset = self.known.sent[place] = self.known.sent.get(place, 0) + 1
        member_id, epoch = self._identity()
        one = OffsetCommitRequestPartition(
            partition_index=partition, committed_offset=offset, committed_metadata=""
        )
        request = OffsetCommitRequest(
            group_id=self.group,
            generation_id_or_member_epoch=epoch,
            member_id=member_id,
            topics=[OffsetCommitRequestTopic(name=TOPIC, partitions=[one])],
        )
        answer = await client.asked(request, _WITH_EPOCH)
        code = ErrorCode(answer.topics[0].partitions[0].error_code)
        if code is ErrorCode.NONE:
            log = partition_of(broker, OFFSETS_TOPIC, hash_of(self.group, OFFSETS_PARTITIONS)).log
            self.known.commits.append(Commit(self.group, partition, offset, log.end_offset))
        else:
            assert code in _LATER | _AGAIN, code.name


class ClassicLife(Life):
    group = CLASSICS

    def __init__(self, known: Acknowledged, dice: Random) -> None:
        super().__init__(known, dice)
        self.member: ClassicMember | None = None
        self._is_in = False

    def _take_client(self, client: Client) -> None:
        if self.member is None:
            self.member = ClassicMember(client, self.group)
        self.member.client = client

    def _identity(self) -> tuple[str, int]:
        assert self.member is not None
        return self.member.id, self.member.generation

    async def _step(self) -> bool:
        assert self.member is not None
        if self._is_in:
            return self._took(await self.member.heartbeat())
        if not self._took(await self.member.join()):
            return False
        parts: dict[str, bytes] = {}
        if self.member.leader == self.member.id:
            members = sorted(self.member.members)
            parts = {
                one: bytes(range(number, PARTITIONS, len(members))) for number, one in enumerate(members)
            }
        if not self._took(await self.member.sync(parts)):
            return False
        self.owned, self._is_in = set(self.member.assignment), True
        return True

    def _took(self, code: ErrorCode) -> bool:
        assert self.member is not None
        if code is ErrorCode.NONE:
            return True
        assert code in _LATER | _AGAIN, code.name
        if code in _AGAIN:
            self.owned, self._is_in = set(), False
        if code is ErrorCode.UNKNOWN_MEMBER_ID:
            self.member.id = ""
        return False

    async def _leave(self) -> None:
        assert self.member is not None
        if self.member.id and await self.member.leave() is ErrorCode.NONE:
            self.member.id = ""
            self.owned, self._is_in = set(), False


class ConsumerLife(Life):
    group = MODERNS

    def __init__(self, known: Acknowledged, dice: Random, name: str) -> None:
        super().__init__(known, dice)
        self.name = name
        self.member: ConsumerMember | None = None

    def _take_client(self, client: Client) -> None:
        if self.member is None:
            self.member = ConsumerMember(client, self.group, self.name, [TOPIC])
        self.member.client = client

    def _identity(self) -> tuple[str, int]:
        assert self.member is not None
        return self.member.id, self.member.epoch

    async def _step(self) -> bool:
        assert self.member is not None
        # What it was told to give up it works on until it says that it has.
        self.owned = {partition for _, partition in self.member.partitions}
        code = await self.member.heartbeat()
        self.owned |= {partition for _, partition in self.member.partitions}
        if code in _AGAIN:
            self._forget()
        assert code in _LATER | _AGAIN | {ErrorCode.NONE}, code.name
        for other in self.everybody:
            if isinstance(other, ConsumerLife) and other is not self:
                assert not other.owned & self.owned, f"{other.name} and {self.name} work on the same"
        return code is ErrorCode.NONE

    async def _leave(self) -> None:
        assert self.member is not None
        if self.member.epoch > 0:
            # It works on nothing any more when it says so.
            self.owned = set()
            if await self.member.heartbeat(epoch=-1) is ErrorCode.NONE:
                self._forget()

    def _forget(self) -> None:
        assert self.member is not None
        self.member.epoch, self.member.owned, self.owned = 0, {}, set()


def begin(lives: Sequence[Life], broker: Broker) -> list["asyncio.Task[None]"]:
    """All of them go on, until the broker is gone."""
    return [asyncio.ensure_future(life.run(broker)) for life in lives]


def new_lives(known: Acknowledged, dice: Random, count: int) -> list[Life]:
    """So many of each protocol."""
    return [
        *(ClassicLife(known, dice) for _ in range(count)),
        *(ConsumerLife(known, dice, f"m{number}") for number in range(count)),
    ]


def watch_each_other(lives: Sequence[Life]) -> None:
    for life in lives:
        life.everybody = lives


# Afterwards


async def check_commits(client: Client, known: Acknowledged, least: dict[tuple[str, int], int]) -> None:
    """Nothing is lost that must be there, and nothing is there that nobody sent."""
    for group in (CLASSICS, MODERNS):
        await find_coordinator(client, group)
        found = await committed(client, group)
        while isinstance(found, ErrorCode):
            assert found in _LATER, found.name
            await asyncio.sleep(0.01)
            found = await committed(client, group)
        for partition in range(PARTITIONS):
            offset = found.get((TOPIC, partition), 0)
            place = group, partition
            assert offset >= least.get(place, 0), f"{place} was {least[place]} and is {offset}"
            assert offset <= known.sent.get(place, 0), f"{place} is {offset}, which nobody sent"


async def check_they_share(lives: Sequence[Life], *, timeout_s: float = 40) -> None:
    """Soon everything has one owner in each group, and all are in."""
    for life in lives:
        life.leaves_at_times = False
    async with asyncio.timeout(timeout_s):
        while not all(_is_shared(lives, group) for group in (CLASSICS, MODERNS)):
            await asyncio.sleep(0.05)


def _is_shared(lives: Sequence[Life], group: str) -> bool:
    owned = [life.owned for life in lives if life.group == group]
    return all(owned) and sorted(one for some in owned for one in some) == list(range(PARTITIONS))
