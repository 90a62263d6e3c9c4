"""The rules of followers, and of nodes that look for a leader (pure)."""

from barnabas.protocol.error_codes import ErrorCode
from barnabas.raft.effects import AppendFetched, EpochAnswer, InstallSnapshot, TruncateTo
from barnabas.raft.electing import become_prospective
from barnabas.raft.errors import BrokenPromise
from barnabas.raft.events import (
    BeginEpochRequested,
    EndEpochRequested,
    FetchAnswered,
)
from barnabas.raft.log_view import cut_for
from barnabas.raft.member import Member
from barnabas.raft.roles import Candidate, Follower, Prospective, Resigned, Unattached


def tick_unattached(member: Member, role: Unattached) -> None:
    if role.election_at_ms is not None and member.now_ms >= role.election_at_ms:
        become_prospective(member)
    elif role.retry_at_ms is not None and member.now_ms >= role.retry_at_ms:
        # Any voter can tell the leader, and a leader answers with records at once.
        role.retry_at_ms = member.request_timeout_ms()
        if member.log_is_flushed:
            member.send_fetch(member.rng.choice(member.others))
        else:
            role.retry_at_ms = member.retry_ms()


def tick_follower(member: Member, role: Follower) -> None:
    if member.now_ms >= role.fetch_by_ms:
        if member.is_voter:
            become_prospective(member)
        else:
            member.become_unattached(member.epoch)
    elif role.retry_at_ms is not None and member.now_ms >= role.retry_at_ms:
        member.fetch()


def on_unanswered(member: Member, peer: int) -> None:
    """Retry after the retry backoff instead of the request timeout."""
    role = member.role
    if isinstance(role, Follower):
        if peer == role.leader and role.retry_at_ms is not None:
            role.retry_at_ms = member.retry_ms()
    elif isinstance(role, (Unattached, Prospective, Candidate, Resigned)) and role.retry_at_ms is not None:
        role.retry_at_ms = min(role.retry_at_ms, member.retry_ms())


# Requests from leaders


def on_begin_requested(member: Member, event: BeginEpochRequested) -> EpochAnswer:
    error = _check_leader(member, event.leader, event.epoch)
    if error == ErrorCode.NONE and not member.observe(event.leader, event.epoch):
        # Two nodes claim to lead the same epoch. Keep the known one.
        error = ErrorCode.INVALID_REQUEST
    if error == ErrorCode.NONE and isinstance(member.role, Prospective) and event.epoch == member.epoch:
        # The leader is alive after all.
        member.become_follower(event.leader, event.epoch)
    return EpochAnswer(error=error, leader=member.leader, epoch=member.epoch)


def on_end_requested(member: Member, event: EndEpochRequested) -> EpochAnswer:
    error = _check_leader(member, event.leader, event.epoch)
    if error == ErrorCode.NONE and not member.observe(event.leader, event.epoch):
        error = ErrorCode.INVALID_REQUEST
    role = member.role
    if error == ErrorCode.NONE and isinstance(role, Follower) and role.leader == event.leader:
        # The leader has resigned, so a new election disturbs nobody.
        role.has_fetched = False
        role.fetch_by_ms = member.now_ms + _wait_for_turn_ms(member, event.successors)
        role.awaiting = role.retry_at_ms = None
        if member.is_voter and role.fetch_by_ms == member.now_ms:
            become_prospective(member)
    return EpochAnswer(error=error, leader=member.leader, epoch=member.epoch)


def _check_leader(member: Member, leader: int, epoch: int) -> ErrorCode:
    if leader < 0 or epoch < 0 or leader == member.me:
        return ErrorCode.INVALID_REQUEST
    if epoch < member.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.NONE if leader in member.voters else ErrorCode.INCONSISTENT_VOTER_SET


def _wait_for_turn_ms(member: Member, successors: tuple[int, ...]) -> int:
    """The wait before an election: none for the first successor, then doubled for each further one."""
    longest = member.settings.election_backoff_max_ms
    if member.me not in successors:
        return longest
    position = successors.index(member.me)
    if position == 0:
        return 0
    step = longest >> min(len(successors) - 1, longest.bit_length())
    return min(longest, max(1, step) << (position - 1))


# Answers to fetches


def on_fetch_answered(member: Member, event: FetchAnswered) -> None:
    if not member.observe(event.leader, event.epoch):
        on_unanswered(member, event.peer)
        return
    role = member.role
    if not isinstance(role, Follower) or event.serial != role.awaiting:
        # The answer to an earlier fetch; the current one is still in flight.
        return
    if event.error != ErrorCode.NONE:
        on_unanswered(member, event.peer)
        return
    role.awaiting = role.retry_at_ms = None
    role.busy = True
    role.has_fetched = True
    role.fetch_by_ms = member.now_ms + member.settings.fetch_timeout_ms
    if event.diverging is not None:
        _truncate(member, role, event)
    elif event.snapshot is not None:
        role.installing = event.serial
        member.emit(
            InstallSnapshot(
                leader=role.leader, epoch=member.epoch, snapshot=event.snapshot, serial=event.serial
            )
        )
    else:
        _take(member, role, event)


def _truncate(member: Member, role: Follower, event: FetchAnswered) -> None:
    assert event.diverging is not None, "no diverging epoch"
    offset = cut_for(member.log, event.diverging)
    if member.high_watermark is not None and offset < member.high_watermark:
        raise BrokenPromise(
            f"leader {role.leader} of epoch {member.epoch} requests a truncation to {offset}, "
            f"but records up to {member.high_watermark} are committed"
        )
    member.emit(TruncateTo(offset))


def _take(member: Member, role: Follower, event: FetchAnswered) -> None:
    role.leader_high_watermark = event.high_watermark
    if event.records is not None:
        # The next fetch acknowledges these records, so it is sent after the sync.
        member.emit(AppendFetched(event.records))
    else:
        go_on(member, role)


def go_on(member: Member, role: Follower) -> None:
    """Our log matches the leader's: adopt its high watermark, and fetch the next records."""
    if role.leader_high_watermark is not None:
        member.advance_high_watermark(min(role.leader_high_watermark, member.log.end.offset))
    member.fetch()


def is_installing(member: Member, serial: int) -> bool:
    return isinstance(member.role, Follower) and member.role.installing == serial


def on_installed(member: Member, serial: int) -> None:
    if isinstance(member.role, Follower) and member.role.installing == serial:
        member.role.installing = None
        on_log_changed(member)


def on_log_changed(member: Member) -> None:
    role = member.role
    if isinstance(role, Follower) and role.busy and role.installing is None and member.log_is_flushed:
        role.fetch_by_ms = max(role.fetch_by_ms, member.now_ms + member.settings.fetch_timeout_ms)
        go_on(member, role)
