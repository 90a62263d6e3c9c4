"""The state of one member of the quorum, and the role changes that any event may cause (pure).

The rules are in electing.py, leading.py and following.py. They change the state and emit effects here;
core.py returns the effects.
"""

from collections.abc import Iterable
from random import Random
from typing import Final

from barnabas.raft.effects import (
    Effect,
    HighWatermarkAdvanced,
    LeaderChanged,
    LostLeadership,
    PersistState,
    SendFetch,
)
from barnabas.raft.facts import Election
from barnabas.raft.log_view import LogView
from barnabas.raft.roles import Follower, Leader, Resigned, Role, Unattached
from barnabas.raft.settings import QuorumSettings


class Member:
    """The state shared by all rules. `now_ms` is the time of the current event."""

    def __init__(
        self,
        *,
        me: int,
        voters: Iterable[int],
        log: LogView,
        election: Election,
        settings: QuorumSettings,
        rng: Random,
    ) -> None:
        self.me: Final = me
        self.voters: Final = frozenset(voters)
        self.others: Final = sorted(self.voters - {me})
        self.majority: Final = len(self.voters) // 2 + 1
        self.log: Final = log
        self.settings: Final = settings
        self.rng: Final = rng
        self.election = election
        self.role: Role = Unattached(None, None)
        # None until a leader has reported it, or we have counted a majority.
        self.high_watermark: int | None = None
        # Elections lost since the last leader.
        self.lost_elections = 0
        self.now_ms = 0
        self.serial = 0
        self._persisted = election
        self._told: tuple[int | None, int] = (None, -1)
        self._effects: list[Effect] = []

    @property
    def is_voter(self) -> bool:
        return self.me in self.voters

    @property
    def epoch(self) -> int:
        return self.election.epoch

    @property
    def leader(self) -> int | None:
        """The leader, if known. After resigning we still remember that we led, but do not report it."""
        return None if isinstance(self.role, Resigned) else self.election.leader

    # Effects

    def emit(self, effect: Effect) -> None:
        self._effects.append(effect)

    def take_effects(self) -> list[Effect]:
        """Return and reset the effects, with PersistState first, because others may report the state."""
        effects, self._effects = self._effects, []
        # Intermediate states within one event were never visible, so only the last one is persisted.
        if self.election != self._persisted:
            self._persisted = self.election
            effects.insert(0, PersistState(self.election))
        leads = (self.leader, self.epoch)
        if leads != self._told:
            self._told = leads
            effects.append(LeaderChanged(*leads))
        return effects

    def advance_high_watermark(self, to: int) -> None:
        if self.high_watermark is None or to > self.high_watermark:
            self.high_watermark = to
            self.emit(HighWatermarkAdvanced(to))

    # Times

    def election_timeout_ms(self) -> int:
        """A random deadline of one to two timeouts, so that two nodes seldom start elections together."""
        timeout = self.settings.election_timeout_ms
        return self.now_ms + timeout + self.rng.randrange(max(1, timeout))

    def request_timeout_ms(self) -> int:
        return self.now_ms + self.settings.request_timeout_ms

    def retry_ms(self) -> int:
        return self.now_ms + self.settings.retry_backoff_ms

    # Role changes

    def become(self, role: Role) -> None:
        if isinstance(self.role, Leader) and not isinstance(role, Leader):
            self.emit(LostLeadership(self.epoch))
        self.role = role

    def become_unattached(self, epoch: int) -> None:
        """Become a node without a known leader. The vote is kept in the same epoch, and free in a new one."""
        assert epoch >= self.epoch, f"epoch {self.epoch} -> {epoch}"
        voted = self.election.voted if epoch == self.epoch else None
        self.become(
            Unattached(
                election_at_ms=self.election_timeout_ms() if self.is_voter else None,
                retry_at_ms=self.now_ms if self.others else None,
            )
        )
        self.election = Election(epoch, None, voted)

    def become_follower(self, leader: int, epoch: int) -> None:
        assert leader != self.me, f"node {self.me} cannot follow itself"
        assert epoch >= self.epoch, f"epoch {self.epoch} -> {epoch}"
        self.become(Follower(leader, fetch_by_ms=self.now_ms + self.settings.fetch_timeout_ms))
        # Drop the vote: with a known leader, no other node gets one in this epoch.
        self.election = Election(epoch, leader, None)
        self.lost_elections = 0
        self.fetch()

    def fetch(self) -> None:
        """Fetch the records after our log end from the leader."""
        role = self.role
        assert isinstance(role, Follower), f"{role} does not fetch"
        # A fetch acknowledges our log to the leader, so it must be synced. If it is not, wait for Flushed.
        role.busy = not self.log_is_flushed
        role.awaiting = None if role.busy else self.send_fetch(role.leader)
        role.retry_at_ms = None if role.busy else self.request_timeout_ms()

    @property
    def log_is_flushed(self) -> bool:
        return self.log.flushed_offset >= self.log.end.offset

    def send_fetch(self, to: int) -> int:
        self.serial += 1
        self.emit(SendFetch(to=to, epoch=self.epoch, end=self.log.end, serial=self.serial))
        return self.serial

    def observe(self, leader: int | None, epoch: int) -> bool:
        """Learn epoch and leader from another node. False if they contradict our knowledge."""
        if leader is not None and leader not in self.voters:
            return False
        if epoch < self.epoch:
            return True
        if epoch > self.epoch:
            if leader is None or leader == self.me:
                # If we led that epoch, we have lost the memory of it.
                self.become_unattached(epoch)
            else:
                self.become_follower(leader, epoch)
            return True
        if leader is None or leader == self.election.leader:
            return True
        if self.election.leader is not None or leader == self.me:
            return False
        self.become_follower(leader, epoch)
        return True
