"""The program of a simulated voter: a raft driver, its state machine, and a server for peers and clients."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, Final

from barnabas.base.probes import probe
from barnabas.base.tasks import together
from barnabas.base.values import value
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.schema.codec import decode, encode
from barnabas.protocol.stored.cluster_topics import ConfigRecord
from barnabas.raft.batches import CommittedBatch
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
from barnabas.raft.errors import BadSnapshotId, LeadershipLost, NoRoom, NotLeader, RaftError
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
from barnabas.sim.faults.holds import Holds
from barnabas.sim.node import Node
from barnabas.sim.quorum.transport import Connections, NoAnswer, serve

CLUSTER_ID: Final = "8UFBlDBzRM2WGJual5ztlg"
ROOT: Final = "/data"
# Versions of the messages: the newest.
VOTE, BEGIN, END, FETCH = 2, 1, 1, 17
FETCH_BYTES: Final = 2_000
SNAPSHOT_PART_BYTES: Final = 300
_KINDS: Final = {SendVote: "vote", SendBeginEpoch: "begin", SendEndEpoch: "end", SendFetch: "fetch"}


@value(kw_only=True)
class Applied:
    """A voter's state machine has taken a batch; a control batch has no values."""

    base_offset: int
    last_offset: int
    epoch: int
    values: tuple[tuple[str, str], ...]


@value(kw_only=True)
class Loaded:
    """A voter's state machine was replaced by a snapshot."""

    snapshot: OffsetAndEpoch
    state: tuple[tuple[str, str], ...]


class StateMachine:
    """Keys and values. It reports everything that it applies."""

    def __init__(self, me: int) -> None:
        self.state: dict[str, str] = {}
        self.leads: int | None = None
        self.batches_since_snapshot = 0
        self._me = me

    def load_snapshot(self, snapshot_id: OffsetAndEpoch, records: Iterable[object]) -> None:
        self.state = dict(_pair(record) for record in records)
        self.batches_since_snapshot = 0
        probe("quorum.loaded", Loaded(snapshot=snapshot_id, state=tuple(sorted(self.state.items()))))

    def committed(self, batch: CommittedBatch) -> None:
        values = tuple(_pair(record) for record, _ in batch.records)
        self.state.update(values)
        self.batches_since_snapshot += 1
        applied = Applied(
            base_offset=batch.base_offset, last_offset=batch.last_offset, epoch=batch.epoch, values=values
        )
        probe("quorum.applied", applied)

    def leader_changed(self, leader: int | None, epoch: int) -> None:
        self.leads = epoch if leader == self._me else None

    def records(self) -> list[object]:
        return [record_of(key, value) for key, value in sorted(self.state.items())]


def record_of(key: str, value: str) -> ConfigRecord:
    return ConfigRecord(resource_type=2, resource_name="t", name=key, value=value)


def _pair(record: object) -> tuple[str, str]:
    assert isinstance(record, ConfigRecord), f"{record} was never appended"
    return record.name, record.value or ""


class VoterProgram:
    """Start it with Node.start(). Node names of voters and observers are `n1`, `n2` and so on."""

    def __init__(
        self, *, voters: Sequence[int], settings: QuorumSettings, batches_between_snapshots: int
    ) -> None:
        self.voters: Final = tuple(voters)
        self.settings: Final = settings
        # The newest driver of each node, for checkers.
        self.running: Final[dict[str, Quorum]] = {}
        self._batches_between_snapshots = batches_between_snapshots

    async def __call__(self, node: Node) -> None:
        me = int(node.name.removeprefix("n"))
        machine = StateMachine(me)
        node.disk.make_directory(ROOT)
        peers = TcpPeers(me, self.settings, node.world.holds)
        quorum = Quorum(
            fs=node.disk,
            clock=node.clock,
            executor=node.executor,
            rng=node.dice("raft"),
            directory=ROOT,
            node_id=me,
            voters=[Voter(voter, f"n{voter}", 9093) for voter in self.voters],
            settings=self.settings,
            cluster_id=CLUSTER_ID,
            listener=machine,
            peers=peers,
        )
        await quorum.open()
        self.running[node.name] = quorum
        service = Service(quorum, machine)
        server = await serve(node.name, service.handle)
        try:
            await together(quorum.run(), self._take_snapshots(quorum, machine))
        finally:
            server.close()
            await quorum.close()
            peers.close()

    async def _take_snapshots(self, quorum: Quorum, machine: StateMachine) -> None:
        while True:
            await asyncio.sleep(0.1)
            if machine.batches_since_snapshot >= self._batches_between_snapshots:
                machine.batches_since_snapshot = 0
                try:
                    await quorum.write_snapshot(quorum.delivered, machine.records())
                except (BadSnapshotId, NoRoom):
                    # The log has advanced beyond it, or the disk is full; the next one may succeed.
                    continue


