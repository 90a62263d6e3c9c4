"""Carry out a schedule on the nodes of a world, and end all faults when it is time to heal."""

from collections.abc import Callable
from random import Random
from typing import Any, Final, Protocol

from barnabas.sim.faults.schedule import Rule
from barnabas.sim.node import Node
from barnabas.sim.world import World

SLOW_MS: Final = 0.01, 1.0


class Cluster(Protocol):
    """The nodes that faults hit."""

    def nodes(self) -> list[Node]:
        """The nodes in a fixed order."""

    def leader(self) -> Node | None:
        """The node that leads, as far as the run knows."""

    def voters(self) -> list[Node]:
        """The nodes that can lead."""

    def boot(self, node: Node) -> None:
        """Start a node's program."""


class Injector:
    """Executes rules. `tally` has the number of faults by action that have hit a node."""

    def __init__(self, world: World, cluster: Cluster, rules: tuple[Rule, ...], rng: Random) -> None:
        self.tally: dict[str, int] = {}
        self._world = world
        self._cluster = cluster
        self._rng = rng
        self._waiting: dict[str, list[list[Any]]] = {}
        self._is_over = False
        for rule in rules:
            if rule.when.at_ms is not None:
                world.loop.call_outside(rule.when.at_ms / 1000, self._fire, rule, None)
            else:
                assert rule.when.probe is not None
                self._waiting.setdefault(rule.when.probe, []).append([rule, rule.when.nth])

    def saw(self, node: Node, name: str) -> None:
        """A node has reported a probe."""
        if self._is_over:
            return
        for entry in self._waiting.get(name, ()):
            rule, left = entry
            if left > 0 and self._is(node, rule.when.role):
                entry[1] -= 1
                if left == 1:
                    self._fire(rule, node)

    def end(self) -> None:
        """End all faults: every node runs, the network and the disks are fast and sound."""
        self._is_over = True
        world = self._world
        for node in self._cluster.nodes():
            if node.state == "paused":
                node.resume()
            node.disk.heal()
            node.drift(0)
            if node.process is None:
                self._cluster.boot(node)
            self._set_disk_speed(node, SLOW_MS)
        # Connections that wait for a retransmission would add minutes.
        world.network.heal()
        names = world.network.hosts.names()
        for position, one in enumerate(names):
            for other in names[position + 1 :]:
                world.network.reset(one, other)

    def _is(self, node: Node, role: str) -> bool:
        leader = self._cluster.leader()
        match role:
            case "any" | "all":
                return True
            case "leader":
                return node is leader
            case "follower":
                return node is not leader and node in self._cluster.voters()
            case "observer":
                return node not in self._cluster.voters()
        return node.name == role

    def _targets(self, role: str, same: Node | None) -> list[Node]:
        if role == "same":
            return [] if same is None else [same]
        nodes = [node for node in self._cluster.nodes() if self._is(node, role)]
        return nodes if role == "all" or not nodes else [self._rng.choice(nodes)]

    def _fire(self, rule: Rule, same: Node | None) -> None:
        if self._is_over:
            return
        for node in self._targets(rule.role, same):
            end = self._hit(rule, node)
            if end is None:
                continue
            self.tally[rule.do] = self.tally.get(rule.do, 0) + 1
            self._world.history.event(node.name, "fault", rule=str(rule))
            if rule.for_ms is not None:
                self._world.loop.call_outside(rule.for_ms / 1000, self._end_one, end)

    def _end_one(self, end: Callable[[], None]) -> None:
        if not self._is_over:
            end()

    def _hit(self, rule: Rule, node: Node) -> Callable[[], None] | None:
        """Cause a fault. Return how to end it; None if it cannot hit the node now."""
        network, names = self._world.network, self._world.network.hosts.names()
        match rule.do:
            case "power":
                if not node.has_power:
                    return None
                node.power_off()
                return lambda: self._boot(node)
            case "evict":
                node.disk.cool()
                return _nothing
            case "jump":
                node.clock.jump(rule.fact("by_ms"))
                return _nothing
            case "drift":
                node.drift(rule.fact("ppm"))
                return lambda: node.drift(0)
            case "fail_disk":
                kinds: Any = {rule.fact("operation")}
                node.disk.fail("/data", kinds, count=rule.fact("count"))
                return lambda: self._boot(node)
            case "full_disk":
                node.disk.capacity = node.disk.used
                return lambda: self._empty(node)
            case "isolate" | "part":
                direction = rule.fact("direction")
                # A node that parts from the cluster keeps its clients.
                others = names if rule.do == "isolate" else [one.name for one in self._cluster.nodes()]
                for other in others:
                    if other != node.name and other != "localhost":
                        if direction in ("both", "out"):
                            network.cut(node.name, other, one_way=True)
                        if direction in ("both", "in"):
                            network.cut(other, node.name, one_way=True)
                return lambda: self._join(node)
            case "cut":
                peers = [one for one in self._targets(rule.fact("other"), None) if one is not node]
                if not peers:
                    return None
                network.cut(node.name, peers[0].name)
                return lambda: network.heal(node.name, peers[0].name)
            case "delay":
                for other in names:
                    if other != node.name:
                        network.delay(node.name, other, (0.0, rule.fact("ms")))
                return lambda: self._join(node)
        return self._hit_process(rule, node)

    def _hit_process(self, rule: Rule, node: Node) -> Callable[[], None] | None:
        if node.process is None or (node.state == "paused" and rule.do != "kill"):
            return None
        match rule.do:
            case "kill":
                node.kill()
                return lambda: self._boot(node)
            case "terminate":
                node.terminate()
                return lambda: self._boot(node)
            case "pause" | "suspend":
                process = node.process
                node.pause(suspended=rule.do == "suspend")
                return lambda: node.resume() if node.process is process and node.state == "paused" else None
            case "reset":
                for other in self._world.network.hosts.names():
                    if other != node.name:
                        self._world.network.reset(node.name, other)
                return _nothing
            case "slow_disk":
                self._set_disk_speed(node, (0.01, rule.fact("ms")))
                return lambda: self._set_disk_speed(node, SLOW_MS)
            case "hang_disk":
                executor = node.executor
                executor.hold()
                return executor.release
            case "hold":
                self._world.holds.add(rule.fact("request"), node.name)
                return lambda: self._world.holds.remove(rule.fact("request"), node.name)
        raise AssertionError(f"no such action: {rule.do}")

    def _boot(self, node: Node) -> None:
        if node.process is None:
            self._cluster.boot(node)

    def _empty(self, node: Node) -> None:
        node.disk.capacity = None
        self._boot(node)

    def _join(self, node: Node) -> None:
        for other in self._world.network.hosts.names():
            if other != node.name and self._world.is_on(other):
                self._world.network.heal(node.name, other)

    def _set_disk_speed(self, node: Node, bounds: tuple[float, float]) -> None:
        if node.process is not None:
            node.executor.delay_ms = bounds
            node.executor.release()


def _nothing() -> None:
    pass
