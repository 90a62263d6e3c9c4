"""Three complete quorums with logs on simulated disks exchange wire messages in virtual time."""

import asyncio
from typing import Any

import pytest

from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.schema.codec import decode, encode
from barnabas.raft.driver import Quorum
from barnabas.raft.driver.peers import SnapshotPart
from barnabas.raft.effects import (
    EpochAnswer,
    Request,
    SendBeginEpoch,
    SendEndEpoch,
    SendFetch,
    SendVote,
    VoteAnswer,
)
from barnabas.raft.errors import LeadershipLost, NotLeader, QuorumClosed
from barnabas.raft.events import Event, FetchRequested, Unanswered
from barnabas.raft.facts import OffsetAndEpoch, Voter
from barnabas.raft.settings import QuorumSettings
from barnabas.raft.wire import (
    begin_answered,
    begin_request,
    begin_requested,
    begin_response,
    end_answered,
    end_request,
    end_requested,
    end_response,
    vote_answered,
    vote_request,
    vote_requested,
    vote_response,
)
from barnabas.raft.wire_fetch import (
    FETCH_WAIT_MS,
    fetch_answered,
    fetch_request,
    fetch_requested,
    fetch_response,
)
from barnabas.sim.disk import SimDisk
from barnabas.sim.world import World
from support.quorums import ROOT, Recorder, config

CLUSTER = "8UFBlDBzRM2WGJual5ztlg"
SETTINGS = QuorumSettings()
IDS = (1, 2, 3)
FETCH_BYTES = 1_000


def through_the_wire(message: Any, version: int) -> Any:
    """The message as it arrives, without fields that the version lacks."""
    return decode(type(message), version, encode(message, version), 0)[0]


class Room:
    """Three nodes. Requests to a node that is down or cut off get no answer."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.disks = {one: world.new_disk(f"disk {one}") for one in IDS}
        self.nodes: dict[int, Quorum] = {}
        self.tasks: dict[int, asyncio.Task[None]] = {}
        self.listeners: dict[int, Recorder] = {}
        self.cut_off: set[int] = set()

    async def start(self, one: int) -> None:
        listener = self.listeners[one] = Telling(one)
        disk: SimDisk = self.disks[one]
        disk.make_directory(ROOT)
        quorum = Quorum(
            fs=disk,
            clock=self.world.clock,
            executor=self.world.executor,
            rng=self.world.dice(f"raft {one}"),
            directory=ROOT,
            node_id=one,
            voters=[Voter(each, f"host{each}", 9093) for each in IDS],
            settings=SETTINGS,
            cluster_id=CLUSTER,
            listener=listener,
            peers=Wire(self, one),
        )
        await quorum.open()
        self.nodes[one] = quorum
        self.tasks[one] = asyncio.get_running_loop().create_task(quorum.run())

    async def stop(self, one: int) -> None:
        task = self.tasks.pop(one)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await self.nodes[one].close()
        del self.nodes[one]

    def check(self) -> None:
        """Assert that no node has failed."""
        for task in self.tasks.values():
            if task.done():
                task.result()

    async def leader(self, among: tuple[int, ...] = IDS) -> tuple[Quorum, int]:
        """Wait for a leader; return the node and its epoch."""
        while True:
            self.check()
            for one in among:
                epoch = self.listeners[one].leads if one in self.nodes else None
                if epoch is not None and self.nodes[one].leader == (one, epoch):
                    return self.nodes[one], epoch
            await asyncio.sleep(0.01)

    async def all_have(self, records: list[object], among: tuple[int, ...] = IDS) -> None:
        while any(self.listeners[one].records != records for one in among):
            self.check()
            await asyncio.sleep(0.01)


class Telling(Recorder):
    def __init__(self, me: int) -> None:
        super().__init__()
        self.me = me

    def leader_changed(self, leader: int | None, epoch: int) -> None:
        super().leader_changed(leader, epoch)
        self.leads = epoch if leader == self.me else None


class Wire:
    """Sends a node's requests as messages in the newest versions."""

    def __init__(self, room: Room, me: int) -> None:
        self.room = room
        self.me = me

    async def send(self, request: Request) -> Event:
        await asyncio.sleep(0.001)
        node = self._reach(request.to)
        if node is None:
            await asyncio.sleep(0.1)
            return Unanswered(request.to)
        try:
            answer = await self._ask(node, request)
        except QuorumClosed:
            return Unanswered(request.to)
        await asyncio.sleep(0.001)
        return Unanswered(request.to) if self._reach(request.to) is None else answer

    def _reach(self, to: int) -> Quorum | None:
        return None if {self.me, to} & self.room.cut_off else self.room.nodes.get(to)

    async def _ask(self, node: Quorum, request: Request) -> Event:
        match request:
            case SendVote():
                vote = through_the_wire(vote_request(request, me=self.me, cluster_id=CLUSTER), 2)
                asked = vote_requested(vote, me=node.node_id, cluster_id=CLUSTER)
                assert not isinstance(asked, ErrorCode)
                said = await node.answer(asked)
                assert isinstance(said, VoteAnswer)
                return vote_answered(request, through_the_wire(vote_response(said), 2))
            case SendBeginEpoch():
                begin = through_the_wire(begin_request(request, me=self.me, cluster_id=CLUSTER), 1)
                begins = begin_requested(begin, me=node.node_id, cluster_id=CLUSTER)
                assert not isinstance(begins, ErrorCode)
                said = await node.answer(begins)
                assert isinstance(said, EpochAnswer)
                return begin_answered(request, through_the_wire(begin_response(said), 1))
            case SendEndEpoch():
                end = through_the_wire(end_request(request, me=self.me, cluster_id=CLUSTER), 1)
                ends = end_requested(end, cluster_id=CLUSTER)
                assert not isinstance(ends, ErrorCode)
                said = await node.answer(ends)
                assert isinstance(said, EpochAnswer)
                return end_answered(request, through_the_wire(end_response(said), 1))
            case SendFetch():
                return await self._fetch(node, request)

    async def _fetch(self, node: Quorum, request: SendFetch) -> Event:
        sent = fetch_request(request, me=self.me, cluster_id=CLUSTER, bytes_max=FETCH_BYTES)
        asked = fetch_requested(through_the_wire(sent, 17), cluster_id=CLUSTER)
        assert isinstance(asked, FetchRequested)
        answer, records = await node.fetch(asked, wait_ms=FETCH_WAIT_MS, bytes_max=FETCH_BYTES)
        response = fetch_response(answer, records, log_start=node.log_start_offset)
        return fetch_answered(request, through_the_wire(response, 17))

    async def fetch_snapshot(
        self, leader: int, epoch: int, snapshot_id: OffsetAndEpoch, position: int
    ) -> SnapshotPart | None:
        await asyncio.sleep(0.001)
        node = self._reach(leader)
        return None if node is None else await node.read_snapshot(snapshot_id, position, 200)


