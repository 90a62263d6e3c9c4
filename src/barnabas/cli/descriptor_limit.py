"""The limit on file descriptors of this process, raised as far as the system lets us."""

import logging
import resource
from typing import Final

from barnabas.server.descriptors import DescriptorBudget, divide

logger = logging.getLogger("barnabas")

# Taken for "no limit", which Linux does not have and macOS says although it has one.
UNLIMITED: Final = 1 << 20
# macOS gives a process no more than this, whatever its limits say (OPEN_MAX).
MODEST: Final = 10_240
# With fewer there is little room for clients beside logs and the reserve.
FEW: Final = 1024


def budget() -> DescriptorBudget:
    """Raise the soft limit to the hard limit, and divide what there is."""
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
                # Above the hard limit, or more than the system gives whatever its limits say.
                continue
            soft = wanted
    return UNLIMITED if soft == resource.RLIM_INFINITY else soft
