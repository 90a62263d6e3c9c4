"""Compute the change of one partition: ISR, eligible leader replicas (ELR, KIP-966), and leader.

The caller sets the new ISR, recovery state or directories and the allowed kind of election; record() computes
the result, or None without a change. Equivalent to Kafka's PartitionChangeBuilder.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from barnabas.base.ids import Uuid
from barnabas.metadata.image import NO_LEADER, PartitionImage
from barnabas.metadata.partition import LEADER_UNCHANGED, RECOVERY_UNCHANGED
from barnabas.protocol.stored.cluster_topics import PartitionChangeRecord

RECOVERED: Final = 0
RECOVERING: Final = 1


class Election(Enum):
    """Electable replicas: any in sync, only the preferred one if in sync, or any if none is in sync."""

    ONLINE = 0
    PREFERRED = 1
    UNCLEAN = 2


@dataclass(slots=True, kw_only=True)
class PartitionChange:
    """`may_lead` tells whether a replica is alive and its directory online."""

    partition: PartitionImage
    topic_id: Uuid
    index: int
    may_lead: Callable[[int], bool]
    min_isr: int
    elr_enabled: bool
    default_directory: Callable[[int], Uuid]
    election: Election = Election.ONLINE
    # None leaves a value unchanged.
    isr: Sequence[int] | None = None
    leader_recovery_state: int | None = None
    directories: dict[int, Uuid] = field(default_factory=dict)
    # Replicas that may have lost unflushed records, so that they are no longer eligible.
    unclean_replicas: frozenset[int] = frozenset()
    _isr: list[int] = field(init=False)
    _elr: list[int] = field(init=False)
    _replicas: list[int] = field(init=False)
    _removing: list[int] = field(init=False)
    _adding: list[int] = field(init=False)

    def record(self) -> PartitionChangeRecord | None:
        before = self.partition
        self._isr = list(before.isr if self.isr is None else self.isr)
        self._elr = list(before.elr)
        self._replicas = list(before.replicas)
        self._removing, self._adding = list(before.removing_replicas), list(before.adding_replicas)
        record = PartitionChangeRecord(topic_id=self.topic_id, partition_id=self.index)
        self._complete_reassignment()
        self._find_eligible()
        self._elect(record)
        if record.leader == LEADER_UNCHANGED and not set(before.replicas) <= set(self._replicas):
            # Bump the leader epoch, so that the next fetch of a removed replica is fenced.
            record.leader = before.leader
        self._set_isr_and_elr(record)
        self._set_assignment(record)
        recovery = self.leader_recovery_state
        if recovery is not None and recovery != before.leader_recovery_state:
            record.leader_recovery_state = recovery
        return None if _is_empty(record) else record

    def _complete_reassignment(self) -> None:
        """Complete a reassignment once all added replicas are in sync.

        If it removes more replicas than it adds, all remaining ones must be in sync: otherwise the partition
        would have too few copies.
        """
        if not self._removing and not self._adding:
            return
        isr = [one for one in self._isr if one not in self._removing]
        replicas = [one for one in self._replicas if one not in self._removing]
        if self._removing and not (isr and replicas):
            return
        needed = replicas if len(self._adding) < len(self._removing) else self._adding
        if {*self._adding, *needed} <= set(isr):
            self._isr, self._replicas = isr, replicas
            self._removing, self._adding = [], []

    def _find_eligible(self) -> None:
        """A replica that leaves an ISR below the minimum has every committed record, so it stays eligible."""
        if not self.elr_enabled:
            return
        if len(self._isr) >= self.min_isr:
            self._elr = []
            return
        candidates = {*self._elr, *self.partition.isr}
        self._elr = sorted(candidates - set(self._isr) - self.unclean_replicas)

    def _elect(self, record: PartitionChangeRecord) -> None:
        leader, unclean = self._choose()
        if leader == self.partition.leader:
            return
        if leader in self._elr:
            self._isr = [leader]
            self._elr.remove(leader)
        record.leader = leader
        if unclean:
            # Records that only the others had are lost, so no other replica is in sync with the new leader.
            record.isr = [leader]
            if self.partition.leader_recovery_state != RECOVERING:
                record.leader_recovery_state = RECOVERING

    def _choose(self) -> tuple[int, bool]:
        """The new leader, or NO_LEADER, and whether the election is unclean."""
        current = self.partition.leader
        if self.election is Election.PREFERRED and self._is_clean(self._replicas[0]):
            return self._replicas[0], False
        if self._is_clean(current):
            return current, False
        for replica in self._replicas:
            if self._is_clean(replica):
                return replica, False
        last_known = self.partition.last_known_elr
        nobody_is_clean = self.elr_enabled and not self._elr and not self._isr
        if nobody_is_clean and len(last_known) == 1 and self.may_lead(last_known[0]):
            # The last leader had every acknowledged record, unless it has lost some since.
            return last_known[0], True
        if self.election is Election.UNCLEAN:
            for replica in self._replicas:
                if self.may_lead(replica):
                    return replica, True
        return NO_LEADER, False

    def _is_clean(self, replica: int) -> bool:
        eligible = replica in self._isr or (not self._isr and replica in self._elr)
        return eligible and self.may_lead(replica)

    def _set_isr_and_elr(self, record: PartitionChangeRecord) -> None:
        before = self.partition
        if record.isr is not None or not self.elr_enabled:
            self._elr = []
        if self._elr != list(before.elr):
            record.eligible_leader_replicas = self._elr
        # Without ELR the last replica stays in the ISR, because nothing else tells who has the records.
        may_be_set = bool(self._isr) or self.elr_enabled
        if record.isr is None and may_be_set and self._isr != list(before.isr):
            record.isr = self._isr
        if not self.elr_enabled:
            return
        if record.leader == NO_LEADER and not before.last_known_elr:
            record.last_known_elr = [before.leader]
        elif record.leader >= 0 and before.last_known_elr:
            record.last_known_elr = []

    def _set_assignment(self, record: PartitionChangeRecord) -> None:
        before = self.partition
        known = {**dict(zip(before.replicas, before.directories, strict=True)), **self.directories}
        directories = [known[one] if one in known else self.default_directory(one) for one in self._replicas]
        if directories != list(before.directories):
            record.directories = directories
        if self._replicas != list(before.replicas):
            record.replicas = self._replicas
        if self._removing != list(before.removing_replicas):
            record.removing_replicas = self._removing
        if self._adding != list(before.adding_replicas):
            record.adding_replicas = self._adding


def _is_empty(record: PartitionChangeRecord) -> bool:
    lists = (
        record.isr,
        record.replicas,
        record.removing_replicas,
        record.adding_replicas,
        record.directories,
        record.eligible_leader_replicas,
        record.last_known_elr,
    )
    unchanged = record.leader == LEADER_UNCHANGED and record.leader_recovery_state == RECOVERY_UNCHANGED
    return unchanged and all(one is None for one in lists)