async def append(quorum: Quorum, epoch: int, first: int, count: int) -> list[object]:
    records: list[object] = [config(number) for number in range(first, first + count)]
    for record in records:
        await quorum.append(epoch, [record])
    return records


async def a_leader_is_elected_and_all_get_its_records(world: World) -> None:
    room = Room(world)
    for one in IDS:
        await room.start(one)

    leader, epoch = await room.leader()
    records = await append(leader, epoch, 0, 20)

    await room.all_have(records)
    told = leader.describe()
    assert [voter.id for voter in told.voters] == [1, 2, 3]
    assert {voter.end_offset for voter in told.voters} == {21}
    for one in IDS:
        await room.stop(one)


async def a_leader_that_stops_hands_over_and_comes_back_as_a_follower(world: World) -> None:
    room = Room(world)
    for one in IDS:
        await room.start(one)
    first, epoch = await room.leader()
    records = await append(first, epoch, 0, 5)
    others = tuple(one for one in IDS if one != first.node_id)
    # Wait until both others have everything, so that either can be elected.
    await room.all_have(records)

    before_ms = world.clock.monotonic_ms()
    await room.stop(first.node_id)
    second, later = await room.leader(others)
    took_ms = world.clock.monotonic_ms() - before_ms
    records += await append(second, later, 5, 5)
    await room.start(first.node_id)

    assert later > epoch
    # The leader announces its resignation, so no node waits for the fetch timeout.
    assert took_ms < SETTINGS.fetch_timeout_ms
    await room.all_have(records)


async def a_leader_that_is_cut_off_gives_up_and_its_uncommitted_records_are_cut(world: World) -> None:
    room = Room(world)
    for one in IDS:
        await room.start(one)
    old, epoch = await room.leader()
    records = await append(old, epoch, 0, 5)
    others = tuple(one for one in IDS if one != old.node_id)

    room.cut_off.add(old.node_id)
    lost = old.append(epoch, [config(99)])
    new, later = await room.leader(others)
    with pytest.raises(LeadershipLost):
        await lost
    with pytest.raises(NotLeader):
        old.append(epoch, [config(98)])
    records += await append(new, later, 5, 5)
    room.cut_off.clear()

    await room.all_have(records)


async def a_follower_that_was_away_for_long_gets_the_snapshot(world: World) -> None:
    room = Room(world)
    for one in IDS:
        await room.start(one)
    leader, epoch = await room.leader()
    away = next(one for one in IDS if one != leader.node_id)
    records = await append(leader, epoch, 0, 3)
    await room.all_have(records)
    await room.stop(away)

    records += await append(leader, epoch, 3, 30)
    state: list[object] = [config(1000), config(1001)]
    await leader.write_snapshot(leader.delivered, state)
    # As if retention had deleted the others.
    leader._opened.work.log.log.advance_start(leader.delivered.offset)
    more = await append(leader, epoch, 40, 2)
    await room.start(away)

    await room.all_have(state + more, among=(away,))
    assert any(line.startswith("snapshot 34-") for line in room.listeners[away].story)
    await room.stop(away)
    await room.start(away)
    await room.all_have(state + more, among=(away,))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "story",
    [
        a_leader_is_elected_and_all_get_its_records,
        a_leader_that_stops_hands_over_and_comes_back_as_a_follower,
        a_leader_that_is_cut_off_gives_up_and_its_uncommitted_records_are_cut,
        a_follower_that_was_away_for_long_gets_the_snapshot,
    ],
    ids=lambda story: story.__name__,
)
def test_three_voters(story: Any, seed: int) -> None:
    with World(seed) as world:
        world.run(story(world), until_ms=60_000)