class Service:
    """Answers the requests of peers and clients."""

    def __init__(self, quorum: Quorum, machine: StateMachine) -> None:
        self._quorum = quorum
        self._machine = machine

    async def handle(self, kind: str, body: Any) -> Any:
        quorum = self._quorum
        match kind:
            case "vote":
                asked = vote_requested(_decode(body, VOTE), me=quorum.node_id, cluster_id=CLUSTER_ID)
                said = await quorum.answer(_need(asked))
                assert isinstance(said, VoteAnswer)
                return _encode(vote_response(said), VOTE)
            case "begin":
                begins = begin_requested(_decode(body, BEGIN), me=quorum.node_id, cluster_id=CLUSTER_ID)
                said = await quorum.answer(_need(begins))
                assert isinstance(said, EpochAnswer)
                return _encode(begin_response(said), BEGIN)
            case "end":
                ends = end_requested(_decode(body, END), cluster_id=CLUSTER_ID)
                said = await quorum.answer(_need(ends))
                assert isinstance(said, EpochAnswer)
                return _encode(end_response(said), END)
            case "fetch":
                fetched = _need(fetch_requested(_decode(body, FETCH), cluster_id=CLUSTER_ID))
                assert isinstance(fetched, FetchRequested)
                answer, records = await quorum.fetch(fetched, wait_ms=FETCH_WAIT_MS, bytes_max=FETCH_BYTES)
                return _encode(fetch_response(answer, records, log_start=quorum.log_start_offset), FETCH)
            case "snapshot":
                snapshot_id, position = body
                return await quorum.read_snapshot(OffsetAndEpoch(*snapshot_id), position, SNAPSHOT_PART_BYTES)
            case "append":
                return await self._append(*body)
        raise EOFError(f"unknown request {kind}")

    async def _append(self, key: str, value: str) -> tuple[str, int]:
        """How an append ended: ok with its offset, fail if it surely has no effect, or info."""
        epoch = self._machine.leads
        if epoch is None:
            return "fail", -1
        try:
            appended = self._quorum.append(epoch, [record_of(key, value)])
        except NotLeader:
            return "fail", -1
        except NoRoom:
            return "fail", -1
        try:
            return "ok", await appended
        except LeadershipLost:
            return "info", -1
        except RaftError:
            return "info", -1


class TcpPeers:
    """Implements raft/peers.py."""

    def __init__(self, me: int, settings: QuorumSettings, holds: Holds) -> None:
        self._me = me
        self._holds = holds
        self._connections = Connections(timeout_s=settings.request_timeout_ms / 1000)

    def close(self) -> None:
        self._connections.close()

    async def send(self, request: Request) -> Event:
        host = f"n{request.to}"
        await self._holds.wait(_KINDS[type(request)], f"n{self._me}")
        try:
            match request:
                case SendVote():
                    body = _encode(vote_request(request, me=self._me, cluster_id=CLUSTER_ID), VOTE)
                    answer = await self._connections.ask(host, "vote", body)
                    return vote_answered(request, _decode(answer, VOTE))
                case SendBeginEpoch():
                    body = _encode(begin_request(request, me=self._me, cluster_id=CLUSTER_ID), BEGIN)
                    answer = await self._connections.ask(host, "begin", body)
                    return begin_answered(request, _decode(answer, BEGIN))
                case SendEndEpoch():
                    body = _encode(end_request(request, me=self._me, cluster_id=CLUSTER_ID), END)
                    answer = await self._connections.ask(host, "end", body)
                    return end_answered(request, _decode(answer, END))
                case SendFetch():
                    sent = fetch_request(request, me=self._me, cluster_id=CLUSTER_ID, bytes_max=FETCH_BYTES)
                    answer = await self._connections.ask(host, "fetch", _encode(sent, FETCH), lane="fetch")
                    return fetch_answered(request, _decode(answer, FETCH))
        except NoAnswer:
            return Unanswered(request.to)

    async def fetch_snapshot(
        self, leader: int, epoch: int, snapshot_id: OffsetAndEpoch, position: int
    ) -> SnapshotPart | None:
        await self._holds.wait("snapshot", f"n{self._me}")
        try:
            body = (tuple(snapshot_id), position)
            part = await self._connections.ask(f"n{leader}", "snapshot", body, lane="snapshot")
        except NoAnswer:
            return None
        assert isinstance(part, SnapshotPart)
        return part


def _need(asked: Any) -> Any:
    assert not isinstance(asked, ErrorCode), f"request rejected with {asked}"
    return asked


def _encode(message: Any, version: int) -> tuple[type, bytes]:
    return type(message), encode(message, version)


def _decode(body: tuple[type, bytes], version: int) -> Any:
    message_type, data = body
    return decode(message_type, version, data, 0)[0]
