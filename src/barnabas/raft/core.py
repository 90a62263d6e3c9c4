"""The quorum's rules as a state machine (pure): an event and the time in, effects out.

An object is one member, voter or observer. It reads no clock, does no IO and uses an injected random number
generator, so the same code runs in the broker, in the simulator and in the property tests.
"""

from collections.abc import Iterable
from random import Random
from typing import Final, assert_never

from barnabas.raft.effects import Effect
from barnabas.raft.electing import become_prospective, on_vote_answered, on_vote_requested, tick_election
from barnabas.raft.events import (
    BeginEpochAnswered,
    BeginEpochRequested,
    EndEpochAnswered,
    EndEpochRequested,
    Event,
    FetchAnswered,
    FetchRequested,
    Flushed,
    HeardFrom,
    ResignRequested,
    SnapshotInstalled,
    SnapshotRequested,
    Tick,
    Truncated,
    Unanswered,
    VoteAnswered,
    VoteRequested,
)
from barnabas.raft.facts import Election, LeaderAndEpoch
from barnabas.raft.following import (
    is_installing,
    on_begin_requested,
    on_end_requested,
    on_fetch_answered,
    on_installed,
    on_log_changed,
    on_unanswered,
    tick_follower,
    tick_unattached,
)
from barnabas.raft.leading import (
    on_begin_answered,
    on_end_answered,
    on_fetch_requested,
    on_flushed,
    on_snapshot_requested,
    resign,
    tick_leader,
    tick_resigned,
)
from barnabas.raft.log_view import LogView
from barnabas.raft.member import Member
from barnabas.raft.roles import Candidate, Follower, Leader, Prospective, Resigned, Role, Unattached
from barnabas.raft.settings import QuorumSettings


class RaftCore:
    """A member of the quorum. Call start() first; then feed events in any order."""

    def __init__(
        self,
        *,
        me: int,
        voters: Iterable[int],
        log: LogView,
        election: Election | None,
        settings: QuorumSettings,
        rng: Random,
    ) -> None:
        known = election or Election()
        if known.epoch < log.end.epoch:
            # The quorum-state file was lost or is outdated; the log has a newer epoch.
            known = Election(log.end.epoch)
        self._member: Final = Member(
            me=me, voters=voters, log=log, election=known, settings=settings, rng=rng
        )

    @property
    def role(self) -> Role:
        return self._member.role

    @property
    def election(self) -> Election:
        return self._member.election

    @property
    def leader(self) -> LeaderAndEpoch:
        return LeaderAndEpoch(self._member.leader, self._member.epoch)

    @property
    def high_watermark(self) -> int | None:
        return self._member.high_watermark

    @property
    def deadline_ms(self) -> int | None:
        """When a Tick is due; None without a timer."""
        return min((at for at in self._member.role.deadlines() if at is not None), default=None)

    def is_installing(self, serial: int) -> bool:
        """Whether this snapshot is still wanted. If not, the log has advanced and must not be replaced."""
        return is_installing(self._member, serial)

    def start(self, now_ms: int) -> list[Effect]:
        """Resume the role from before the restart. A leader resigns, as it may have lost unsynced records."""
        member = self._member
        member.now_ms = now_ms
        leader = member.election.leader
        if leader == member.me:
            # We must not vote for another node in this epoch, nor write records that differ from lost ones.
            member.become(Resigned(member.election_timeout_ms()))
        elif leader is not None and leader in member.voters:
            member.become_follower(leader, member.epoch)
        else:
            member.become_unattached(member.epoch)
        if member.voters == {member.me}:
            # The only voter need not wait for an election timeout.
            become_prospective(member)
        return member.take_effects()

    def step(self, event: Event, now_ms: int) -> list[Effect]:
        """Process one event. Execute its effects in order before the next event."""
        member = self._member
        assert now_ms >= member.now_ms, f"clock went back from {member.now_ms} to {now_ms}"
        member.now_ms = now_ms
        self._take(event)
        return member.take_effects()

    def _take(self, event: Event) -> None:
        member = self._member
        match event:
            case Tick():
                self._tick()
            case VoteRequested():
                member.emit(on_vote_requested(member, event))
            case VoteAnswered():
                on_vote_answered(member, event)
            case BeginEpochRequested():
                member.emit(on_begin_requested(member, event))
            case BeginEpochAnswered():
                on_begin_answered(member, event)
            case EndEpochRequested():
                member.emit(on_end_requested(member, event))
            case EndEpochAnswered():
                on_end_answered(member, event)
            case FetchRequested():
                member.emit(on_fetch_requested(member, event))
            case SnapshotRequested():
                member.emit(on_snapshot_requested(member, event))
            case FetchAnswered():
                on_fetch_answered(member, event)
            case Unanswered(peer) | HeardFrom(peer):
                self._on_peer(event, peer)
            case Flushed(upto):
                self._on_flushed(upto)
            case Truncated():
                on_log_changed(member)
            case SnapshotInstalled(serial):
                on_installed(member, serial)
            case ResignRequested():
                if isinstance(member.role, Leader):
                    resign(member, member.role)
            case _:
                assert_never(event)

    def _tick(self) -> None:
        member, role = self._member, self._member.role
        match role:
            case Unattached():
                tick_unattached(member, role)
            case Follower():
                tick_follower(member, role)
            case Prospective() | Candidate():
                tick_election(member, role)
            case Leader():
                tick_leader(member, role)
            case Resigned():
                tick_resigned(member, role)
            case _:
                assert_never(role)

    def _on_peer(self, event: Unanswered | HeardFrom, peer: int) -> None:
        member, role = self._member, self._member.role
        if isinstance(event, Unanswered):
            on_unanswered(member, peer)
        elif isinstance(role, Follower) and peer == role.leader:
            role.fetch_by_ms = member.now_ms + member.settings.fetch_timeout_ms

    def _on_flushed(self, upto: int) -> None:
        member, role = self._member, self._member.role
        if isinstance(role, Leader):
            on_flushed(member, role, upto)
        else:
            on_log_changed(member)
