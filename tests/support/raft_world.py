"""A simulation for raft's core: the network loses and delays messages, disks lose unsynced writes.

It runs in virtual time, and all randomness comes from one seed. The world also checks the rules: it keeps a
ledger of committed entries, and compares the commits of every node with it.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from barnabas.raft.core import RaftCore
from barnabas.raft.effects import (
    AppendFetched,
    AppendLeaderChange,
    BecameLeader,
    Effect,
    EpochAnswer,
    FetchAnswer,
    HighWatermarkAdvanced,
    InstallSnapshot,
    LostLeadership,
    PersistState,
    SendBeginEpoch,
    SendEndEpoch,
    SendFetch,
    SendVote,
    TruncateTo,
    VoteAnswer,
)
from barnabas.raft.events import (
    BeginEpochAnswered,
    BeginEpochRequested,
    EndEpochAnswered,
    EndEpochRequested,
    Event,
    FetchAnswered,
    FetchRequested,
    Flushed,
    ResignRequested,
    SnapshotInstalled,
    Tick,
    Truncated,
    Unanswered,
    VoteAnswered,
    VoteRequested,
)
from barnabas.raft.facts import Election, OffsetAndEpoch
from barnabas.raft.roles import Leader
from barnabas.raft.settings import QuorumSettings

SETTINGS = QuorumSettings(
    election_timeout_ms=100,
    fetch_timeout_ms=200,
    election_backoff_max_ms=100,
    request_timeout_ms=100,
    retry_backoff_ms=5,
)
# Enough for several failed elections in a row.
HEALING_MS = 20_000
STEP_MS = 20
# Maximum delay of a message in a healthy network.
QUICK_MS = 5

Entry = tuple[int, str]


@dataclass
class Disk:
    """The state that survives a crash: persisted state and flushed entries."""

    election: Election | None = None
    entries: list[Entry] = field(default_factory=list)
    # Offset of the first entry, and epoch of the entry before it.
    start: int = 0
    start_epoch: int = 0
    flushed: int = 0


class ModelLog:
    """A LogView on a list."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk

    @property
    def start_offset(self) -> int:
        return self.disk.start

    @property
    def end(self) -> OffsetAndEpoch:
        entries = self.disk.entries
        epoch = entries[-1][0] if entries else self.disk.start_epoch
        return OffsetAndEpoch(self.disk.start + len(entries), epoch)

    @property
    def flushed_offset(self) -> int:
        return self.disk.flushed

    def end_of_epoch(self, epoch: int) -> OffsetAndEpoch:
        if epoch < self.disk.start_epoch:
            return OffsetAndEpoch(self.disk.start, self.disk.start_epoch)
        found = OffsetAndEpoch(self.disk.start, self.disk.start_epoch)
        for offset, (of_entry, _) in enumerate(self.disk.entries, self.disk.start):
            if of_entry <= epoch:
                found = OffsetAndEpoch(offset + 1, of_entry)
        return found

    @property
    def earliest_snapshot(self) -> OffsetAndEpoch | None:
        return OffsetAndEpoch(self.disk.start, self.disk.start_epoch) if self.disk.start else None

    latest_snapshot = earliest_snapshot


