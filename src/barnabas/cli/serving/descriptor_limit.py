"""Raise the file descriptor limit of this process as far as the system allows."""

import logging
import resource
from typing import Final

from barnabas.server.ports import DescriptorBudget, divide

logger = logging.getLogger("barnabas")

# Stands for RLIM_INFINITY: Linux has no such limit, and macOS reports it although it has one.
UNLIMITED: Final = 1 << 20
# macOS gives a process at most this many descriptors, whatever its limits say (OPEN_MAX).
MODEST: Final = 10_240
# With fewer descriptors, logs and the reserve leave little for clients.
FEW: Final = 1024


def budget() -> DescriptorBudget:
    """Raise the soft limit to the hard limit, and divide it among logs and connections."""
    return divide(_raised())


def report(found: DescriptorBudget) -> None:
    logger.info(
        "file descriptors divided limit=%d logs=%d connections=%d reserve=%d",
        found.total,
        found.logs,
        found.connections,
        found.reserve,
    )
    if found.total < FEW:
        logger.warning("file descriptor limit is low limit=%d; raise it with ulimit -n", found.total)


def _raised() -> int:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for wanted in (hard, UNLIMITED, MODEST):
        if soft != resource.RLIM_INFINITY and (wanted == resource.RLIM_INFINITY or wanted > soft):
            try:
                resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            except (OSError, ValueError):
                # Above the hard limit, or above the limit of the system.
                continue
            soft = wanted
    return UNLIMITED if soft == resource.RLIM_INFINITY else soft
