"""Regular expression subscriptions: RE2 syntax, matched against whole topic names in linear time.

Kafka resolves them in an executor and applies the result later. Here a member gets its partitions in the
heartbeat with which it joins. Internal topics are matched like any other. Results come from patterns.py.
"""

from collections.abc import Iterator
from typing import Final

from barnabas.coordinators.group.consumer.subscriptions import Subscriptions

# Minimum time between two refreshes of an expression, even if topics are created.
REFRESH_INTERVAL_MS_MIN: Final = 10_000
# Limits of expressions, and of topics in them, refreshed in one heartbeat. Later heartbeats refresh the
# others.
REFRESHED_AT_ONCE: Final = 16
_TOPICS_AT_ONCE: Final = 2_000


def due_for_refresh(
    subscriptions: Subscriptions, *, new_since: int, now_ms: int, interval_ms: int
) -> Iterator[str]:
    """A few expressions, oldest first, that were resolved before a topic was created or too long ago."""
    topics = 0
    # Ordered by time of resolution.
    for count, (regex, last) in enumerate(subscriptions.resolved.items()):
        age_ms = now_ms - last.time_ms
        is_due = age_ms > REFRESH_INTERVAL_MS_MIN and (last.version < new_since or age_ms > interval_ms)
        if not is_due or count == REFRESHED_AT_ONCE or topics > _TOPICS_AT_ONCE:
            return
        topics += len(last.topics)
        yield regex