class Node:
    def __init__(self, world: "World", node_id: int, disk: Disk) -> None:
        self.world = world
        self.id = node_id
        self.disk = disk
        self.log = ModelLog(disk)
        self.high_watermark = 0
        self.leads: int | None = None
        self.flushing = False
        self.truncations = 0
        self.core = RaftCore(
            me=node_id,
            voters=world.voters,
            log=self.log,
            election=disk.election,
            settings=SETTINGS,
            rng=Random(world.rng.random()),
        )

    def start(self) -> None:
        self.carry_out(self.core.start(self.world.now_ms), None, None)

    def take(self, event: Event, sender: "Node | None" = None, request: Any = None) -> None:
        self.carry_out(self.core.step(event, self.world.now_ms), sender, request)

    def append(self, payload: str) -> None:
        assert self.leads is not None, f"{self.id} does not lead"
        self.disk.entries.append((self.leads, payload))
        self.world.flush_later(self)

    def carry_out(self, effects: list[Effect], sender: "Node | None", request: Any) -> None:
        world = self.world
        for effect in effects:
            match effect:
                case PersistState(election):
                    self.disk.election = election
                case BecameLeader(epoch=epoch):
                    world.became_leader(self, epoch)
                case AppendLeaderChange(epoch=epoch):
                    self.leads = epoch
                    self.append(f"leader {self.id}")
                case LostLeadership():
                    self.leads = None
                case AppendFetched(records):
                    assert isinstance(records, tuple), f"{records} is not a tuple of entries"
                    self.disk.entries += records
                    world.flush_later(self)
                case TruncateTo(offset):
                    del self.disk.entries[offset - self.disk.start :]
                    self.truncations += 1
                    self.disk.flushed = self.log.end.offset
                    self.take(Truncated())
                case HighWatermarkAdvanced(offset):
                    world.committed(self, offset)
                case InstallSnapshot():
                    world.install_later(self, effect)
                case SendVote() | SendBeginEpoch() | SendEndEpoch() | SendFetch():
                    world.send(self, effect.to, asked(effect, self.id), effect)
                case VoteAnswer() | EpochAnswer() | FetchAnswer():
                    assert sender is not None, f"{effect} responds to no request"
                    world.send(self, sender, answered(self, request, effect), None)

    def read(self, offset: int) -> tuple[Entry, ...] | None:
        at = offset - self.disk.start
        return tuple(self.disk.entries[at : at + 1 + self.world.rng.randrange(4)]) or None


def asked(request: Any, sender: int) -> Event:
    match request:
        case SendVote():
            return VoteRequested(
                candidate=sender, epoch=request.epoch, last=request.last, pre_vote=request.pre_vote
            )
        case SendBeginEpoch():
            return BeginEpochRequested(leader=sender, epoch=request.epoch)
        case SendEndEpoch():
            return EndEpochRequested(leader=sender, epoch=request.epoch, successors=request.successors)
        case SendFetch():
            end = request.end
            return FetchRequested(
                replica=sender, epoch=request.epoch, offset=end.offset, last_epoch=end.epoch
            )
    raise AssertionError(f"{request} is no request")


def answered(node: Node, request: Any, answer: Any) -> Event:
    said = {"error": answer.error, "leader": answer.leader, "epoch": answer.epoch}
    match request:
        case SendVote():
            return VoteAnswered(
                voter=node.id,
                asked_epoch=request.epoch,
                pre_vote=request.pre_vote,
                granted=answer.granted,
                **said,
            )
        case SendBeginEpoch():
            return BeginEpochAnswered(voter=node.id, asked_epoch=request.epoch, **said)
        case SendEndEpoch():
            return EndEpochAnswered(voter=node.id, asked_epoch=request.epoch, **said)
        case SendFetch():
            return FetchAnswered(
                peer=node.id,
                serial=request.serial,
                high_watermark=answer.high_watermark,
                diverging=answer.diverging,
                snapshot=answer.snapshot,
                records=None if answer.read_from is None else node.read(answer.read_from),
                **said,
            )
    raise AssertionError(f"{request} is no request")


