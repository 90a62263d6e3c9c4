"""One run of a simulated quorum: faults while clients append, then healing, service, agreement and silence.

outcome = run_quorum(random_spec(seed=7))
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import fields
from random import Random
from typing import Any, Final

from barnabas.base.probes import watch_probes
from barnabas.base.values import value
from barnabas.raft import effects
from barnabas.raft.roles import Leader
from barnabas.raft.settings import QuorumSettings
from barnabas.sim.checkers import Violation
from barnabas.sim.checkers.raft import NodeView, RaftChecker
from barnabas.sim.errors import SimulationTooLong
from barnabas.sim.faults.catalogue import CATALOGUE
from barnabas.sim.faults.injector import Injector
from barnabas.sim.faults.schedule import InvalidSchedule, Rule, from_json, to_json
from barnabas.sim.faults.swarm import random_rules
from barnabas.sim.history import History, check_history
from barnabas.sim.node import Node
from barnabas.sim.process import CURRENT
from barnabas.sim.quorum.client import AppendingClient
from barnabas.sim.quorum.voter import VoterProgram
from barnabas.sim.world import World
from barnabas.storage.log import Log
from barnabas.storage.names import LOG

PROBES: Final = (
    *sorted(f"raft.{effect.__name__}" for effect in effects.Effect.__args__),
    "quorum.applied",
    "quorum.loaded",
)
# The share of random runs with a schedule of the catalogue.
CATALOGUE_SHARE: Final = 0.3
# How often the run looks for violations, and for the end of healing.
SLICE_S: Final = 0.25
# Loop iterations per node and virtual second of an idle quorum, with room for a slow election.
IDLE_TURNS_MAX: Final = 400
IDLE_S: Final = 5
# A leader resigns after one and a half fetch timeouts without a majority. Its successor needs one to be
# elected, so the two overlap for half of one, and a little more because of delays.
STALE_LEADER_MS_MAX: Final = 2_000
# A run with more callbacks than this is a storm.
TURNS_MAX: Final = 300_000


@value(kw_only=True)
class QuorumSpec:
    """Everything that determines a run."""

    seed: int
    voters: int
    observers: int
    clients: int
    duration_ms: int
    pause_ms: int
    batches_between_snapshots: int
    segment_ms: int
    retention_bytes: int
    rules: tuple[Rule, ...]

    def settings(self) -> QuorumSettings:
        return QuorumSettings(
            election_timeout_ms=500,
            # Twice the wait of a fetch for news.
            fetch_timeout_ms=1_000,
            election_backoff_max_ms=200,
            request_timeout_ms=1_000,
            log_segment_ms=self.segment_ms,
            max_retention_bytes=self.retention_bytes,
        )

    def healing_ms(self) -> int:
        """How long a healed quorum may take to serve: ten failed elections in a row, and a slow restart."""
        settings = self.settings()
        election_ms = (
            2 * settings.fetch_timeout_ms
            + 2 * settings.election_timeout_ms
            + settings.election_backoff_max_ms
            + 2 * settings.request_timeout_ms
        )
        return 10 * election_ms + 2_000


def spec_to_json(spec: QuorumSpec) -> dict[str, Any]:
    """A spec as plain data, for a file."""
    plain = {field.name: getattr(spec, field.name) for field in fields(spec)}
    return {**plain, "rules": to_json(spec.rules)}


def spec_from_json(content: dict[str, Any]) -> QuorumSpec:
    """The inverse. InvalidSchedule if a name does not exist any more."""
    wrong = set(content) ^ {field.name for field in fields(QuorumSpec)}
    if wrong:
        raise InvalidSchedule(f"unknown or missing fields of a run: {', '.join(sorted(wrong))}")
    return QuorumSpec(**{**content, "rules": from_json(content["rules"], probes=PROBES)})


@value(kw_only=True)
class Outcome:
    """The result of a run."""

    spec: QuorumSpec
    violations: tuple[Violation, ...]
    history: History
    virtual_s: float
    acknowledged: int
    committed: int
    faults: dict[str, int]
    marks: dict[str, int]
    # The digest of everything that was scheduled.
    digest: str

    @property
    def did_nothing(self) -> bool:
        """No append succeeded during the faults, so the run has tested little."""
        return self.acknowledged == 0


def random_spec(seed: int) -> QuorumSpec:
    rng = Random(f"quorum spec {seed}")
    voters = rng.choice((3, 3, 3, 5))
    duration_ms = rng.choice((4_000, 8_000, 15_000))
    if rng.random() < CATALOGUE_SHARE:
        rules = tuple(CATALOGUE[rng.choice(list(CATALOGUE))](rng))
    else:
        rules = random_rules(
            rng,
            probes=PROBES,
            duration_ms=duration_ms,
            count=rng.choice((2, 6, 15)),
            disk_errors=rng.random() < 0.5,
        )
    return QuorumSpec(
        seed=seed,
        voters=voters,
        observers=rng.choice((0, 0, 1)),
        clients=rng.choice((1, 2)),
        duration_ms=duration_ms,
        pause_ms=rng.choice((20, 100, 300)),
        batches_between_snapshots=rng.choice((5, 20, 1_000_000)),
        segment_ms=rng.choice((100, 1_000, 1_000_000)),
        retention_bytes=rng.choice((1_000, 5_000, 10_000_000)),
        rules=rules,
    )


class QuorumRun:
    """The cluster of one run; the injector's view of it."""

    def __init__(self, world: World, spec: QuorumSpec) -> None:
        self._world = world
        self._spec = spec
        self.checker = RaftChecker()
        ids = range(1, spec.voters + spec.observers + 1)
        self._nodes = [world.add_node(f"n{one}") for one in ids]
        self.program = VoterProgram(
            voters=range(1, spec.voters + 1),
            settings=spec.settings(),
            batches_between_snapshots=spec.batches_between_snapshots,
        )
        names = [node.name for node in self._nodes]
        self.clients = [
            AppendingClient(world.history, names, pause_ms=spec.pause_ms) for _ in range(spec.clients)
        ]
        self._client_nodes = [world.add_node(f"c{number + 1}") for number in range(spec.clients)]
        self.injector = Injector(world, self, spec.rules, world.dice("faults"))
        # A deposed leader that can tell the time and use its disk must notice within this.
        slow = {"pause", "suspend", "hang_disk", "slow_disk", "drift", "delay", "hold"}
        self._watches_stale = not slow.intersection(rule.do for rule in spec.rules)
        self._stale_since_ns: dict[str, int] = {}

    def nodes(self) -> list[Node]:
        return self._nodes

    def voters(self) -> list[Node]:
        return self._nodes[: self._spec.voters]

    def leader(self) -> Node | None:
        if not self.checker.leaders:
            return None
        return self._world.nodes[self.checker.leaders[max(self.checker.leaders)]]

    def boot(self, node: Node) -> None:
        self.checker.started(node.name)
        node.start(self.program)

    def saw(self, name: str, about: object) -> None:
        process = CURRENT.get()
        assert process is not None, f"{name} outside of a node"
        node = self._world.nodes[process.name]
        self.checker.saw(self._world.loop.time_ns(), node.name, name, about, self._view(node))
        if (name.startswith("raft.") and name[5:] in _NOTED) or name.startswith("quorum."):
            self._world.history.event(node.name, name, about=str(about))
        self.injector.saw(node, name)

    def _view(self, node: Node) -> NodeView | None:
        quorum = self.program.running.get(node.name)
        if quorum is None or quorum._engine is None:
            return None
        engine = quorum._engine
        return NodeView(
            election=lambda: engine.core.election,
            end_offset=lambda: engine.work.log.log.end_offset,
            durable=node.disk.durable,
            active_segment=lambda: _active_segment(node, engine.work.log.log),
        )

    # The phases of a run

    async def play(self) -> None:
        for node in self._nodes:
            self.boot(node)
        for node, client in zip(self._client_nodes, self.clients, strict=True):
            node.start(client)
        await self._until(lambda: False, self._spec.duration_ms)

    async def heal(self) -> bool:
        """End all faults; return whether the quorum then serves all clients and all nodes agree."""
        self._world.history.event("world", "heal")
        self._world.holds.clear()
        self.injector.end()
        before = [client.acknowledged for client in self.clients]
        limit_ms = self._spec.healing_ms()
        served = await self._until(
            lambda: all(
                client.acknowledged > count for client, count in zip(self.clients, before, strict=True)
            ),
            limit_ms,
        )
        for client in self.clients:
            client.stop = True
        # Within its timeout every append is committed or abandoned.
        await self._until(lambda: all(node.process is None for node in self._client_nodes), 5_000)
        return served and await self._until(self._all_agree, limit_ms)

    async def idle(self) -> int:
        """Wait with nothing to do; return the loop iterations per node and second."""
        before = self._world.loop.turns
        await self._until(lambda: False, IDLE_S * 1000)
        return (self._world.loop.turns - before) // (IDLE_S * len(self._nodes))

    def _all_agree(self) -> bool:
        ends = {self.checker.next_offset(node.name) for node in self._nodes}
        return ends == {len(self.checker.ledger)} and all(node.process is not None for node in self._nodes)

    async def _until(self, done: Callable[[], bool], limit_ms: int) -> bool:
        """Wait in virtual time; return early after a violation."""
        left_s = limit_ms / 1000
        while left_s > 0 and not done() and not self.checker.violations:
            await asyncio.sleep(min(SLICE_S, left_s))
            left_s -= SLICE_S
            self._restart_failed()
            if self._watches_stale:
                self._check_stale_leaders()
        return done()

    def _check_stale_leaders(self) -> None:
        """A leader that a majority does not follow any more resigns. (KIP-835)"""
        now_ns = self._world.loop.time_ns()
        newest = max(self.checker.leaders, default=0)
        for node in self._nodes:
            quorum = self.program.running.get(node.name)
            if node.process is None or quorum is None or quorum._engine is None:
                self._stale_since_ns.pop(node.name, None)
                continue
            core = quorum._engine.core
            if not isinstance(core.role, Leader) or core.leader.epoch >= newest:
                self._stale_since_ns.pop(node.name, None)
                continue
            since_ns = self._stale_since_ns.setdefault(node.name, now_ns)
            if now_ns - since_ns > STALE_LEADER_MS_MAX * 1_000_000:
                text = f"still leads epoch {core.leader.epoch}, long after {newest} has begun"
                self.checker.violations.append(Violation("raft", now_ns, node.name, text))

    def _restart_failed(self) -> None:
        """Start programs again that have ended with an error, as a service manager does."""
        for node in self._nodes:
            if node.process is None and node.has_power and node.ended_by_itself:
                self.boot(node)


