"""How much memory this process may use: the machine's memory, and the limits of its container."""

from pathlib import Path
from typing import Final

from barnabas.base.processors import control_groups

# Assumed if the system does not report it.
UNKNOWN_BYTES: Final = 4 << 30
_ROOT: Final = Path("/")
_INFO: Final = "proc/meminfo"
_TOTAL: Final = "MemTotal:"


def memory_bytes(root: Path = _ROOT) -> int:
    """The smallest of the limits."""
    limits = [limit for group in control_groups(root) if (limit := _limit_of(group / "memory.max"))]
    return min([_total(root) or UNKNOWN_BYTES, *limits])


def _total(root: Path) -> int:
    """`MemTotal:  24684032 kB`, or 0 if it is not known."""
    try:
        for line in (root / _INFO).read_text().splitlines():
            if line.startswith(_TOTAL):
                return int(line.split()[1]) << 10
    except (OSError, ValueError, IndexError):
        pass
    return 0


def _limit_of(path: Path) -> int:
    """`536870912`, or `max` for no limit, which is 0 here."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return 0
