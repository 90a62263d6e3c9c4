"""How many processors this process may use: what it is bound to, and what its container is limited to."""

import os
from pathlib import Path
from typing import Final

_ROOT: Final = Path("/")
_MEMBERSHIP: Final = "proc/self/cgroup"
_GROUPS: Final = "sys/fs/cgroup"
_UNIFIED: Final = "0::/"


def processors(root: Path = _ROOT) -> float:
    """At least a part of one. A limit of 1.5 is taken as it is: who wants two has not got them."""
    limits = [limit for group in control_groups(root) if (limit := _limit_of(group / "cpu.max")) is not None]
    return min([float(len(os.sched_getaffinity(0))), *limits])


def control_groups(root: Path = _ROOT) -> list[Path]:
    """The control groups of Linux, version 2, that this process is in: its own and those around it."""
    try:
        lines = (root / _MEMBERSHIP).read_text().splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        if not line.startswith(_UNIFIED):
            continue
        groups = root / _GROUPS
        group = groups / line.removeprefix(_UNIFIED)
        for each in (group, *group.parents):
            found.append(each)
            if each == groups:
                break
    return found


def _limit_of(path: Path) -> float | None:
    """`200000 100000` is two processors, `max 100000` is no limit."""
    try:
        quota, period = path.read_text().split()
        return int(quota) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        return None