def _active_segment(node: Node, log: Log) -> tuple[str, bytes]:
    segment = log.segments[-1]
    path = segment.path(LOG)
    return path, node.disk.content(path)[: segment.size]


_NOTED: Final = {"PersistState", "BecameLeader", "LostLeadership", "TruncateTo", "InstallSnapshot"}


def run_quorum(spec: QuorumSpec) -> Outcome:
    """Run a world from its first to its last moment, and judge it."""
    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with World(spec.seed) as world:
            run = QuorumRun(world, spec)
            watch_probes(run.saw)
            world.loop.turns_max = TURNS_MAX
            violations = _judge(world, run)
            return Outcome(
                spec=spec,
                violations=tuple(violations),
                history=world.history,
                virtual_s=world.loop.time(),
                acknowledged=sum(client.acknowledged for client in run.clients),
                committed=len(run.checker.ledger),
                faults=run.injector.tally,
                marks=run.checker.marks,
                digest=world.loop.digest(),
            )
    finally:
        watch_probes(None)
        logging.disable(disabled)


def _judge(world: World, run: QuorumRun) -> list[Violation]:
    checker = run.checker
    try:
        world.run(run.play())
        if not checker.violations and not world.run(run.heal()) and not checker.violations:
            checker.violations.append(_liveness(world, "after healing the quorum does not serve or agree"))
        if not checker.violations:
            turns = world.run(run.idle())
            if turns > IDLE_TURNS_MAX:
                checker.violations.append(_liveness(world, f"the idle quorum uses {turns} turns per second"))
    except SimulationTooLong:
        checker.violations.append(_liveness(world, f"storm: {TURNS_MAX} turns exceeded"))
    # Nothing may keep the programs alive when the world ends.
    run.program.running.clear()
    world.history.close()
    check_history(world.history.rows)
    if not checker.violations:
        checker.check_operations(world.history.operations("append"))
    return checker.violations


def _liveness(world: World, text: str) -> Violation:
    return Violation("liveness", world.loop.time_ns(), "quorum", text)
