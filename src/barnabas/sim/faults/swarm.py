"""Random schedules. Each seed enables a random subset of the kinds of faults, so that they combine freely.

With all kinds in every run the frequent ones hide the rare ones; a run with few kinds reaches states that a
run with all of them does not.
"""

from collections.abc import Callable
from random import Random
from typing import Any, Final

from barnabas.sim.faults.schedule import Rule, Trigger

# The disk operations that fail_disk lets fail.
DISK_OPERATIONS: Final = ("write", "sync", "rename", "sync_directory", "read", "truncate", "create")
REQUESTS: Final = ("vote", "begin", "fetch", "end", "snapshot")


def random_rules(
    rng: Random, *, probes: tuple[str, ...], duration_ms: int, count: int, disk_errors: bool = True
) -> tuple[Rule, ...]:
    """Up to `count` faults within the duration."""
    kinds = [kind for kind in _KINDS if rng.random() < 0.5] or ["kill"]
    if not disk_errors:
        kinds = [kind for kind in kinds if kind != "fail_disk"] or ["kill"]
    lasts_max_ms = rng.choice((200, 2_000, 8_000))
    rules = []
    for _ in range(count):
        kind = rng.choice(kinds)
        role = rng.choice(("leader", "leader", "any", "follower", "observer"))
        if kind in ("power", "kill") and rng.random() < 0.15:
            role = "all"
        when = Trigger(at_ms=rng.randrange(duration_ms))
        if rng.random() < 0.4:
            when = Trigger(
                probe=rng.choice(probes),
                role=rng.choice(("any", "leader", "follower")),
                nth=rng.choice((1, 2, 3, 5, 10, 30)),
            )
            role = rng.choice(("same", role))
        rules.append(
            Rule(
                when=when,
                do=kind,
                role=role,
                for_ms=rng.randrange(1, lasts_max_ms),
                facts=tuple(sorted(_KINDS[kind](rng).items())),
            )
        )
    return tuple(rules)


_KINDS: Final[dict[str, Callable[[Random], dict[str, Any]]]] = {
    "kill": lambda rng: {},
    "power": lambda rng: {},
    "terminate": lambda rng: {},
    "pause": lambda rng: {},
    "suspend": lambda rng: {},
    "isolate": lambda rng: {"direction": rng.choice(("both", "both", "in", "out"))},
    "cut": lambda rng: {"other": "any"},
    "reset": lambda rng: {},
    "delay": lambda rng: {"ms": rng.choice((5, 50, 500))},
    "slow_disk": lambda rng: {"ms": rng.choice((20, 200, 1000))},
    "hang_disk": lambda rng: {},
    "fail_disk": lambda rng: {"operation": rng.choice(DISK_OPERATIONS), "count": rng.choice((1, 1, 5))},
    "full_disk": lambda rng: {},
    "evict": lambda rng: {},
    "drift": lambda rng: {"ppm": rng.choice((-500_000, -500, 500, 1_000_000))},
    "jump": lambda rng: {"by_ms": rng.choice((-3_600_000, -1_000, 1_000, 86_400_000))},
    "hold": lambda rng: {"request": rng.choice(REQUESTS)},
}
