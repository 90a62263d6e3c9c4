"""The rules of a leader (pure): count replicas, announce itself, and resign without a majority."""

from barnabas.protocol.error_codes import ErrorCode
from barnabas.raft.effects import (
    AppendLeaderChange,
    BecameLeader,
    EpochAnswer,
    FetchAnswer,
    SendBeginEpoch,
    SendEndEpoch,
)
from barnabas.raft.events import (
    BeginEpochAnswered,
    EndEpochAnswered,
    FetchRequested,
    SnapshotRequested,
)
from barnabas.raft.facts import Election, OffsetAndEpoch
from barnabas.raft.log_view import check_fetch
from barnabas.raft.member import Member
from barnabas.raft.replicas import Replicas
from barnabas.raft.roles import Leader, Resigned


def become_leader(member: Member, granting: set[int]) -> None:
    """A majority has voted for us in this epoch."""
    start = member.log.end.offset
    role = Leader(
        epoch_start=start,
        replicas=Replicas(member.me, member.voters),
        check_quorum_at_ms=_check_quorum_at(member),
        begin_at_ms=member.now_ms if member.others else None,
        acknowledged={member.me},
    )
    role.replicas.get(member.me).end_offset = member.log.flushed_offset
    member.become(role)
    member.election = Election(member.epoch, member.me, None)
    member.lost_elections = 0
    member.emit(BecameLeader(epoch=member.epoch, start=start))
    member.emit(AppendLeaderChange(epoch=member.epoch, granting=tuple(sorted(granting))))
    tick_leader(member, role)


def tick_leader(member: Member, role: Leader) -> None:
    if role.check_quorum_at_ms is not None and member.now_ms >= role.check_quorum_at_ms:
        # No majority has fetched, so another leader may have been elected. (KIP-835)
        resign(member, role)
        return
    if role.begin_at_ms is not None and member.now_ms >= role.begin_at_ms:
        silent = [voter for voter in member.others if voter not in role.acknowledged]
        for voter in silent:
            member.emit(SendBeginEpoch(to=voter, epoch=member.epoch))
        # Half of the timeout after which a follower starts an election.
        role.begin_at_ms = member.now_ms + member.settings.fetch_timeout_ms // 2 if silent else None


def on_begin_answered(member: Member, event: BeginEpochAnswered) -> None:
    member.observe(event.leader, event.epoch)
    role = member.role
    if isinstance(role, Leader) and event.asked_epoch == member.epoch and event.error == ErrorCode.NONE:
        role.acknowledged.add(event.voter)


# The log


def on_flushed(member: Member, role: Leader, upto: int) -> None:
    """Count our own appends once they are synced, as for every replica."""
    assert upto <= member.log.end.offset, f"flushed to {upto}, but the log ends at {member.log.end.offset}"
    mine = role.replicas.get(member.me)
    mine.end_offset = max(upto, mine.end_offset or 0)
    count_majority(member, role)


def count_majority(member: Member, role: Leader) -> None:
    offset = role.replicas.majority_offset()
    # Another leader can still truncate records of earlier epochs that a majority has, until a record of our
    # own epoch follows them. (Raft, 5.4.2)
    if offset is not None and offset > role.epoch_start:
        member.advance_high_watermark(offset)


def on_fetch_requested(member: Member, event: FetchRequested) -> FetchAnswer:
    error = _leader_only(member, event.epoch)
    if min(event.offset, event.last_epoch) < 0 or event.last_epoch > event.epoch:
        error = ErrorCode.INVALID_REQUEST
    role = member.role
    if error != ErrorCode.NONE or not isinstance(role, Leader):
        return FetchAnswer(error=error, leader=member.leader, epoch=member.epoch)
    diverging, snapshot = check_fetch(member.log, OffsetAndEpoch(event.offset, event.last_epoch))
    is_part = diverging is None and snapshot is None
    if event.replica >= 0 and event.replica != member.me:
        _heard_from(member, role, event.replica)
        if is_part:
            _fetched(member, role, event)
    return FetchAnswer(
        error=ErrorCode.NONE,
        leader=member.me,
        epoch=member.epoch,
        high_watermark=member.high_watermark,
        diverging=diverging,
        snapshot=snapshot,
        read_from=event.offset if is_part else None,
    )


def _fetched(member: Member, role: Leader, event: FetchRequested) -> None:
    replica = role.replicas.get(event.replica)
    replica.fetched(event.offset, leader_end=member.log.end.offset, now_ms=member.now_ms)
    # A node that fetches in our epoch knows that we lead.
    role.acknowledged.add(event.replica)
    if event.replica in member.voters:
        count_majority(member, role)


def on_snapshot_requested(member: Member, event: SnapshotRequested) -> EpochAnswer:
    error = _leader_only(member, event.epoch)
    role = member.role
    if error == ErrorCode.NONE and isinstance(role, Leader) and event.replica != member.me:
        _heard_from(member, role, event.replica)
    return EpochAnswer(error=error, leader=member.leader, epoch=member.epoch)


def _leader_only(member: Member, epoch: int) -> ErrorCode:
    if epoch < member.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if epoch > member.epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    # Observers fetch from any voter, to find the leader.
    return ErrorCode.NONE if isinstance(member.role, Leader) else ErrorCode.NOT_LEADER_OR_FOLLOWER


def _heard_from(member: Member, role: Leader, replica: int) -> None:
    if replica not in member.voters:
        return
    role.heard.add(replica)
    # Minus one, because we are part of the majority ourselves.
    if len(role.heard) >= member.majority - 1:
        role.heard.clear()
        role.check_quorum_at_ms = _check_quorum_at(member)


def _check_quorum_at(member: Member) -> int | None:
    # One and a half times the followers' fetch timeout. A majority of one needs no others.
    if member.majority == 1:
        return None
    return member.now_ms + member.settings.fetch_timeout_ms * 3 // 2


# Resigning


def resign(member: Member, role: Leader) -> None:
    """Resign, and notify the other voters so that they need not wait for a timeout."""
    resigned = Resigned(member.election_timeout_ms(), successors=role.replicas.successors())
    member.become(resigned)
    # The persisted election still has us as the leader, so no other node gets our vote in this epoch.
    if member.others:
        resigned.retry_at_ms = member.now_ms
        tick_resigned(member, resigned)


def tick_resigned(member: Member, role: Resigned) -> None:
    if member.now_ms >= role.election_at_ms:
        # This epoch can have no other leader. In the next one we may vote again.
        member.become_unattached(member.epoch + 1)
        return
    if role.retry_at_ms is not None and member.now_ms >= role.retry_at_ms:
        silent = [voter for voter in member.others if voter not in role.acknowledged]
        for voter in silent:
            member.emit(SendEndEpoch(to=voter, epoch=member.epoch, successors=role.successors))
        role.retry_at_ms = member.request_timeout_ms() if silent else None


def on_end_answered(member: Member, event: EndEpochAnswered) -> None:
    member.observe(event.leader, event.epoch)
    role = member.role
    if isinstance(role, Resigned) and event.asked_epoch == member.epoch and event.error == ErrorCode.NONE:
        role.acknowledged.add(event.voter)
