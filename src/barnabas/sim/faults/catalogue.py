"""Schedules with a real bug of some system behind each, aimed by role and state.

Most partition failures need one isolated node and little luck, so these complement random faults. The random
numbers only vary how often and how long.
"""

from collections.abc import Callable
from random import Random
from typing import Any, Final

from barnabas.sim.faults.schedule import Rule, Trigger


def _at(at_ms: int, do: str, role: str, for_ms: int | None, **facts: Any) -> Rule:
    return Rule(
        when=Trigger(at_ms=at_ms), do=do, role=role, for_ms=for_ms, facts=tuple(sorted(facts.items()))
    )


def _when(probe: str, of: str, nth: int, do: str, role: str, for_ms: int, **facts: Any) -> Rule:
    return Rule(
        when=Trigger(probe=f"raft.{probe}", role=of, nth=nth),
        do=do,
        role=role,
        for_ms=for_ms,
        facts=tuple(sorted(facts.items())),
    )


def leader_without_voters(rng: Random) -> list[Rule]:
    """The leader is cut off from the voters, its clients stay attached. (KAFKA-15489)"""
    return [
        _at(start, "part", "leader", rng.randrange(2_000, 8_000), direction=rng.choice(("both", "in", "out")))
        for start in (1_500, rng.randrange(4_000, 8_000))
    ]


def power_loss_after_a_promise(rng: Random) -> list[Rule]:
    """A node loses power right after a vote or an acknowledgement has left. (KAFKA-10533, KAFKA-10527)"""
    promises = ("VoteAnswer", "SendFetch", "BecameLeader", "AppendLeaderChange", "HighWatermarkAdvanced")
    return [
        _when(
            rng.choice(promises), "any", rng.choice((1, 2, 3, 7, 20)), "power", "same", rng.randrange(10, 800)
        )
        for _ in range(4)
    ]


def leaders_that_die_young(rng: Random) -> list[Rule]:
    """A new leader reaches a majority with old records and dies before its own. (KAFKA-12619)"""
    return [
        _when("BecameLeader", "any", nth, rng.choice(("kill", "power")), "same", rng.randrange(200, 2_000))
        for nth in (2, 3, 4)
    ] + [_at(1_500, "kill", "leader", 500), _at(2_500, "slow_disk", "follower", 4_000, ms=200)]


def deaf_follower(rng: Random) -> list[Rule]:
    """One follower does not hear the leader, the others do, so that it starts elections for ever."""
    return [_at(rng.randrange(1_000, 3_000), "cut", "follower", None, other="leader")]


def snapshots_in_trouble(rng: Random) -> list[Rule]:
    """A snapshot is installed during a truncation, and the next one follows. (KAFKA-14618, KAFKA-14238)"""
    return [
        _at(1_000, "kill", "follower", rng.randrange(2_000, 4_000)),
        _when("InstallSnapshot", "any", 1, rng.choice(("reset", "kill", "power")), "same", 300),
        _when("InstallSnapshot", "any", 2, "hold", "same", rng.randrange(500, 3_000), request="snapshot"),
        _when("InstallSnapshot", "any", 3, "kill", "leader", 1_000),
    ]


def sleeping_leader(rng: Random) -> list[Rule]:
    """A leader stands still for longer than an election takes, then goes on. (etcd#20418, etcd#15247)"""
    return [
        _at(start, rng.choice(("pause", "suspend")), "leader", rng.randrange(1_500, 4_000))
        for start in (1_500, rng.randrange(6_000, 9_000))
    ]


def wrong_clocks(rng: Random) -> list[Rule]:
    """Dates jump and clocks drift while leaders change. (KAFKA-5415)"""
    return [
        _at(500, "jump", "any", None, by_ms=rng.choice((-3_600_000, 86_400_000))),
        _at(1_000, "drift", "follower", None, ppm=rng.choice((-500_000, 1_000_000))),
        _when("BecameLeader", "any", 1, "jump", "same", 1, by_ms=-60_000),
        _at(2_000, "kill", "leader", 1_000),
    ]


def power_failure_of_the_room(rng: Random) -> list[Rule]:
    """All nodes lose power at once, twice. (KIP-966)"""
    return [
        _at(start, "power", "all", rng.randrange(50, 800)) for start in (rng.randrange(500, 2_500), 3_500)
    ]


def crashes_during_recovery(rng: Random) -> list[Rule]:
    """A node dies again while it starts. (KAFKA-15375)"""
    start = rng.randrange(800, 2_000)
    return [
        _at(start + 60 * number, rng.choice(("kill", "power")), "n1", rng.randrange(5, 50))
        for number in range(6)
    ]


def disk_errors_of_one_node(rng: Random) -> list[Rule]:
    """The disk of one node is full or fails during an append, the others are fine. (KAFKA-10778)"""
    role = rng.choice(("leader", "follower"))
    operation = rng.choice(("write", "sync"))
    return [
        _when(
            "HighWatermarkAdvanced",
            role,
            rng.choice((2, 9)),
            "fail_disk",
            "same",
            500,
            operation=operation,
            count=rng.choice((1, 4)),
        ),
        _at(rng.randrange(2_000, 4_000), "full_disk", role, rng.randrange(200, 2_000)),
    ]


def power_loss_around_renames(rng: Random) -> list[Rule]:
    """Quorum-state is renamed, then the power fails. (KAFKA-16541)"""
    return [
        _when("PersistState", "any", nth, "power", "same", rng.randrange(20, 400)) for nth in (1, 3, 4, 6, 9)
    ]


CATALOGUE: Final[dict[str, Callable[[Random], list[Rule]]]] = {
    schedule.__name__: schedule
    for schedule in (
        leader_without_voters,
        power_loss_after_a_promise,
        leaders_that_die_young,
        deaf_follower,
        snapshots_in_trouble,
        sleeping_leader,
        wrong_clocks,
        power_failure_of_the_room,
        crashes_during_recovery,
        disk_errors_of_one_node,
        power_loss_around_renames,
    )
}
