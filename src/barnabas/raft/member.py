"""One member of the quorum: its state, and the changes of role that any event may bring about (pure).

The decisions are in electing.py, leading.py and following.py. They change the state and note effects here;
core.py hands the effects out.
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
    """The state that the rules share. `now_ms` is the time of the event that is being taken in."""

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
        # None until a leader of this run has said it, or we have counted it.
        self.high_watermark: int | None = None
        # Elections that were lost since there was a leader.
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
        """Who leads, as far as is known. That we once led is remembered, but is no news for anybody."""
        return None if isinstance(self.role, Resigned) else self.election.leader

    # Effects

    def emit(self, effect: Effect) -> None:
        self._effects.append(effect)

    def take_effects(self) -> list[Effect]:
        """What is to be done. The state is written first: what follows may tell others about it."""
        effects, self._effects = self._effects, []
        # A role that was lost within one event was never seen by anybody, so only the last state is written.
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
        """Between once and twice the setting, so that two seldom ask at the same moment."""
        timeout = self.settings.election_timeout_ms
        return self.now_ms + timeout + self.rng.randrange(max(1, timeout))

    def request_timeout_ms(self) -> int:
        return self.now_ms + self.settings.request_timeout_ms

    def retry_ms(self) -> int:
        return self.now_ms + self.settings.retry_backoff_ms

    # Roles that a look at another node's epoch can lead to

    def become(self, role: Role) -> None:
        if isinstance(self.role, Leader) and not isinstance(role, Leader):
            self.emit(LostLeadership(self.epoch))
        self.role = role

    def become_unattached(self, epoch: int) -> None:
        """Nobody is known to lead. In a new epoch there is a vote to give; in the same one it stays given."""
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
        # The vote is of no use any more: while a leader of the epoch is known, no other gets one.
        self.election = Election(epoch, leader, None)
        self.lost_elections = 0
        self.fetch()

    def fetch(self) -> None:
        """Ask the leader for what comes after our log."""
        role = self.role
        assert isinstance(role, Follower), f"{role} does not fetch"
        # The leader counts on what a fetch says that we have. If it is not on the disk yet, Flushed will
        # come.
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
        """Take in what another node says about epoch and leader. False if it contradicts what is known."""
        if leader is not None and leader not in self.voters:
            return False
        if epoch < self.epoch:
            return True
        if epoch > self.epoch:
            if leader is None or leader == self.me:
                # If we led in that epoch, we do not know about it any more.
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
