"""The memory of this process: its limit, and how the allocator, the garbage collector and dicts treat it.

memory_bytes() reads the limits of the machine and of the container. The settings of the allocator and the
collector are global to the process, so only our own programs make them, never an import. trimming.py returns
memory to the system.
"""

import ctypes
import gc
import sys
from pathlib import Path
from typing import Any, Final

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


# The allocator

_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3

# How much free memory a process may keep, and the largest block that is taken from it: glibc's maximum.
KEPT_BYTES_MAX: Final = 128 * 1024 * 1024
BLOCK_BYTES_MAX: Final = 32 * 1024 * 1024


def keep_freed_memory() -> bool:
    """Keep freed memory for the next call; return False if the C library has no such setting.

    glibc returns the top of its heap as soon as 128 kB of it are free, and takes larger blocks straight from
    the kernel. Code that allocates blocks of a megabyte, as ours does for batches, then pays for every page
    again at every call: encoding columns takes 262 ns a record, and 73 ns with memory kept.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    trim = mallopt(_M_TRIM_THRESHOLD, KEPT_BYTES_MAX)
    blocks = mallopt(_M_MMAP_THRESHOLD, BLOCK_BYTES_MAX)
    return bool(trim and blocks)


# The garbage collector: the objects that a broker holds (modules, settings, logs, the image) stay. Traversing
# all of them blocks the loop: for 0.3 s with 20,000 topics. The objects of requests are freed by reference
# counting. So the collector looks only at new objects, at most twice. Those that survive are frozen until
# collect_all().

# Net number of new objects that starts a collection of the youngest generation.
YOUNG_MAX: Final = 20_000
# Collections of the youngest generation before those that survived are collected once more.
YOUNG_TIMES: Final = 2


def freeze_existing_objects() -> None:
    """Exclude all existing objects from collections, and collect new ones less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_MAX, YOUNG_TIMES, gc.get_threshold()[2])
    gc.callbacks.append(_freeze_survivors)


def _freeze_survivors(phase: str, info: dict[str, int]) -> None:
    if phase == "stop" and info["generation"] > 0:
        gc.freeze()


def collect_all() -> None:
    """Collect everything once. This blocks the loop for about 0.3 us per object."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()


# Dicts

# A dict takes at most 100 bytes for an entry, unless entries were removed.
_BYTES_PER_ENTRY_MAX: Final = 512
_ENTRIES_MIN: Final = 16


def shrink(table: dict[Any, Any]) -> None:
    """Rebuild a dict that has far more slots than entries; call this when an entry has been removed.

    A dict never frees slots by itself: 100,000 deleted groups left 5 MB of them. A rebuild copies fewer
    entries than were removed before it, so its cost is amortized.
    """
    if sys.getsizeof(table) > _BYTES_PER_ENTRY_MAX * (len(table) + _ENTRIES_MIN):
        entries = list(table.items())
        table.clear()
        table.update(entries)
