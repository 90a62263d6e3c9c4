"""The controller's periodic work: what is due, and when the next work is due.

Pure: the time is a parameter. Fencing is due when a session times out. A NoOpRecord is written at intervals,
so that readers of the log can tell an idle cluster from a dead one.
"""

from typing import Final

from barnabas.controller.decision import Decision
from barnabas.controller.elections import ELECTIONS_AT_ONCE_MAX, preferred_elections, unclean_elections
from barnabas.controller.facts import ControllerSettings, Facts
from barnabas.controller.heartbeats import fence
from barnabas.metadata.image import MetadataImage
from barnabas.protocol.stored.cluster_nodes import NoOpRecord
from barnabas.protocol.stored.cluster_topics import PartitionChangeRecord

_NEVER: Final = 2**63 - 1


class Periodic:
    """The due times, created when the controller becomes active."""

    def __init__(self, settings: ControllerSettings, now_ms: int) -> None:
        self._settings: Final = settings
        self._no_op_ms = now_ms + settings.max_idle_interval_ms if settings.max_idle_interval_ms else _NEVER
        rebalances = settings.auto_leader_rebalance
        self._balance_ms = now_ms + settings.leader_imbalance_check_ms if rebalances else _NEVER
        self._unclean_ms = now_ms + settings.unclean_election_check_ms

    def next_ms(self, facts: Facts) -> int:
        stale_ms = facts.sessions.next_stale_ms()
        return min(
            _NEVER if stale_ms is None else stale_ms, self._no_op_ms, self._balance_ms, self._unclean_ms
        )

    def due(self, image: MetadataImage, facts: Facts) -> Decision | None:
        """The next decision that is due; call again until None. Each call reschedules what it checked."""
        now_ms = facts.now_ms
        stale = facts.sessions.stale(now_ms)
        if stale is not None:
            # One broker at a time, so that the next decision is based on the result.
            return fence(image, image.brokers[stale], facts)
        if now_ms >= self._no_op_ms:
            self._no_op_ms = now_ms + self._settings.max_idle_interval_ms
            return Decision((NoOpRecord(),))
        if now_ms >= self._balance_ms:
            records = preferred_elections(image, self._settings)
            self._balance_ms = self._next_check_ms(records, self._settings.leader_imbalance_check_ms, now_ms)
            if records:
                return Decision(tuple(records), atomic=False)
        if now_ms >= self._unclean_ms:
            records = unclean_elections(image, self._settings)
            self._unclean_ms = self._next_check_ms(records, self._settings.unclean_election_check_ms, now_ms)
            if records:
                return Decision(tuple(records), atomic=False)
        return None

    def _next_check_ms(self, records: list[PartitionChangeRecord], interval_ms: int, now_ms: int) -> int:
        """The next due time: at once if there may be more work."""
        return now_ms if len(records) >= ELECTIONS_AT_ONCE_MAX else now_ms + interval_ms
