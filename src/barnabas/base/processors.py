"""How many CPUs this process may use: its CPU affinity, and the limits of its container."""

import os
from pathlib import Path
from typing import Final

_ROOT: Final = Path("/")
_MEMBERSHIP: Final = "proc/self/cgroup"
_GROUPS: Final = "sys/fs/cgroup"
_UNIFIED: Final = "0::/"


def processors(root: Path = _ROOT) -> float:
    """The number of CPUs, possibly a fraction: a limit of 1.5 is not rounded up to 2."""
    limits = [limit for group in control_groups(root) if (limit := _limit_of(group / "cpu.max")) is not None]
    return min([float(len(os.sched_getaffinity(0))), *limits])


def control_groups(root: Path = _ROOT) -> list[Path]:
    """The Linux control groups (version 2) of this process: its own and the enclosing ones."""
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
    """`200000 100000` is two CPUs, `max 100000` is no limit."""
    try:
        quota, period = path.read_text().split()
        return int(quota) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        return None