class World:
    """Voters 1..n and perhaps an observer."""

    def __init__(self, seed: int, *, voters: int, observers: int = 0) -> None:
        self.seed = seed
        self.rng = Random(seed)
        self.now_ms = 0
        self.voters = list(range(1, voters + 1))
        self.ids = list(range(1, voters + observers + 1))
        self.disks = {one: Disk() for one in self.ids}
        self.nodes: dict[int, Node] = {}
        # The nodes on one side of a network partition, and the nodes with a slow disk.
        self.apart: set[int] = set()
        self.slow: set[int] = set()
        self.loss = 0.0
        self.delay_max_ms = QUICK_MS
        self.story: list[str] = []
        # Committed entries by offset, leaders by epoch, and the highest high watermark of all nodes.
        self.ledger: list[Entry] = []
        self.leaders: dict[int, int] = {}
        self._queue: list[tuple[int, int, Any]] = []
        self._counter = 0
        for one in self.ids:
            self.restart(one)

    # Called by nodes

    def send(self, sender: Node, to: int | Node, event: Event, request: Any) -> None:
        """Send a request to a node id, or a response to the Node that asked, which a restart replaces."""
        receiver = to.id if isinstance(to, Node) else to
        if self._drops(sender.id, receiver):
            if request is not None and self.rng.random() < 0.5:
                self._at(self.rng.randrange(1, 20), lambda: self._tell(sender, Unanswered(receiver)))
            return
        copies = 2 if self.loss and request is not None and self.rng.random() < 0.05 else 1
        for _ in range(copies):
            delay = self.rng.randrange(1, self.delay_max_ms)
            if isinstance(event, FetchAnswered) and event.records is None:
                # A leader without new entries delays its response.
                delay += self.rng.randrange(10, 40)
            self._at(delay, lambda: self._arrive(sender, to, event, request))

    def _arrive(self, sender: Node, to: int | Node, event: Event, request: Any) -> None:
        node = self.nodes.get(to) if isinstance(to, int) else to
        if node is not None and self.nodes.get(node.id) is node and self._reaches(sender.id, node.id):
            node.take(event, sender, request)

    def _tell(self, node: Node, event: Event) -> None:
        if self.nodes.get(node.id) is node:
            node.take(event)

    def _drops(self, sender: int, to: int) -> bool:
        return not self._reaches(sender, to) or self.rng.random() < self.loss

    def _reaches(self, sender: int, to: int) -> bool:
        return (sender in self.apart) == (to in self.apart)

    def flush_later(self, node: Node) -> None:
        if not node.flushing:
            node.flushing = True
            delay = self.rng.randrange(1, 150 if node.id in self.slow else 10)
            # Entries that arrive during this flush wait for the next one.
            upto, truncations = node.log.end.offset, node.truncations
            self._at(delay, lambda: self._flush(node, upto, truncations))

    def _flush(self, node: Node, upto: int, truncations: int) -> None:
        if self.nodes.get(node.id) is not node:
            return
        node.flushing = False
        if node.truncations == truncations:
            node.disk.flushed = max(node.disk.flushed, upto)
        if node.disk.flushed < node.log.end.offset:
            self.flush_later(node)
        node.take(Flushed(node.disk.flushed))

    def install_later(self, node: Node, wanted: InstallSnapshot) -> None:
        self._at(self.rng.randrange(1, 300), lambda: self._install(node, wanted))

    def _install(self, node: Node, wanted: InstallSnapshot) -> None:
        if self.nodes.get(node.id) is not node:
            return
        if node.core.is_installing(wanted.serial) and self._reaches(node.id, wanted.leader):
            snapshot = wanted.snapshot
            assert node.high_watermark <= snapshot.offset <= len(self.ledger), f"{node.id}: {snapshot}"
            node.disk.entries.clear()
            node.truncations += 1
            node.disk.start, node.disk.start_epoch = snapshot
            node.disk.flushed = snapshot.offset
        node.take(SnapshotInstalled(wanted.serial))

    def became_leader(self, node: Node, epoch: int) -> None:
        self.say(f"{node.id} leads in epoch {epoch}")
        first = self.leaders.setdefault(epoch, node.id)
        assert first == node.id, f"{first} and {node.id} lead in epoch {epoch}"
        start, end = node.disk.start, node.log.end.offset
        assert end >= len(self.ledger), f"leader {node.id} ends at {end}, {len(self.ledger)} are committed"
        mine = node.disk.entries[: len(self.ledger) - start]
        assert mine == self.ledger[start:], f"leader {node.id} lacks committed entries"

    def committed(self, node: Node, offset: int) -> None:
        assert offset > node.high_watermark, f"{node.id}: {node.high_watermark} -> {offset}"
        assert offset <= node.log.end.offset, f"{node.id}: {offset} is above its log end"
        node.high_watermark = offset
        for at in range(node.disk.start, offset):
            entry = node.disk.entries[at - node.disk.start]
            if at < len(self.ledger):
                assert self.ledger[at] == entry, (
                    f"{node.id}: {entry} at {at}, {self.ledger[at]} was committed"
                )
            else:
                assert at == len(self.ledger), f"{node.id} commits {at} after {len(self.ledger)}"
                self.ledger.append(entry)

    # Faults and proposals

    def crash(self, node_id: int) -> None:
        """Stop a node; it loses its unflushed entries from a random one on."""
        node = self.nodes.pop(node_id, None)
        if node is not None:
            unflushed = node.log.end.offset - node.disk.flushed
            kept = node.disk.flushed + self.rng.randrange(unflushed + 1)
            del node.disk.entries[kept - node.disk.start :]
            node.disk.flushed = node.log.end.offset
            self.say(f"{node_id} crashes, and keeps {node.log.end}")

    def restart(self, node_id: int) -> None:
        if node_id not in self.nodes:
            self.say(f"{node_id} starts")
            self.nodes[node_id] = Node(self, node_id, self.disks[node_id])
            self.nodes[node_id].start()

    def resign(self, node_id: int) -> None:
        if node_id in self.nodes:
            self.say(f"{node_id} is asked to resign")
            self.nodes[node_id].take(ResignRequested())

    def take_snapshot(self, node_id: int) -> None:
        """Replace some committed entries by a snapshot."""
        node = self.nodes.get(node_id)
        if node is not None and node.high_watermark > node.disk.start + 1:
            start = self.rng.randrange(node.disk.start + 1, node.high_watermark + 1)
            node.disk.start_epoch = node.disk.entries[start - node.disk.start - 1][0]
            del node.disk.entries[: start - node.disk.start]
            node.disk.start = start
            self.say(f"{node_id} has a snapshot of {start}")

    def propose(self, payload: str) -> None:
        for node in list(self.nodes.values()):
            if node.leads is not None:
                node.append(payload)

    def disturb(self) -> None:
        """Restart some nodes, and cause or end one random fault; in half of the cases it hits the leader."""
        leader = self.leader()
        one = self.rng.choice(self.ids)
        if leader is not None and self.rng.random() < 0.5:
            one = leader.id
        for down in self.ids:
            if self.rng.random() < 0.5:
                self.restart(down)
        match self.rng.randrange(10):
            case 0:
                self.crash(one)
            case 1 | 2:
                self.crash(one)
                self.restart(one)
            case 3:
                # Power loss of all nodes.
                for each in self.ids:
                    self.crash(each)
                for each in self.ids:
                    self.restart(each)
            case 4:
                self.apart = set(self.rng.sample(self.ids, self.rng.randrange(len(self.ids))))
                self.say(f"apart: {sorted(self.apart)}")
            case 5:
                self.apart = set()
            case 6:
                self.loss = self.rng.choice([0.0, 0.02, 0.2])
                self.delay_max_ms = self.rng.choice([QUICK_MS, 30, 120])
            case 7:
                self.resign(one)
            case 8:
                self.take_snapshot(one)
                self.take_snapshot(self.rng.choice(self.ids))
            case 9:
                self.slow = set(self.rng.sample(self.ids, self.rng.randrange(len(self.ids))))

    def heal(self) -> None:
        self.say("healed")
        self.apart, self.slow, self.loss, self.delay_max_ms = set(), set(), 0.0, QUICK_MS
        for one in self.ids:
            self.restart(one)

    # Time

    def run(self, ms: int) -> None:
        until = self.now_ms + ms
        while True:
            at = min([self._queue[0][0] if self._queue else until, *self._deadlines(), until])
            self.now_ms = max(self.now_ms, at)
            if self.now_ms >= until:
                return
            if self._queue and self._queue[0][0] <= self.now_ms:
                heapq.heappop(self._queue)[2]()
            else:
                self._tick()

    def run_until(self, done: Callable[[], bool], limit_ms: int) -> bool:
        """Run until `done` returns True; return False after `limit_ms`."""
        until = self.now_ms + limit_ms
        while not done() and self.now_ms < until:
            self.run(STEP_MS)
        return done()

    def is_settled(self) -> bool:
        """Whether there is a leader, and all nodes know that all entries are committed."""
        leader = self.leader()
        if leader is None or len(self.ledger) != leader.log.end.offset:
            return False
        return all(node.high_watermark == len(self.ledger) for node in self.nodes.values())

    def _deadlines(self) -> list[int]:
        found = [node.core.deadline_ms for node in self.nodes.values()]
        return [at for at in found if at is not None]

    def _tick(self) -> None:
        for node in list(self.nodes.values()):
            at = node.core.deadline_ms
            if at is not None and at <= self.now_ms:
                node.take(Tick())

    def _at(self, delay: int, action: Any) -> None:
        self._counter += 1
        heapq.heappush(self._queue, (self.now_ms + delay, self._counter, action))

    # Used by checks

    def leader(self) -> Node | None:
        """The leader of the latest epoch, which a majority would follow."""
        leading = [node for node in self.nodes.values() if isinstance(node.core.role, Leader)]
        return max(leading, key=lambda node: node.core.leader.epoch, default=None)

    def say(self, what: str) -> None:
        self.story.append(f"{self.now_ms} ms: {what}")
