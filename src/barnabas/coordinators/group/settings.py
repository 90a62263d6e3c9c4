"""The group coordinator's settings: those of the broker, and overrides of single groups."""

from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Final

from barnabas.base.values import value

_INT_MAX: Final = 2**31 - 1


@value(kw_only=True)
class GroupTimes:
    """Intervals and timeouts that a single group may override (KIP-848 groups only)."""

    heartbeat_interval_ms: int = 5_000
    session_timeout_ms: int = 45_000
    assignment_interval_ms: int = 1_000


@value(kw_only=True)
class GroupSettings:
    """Replaced as a whole when a setting changes. Times are in milliseconds."""

    # Classic groups
    initial_rebalance_delay_ms: int = 3_000
    session_timeout_ms_min: int = 6_000
    session_timeout_ms_max: int = 1_800_000
    classic_size_max: int = _INT_MAX
    # Session timeout of a member in its first join, which sends no heartbeats yet. Fixed in Kafka.
    new_member_join_timeout_ms: int = 300_000
    # Consumer groups
    assignors: tuple[str, ...] = ("uniform", "range")
    consumer_size_max: int = _INT_MAX
    # disabled, downgrade, upgrade or bidirectional
    migration: str = "bidirectional"
    regex_refresh_interval_ms: int = 600_000
    times: GroupTimes = GroupTimes()
    times_of_groups: Mapping[str, GroupTimes] = field(default_factory=lambda: MappingProxyType({}))
    # Offsets
    offset_metadata_bytes_max: int = 4_096
    offsets_retention_ms: int = 10_080 * 60_000
    offsets_retention_check_interval_ms: int = 600_000

    def times_of(self, group_id: str) -> GroupTimes:
        return self.times_of_groups.get(group_id, self.times)

    @property
    def upgrades(self) -> bool:
        return self.migration in ("upgrade", "bidirectional")

    @property
    def downgrades(self) -> bool:
        return self.migration in ("downgrade", "bidirectional")
