"""Subscriptions by regular expression: RE2 syntax, matched against whole topic names, in linear time.

Kafka has an executor resolve them and takes the result in later. Here a member gets its partitions with the
heartbeat in which it joins. Internal topics are matched like any other. Results come from patterns.py.
"""

from collections.abc import Iterator
from typing import Final

from barnabas.coordinators.group.consumer.subscriptions import Subscriptions

# What was resolved is not looked at again before this time has passed, whatever topics are made.
REFRESH_INTERVAL_MS_MIN: Final = 10_000
# So many expressions, and about so many topics in them, are resolved again with one heartbeat. The next
# heartbeat does the others.
REFRESHED_AT_ONCE: Final = 16
_TOPICS_AT_ONCE: Final = 2_000


def due_for_refresh(
    subscriptions: Subscriptions, *, new_since: int, now_ms: int, interval_ms: int
) -> Iterator[str]:
    """The expressions that were resolved before topics were made, or long ago: the oldest, and a few."""
    topics = 0
    # Resolved in this order.
    for count, (regex, last) in enumerate(subscriptions.resolved.items()):
        age_ms = now_ms - last.time_ms
        is_due = age_ms > REFRESH_INTERVAL_MS_MIN and (last.version < new_since or age_ms > interval_ms)
        if not is_due or count == REFRESHED_AT_ONCE or topics > _TOPICS_AT_ONCE:
            return
        topics += len(last.topics)
        yield regex
