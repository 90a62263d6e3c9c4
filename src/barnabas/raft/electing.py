"""Elections: granting our vote, and requesting the votes of others (pure).

A node votes once per epoch, and only for a log that has everything that can be committed. (Raft, 5.4.1)
Before a node starts a new epoch it asks by a pre-vote whether it would be elected. (KIP-996)
"""

from typing import Final

from barnabas.protocol.error_codes import ErrorCode
from barnabas.raft.effects import SendVote, VoteAnswer
from barnabas.raft.events import VoteAnswered, VoteRequested
from barnabas.raft.facts import Election
from barnabas.raft.leading import become_leader
from barnabas.raft.member import Member
from barnabas.raft.roles import Candidate, Follower, Leader, Prospective, Resigned

# The wait after a lost election is a random multiple of this; the range of multiples doubles each time.
BACKOFF_STEP_MS: Final = 100
_DOUBLINGS_MAX: Final = 20
_EPOCH_MAX: Final = 2**31 - 1


# Granting votes


def on_vote_requested(member: Member, event: VoteRequested) -> VoteAnswer:
    error = _check_request(member, event)
    if error != ErrorCode.NONE:
        return _answer(member, error, granted=False)
    if event.epoch > member.epoch:
        member.become_unattached(event.epoch)
    if event.pre_vote:
        return _answer(member, ErrorCode.NONE, granted=_would_vote(member, event))
    granted = _may_vote(member, event)
    if granted:
        member.election = Election(member.epoch, None, event.candidate)
    return _answer(member, ErrorCode.NONE, granted=granted)


def _check_request(member: Member, event: VoteRequested) -> ErrorCode:
    # The candidate's log cannot have records of the epoch for which it is requesting votes.
    last_epoch_max = event.epoch if event.pre_vote else event.epoch - 1
    if event.candidate < 0 or event.last.offset < 0 or not 0 <= event.last.epoch <= last_epoch_max:
        return ErrorCode.INVALID_REQUEST
    if event.epoch < member.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if event.candidate not in member.voters or event.candidate == member.me or not member.is_voter:
        return ErrorCode.INCONSISTENT_VOTER_SET
    return ErrorCode.NONE


def _may_vote(member: Member, event: VoteRequested) -> bool:
    if isinstance(member.role, (Leader, Resigned)) or member.election.leader is not None:
        return False
    if member.election.voted is not None:
        # A candidate may retry: our answer may have been lost.
        return member.election.voted == event.candidate
    return event.last.is_up_to_date_with(member.log.end)


def _would_vote(member: Member, event: VoteRequested) -> bool:
    """Answer a pre-vote. Our own vote does not matter, but a working leader does."""
    if isinstance(member.role, Leader) or (isinstance(member.role, Follower) and member.role.has_fetched):
        return False
    return event.last.is_up_to_date_with(member.log.end)


def _answer(member: Member, error: ErrorCode, *, granted: bool) -> VoteAnswer:
    return VoteAnswer(error=error, leader=member.leader, epoch=member.epoch, granted=granted)


# Requesting votes


def become_prospective(member: Member) -> None:
    assert member.is_voter, f"observer {member.me} cannot be elected"
    role = Prospective(member.election_timeout_ms(), member.now_ms, granted={member.me})
    # Leader and vote of the epoch stay: only our trust in the leader has changed.
    member.become(role)
    _count(member, role)


def _become_candidate(member: Member) -> None:
    if member.epoch == _EPOCH_MAX:
        # Only a node that invents epochs can have caused this. No election is possible any more.
        member.become_unattached(member.epoch)
        return
    role = Candidate(member.election_timeout_ms(), member.now_ms, granted={member.me})
    member.become(role)
    member.election = Election(member.epoch + 1, None, member.me)
    _count(member, role)


def tick_election(member: Member, role: Prospective | Candidate) -> None:
    if member.now_ms >= role.election_at_ms:
        if isinstance(role, Candidate):
            member.lost_elections += 1
            become_prospective(member)
        else:
            _step_back(member)
    elif role.retry_at_ms is not None and member.now_ms >= role.retry_at_ms:
        _ask(member, role)


def _ask(member: Member, role: Prospective | Candidate) -> None:
    for voter in member.others:
        if voter not in role.granted and voter not in role.rejected:
            member.emit(
                SendVote(
                    to=voter,
                    epoch=member.epoch,
                    last=member.log.end,
                    pre_vote=isinstance(role, Prospective),
                )
            )
    role.retry_at_ms = member.request_timeout_ms()


def on_vote_answered(member: Member, event: VoteAnswered) -> None:
    member.observe(event.leader, event.epoch)
    role = member.role
    if not isinstance(role, (Prospective, Candidate)) or event.voter not in member.voters:
        return
    if event.asked_epoch != member.epoch or event.pre_vote != isinstance(role, Prospective):
        return
    if event.error != ErrorCode.NONE:
        role.retry_at_ms = member.retry_ms()
        return
    if event.granted:
        role.granted.add(event.voter)
        role.rejected.discard(event.voter)
    elif event.voter not in role.granted:
        role.rejected.add(event.voter)
    _count(member, role)


def _count(member: Member, role: Prospective | Candidate) -> None:
    if len(role.granted) >= member.majority:
        if isinstance(role, Prospective):
            _become_candidate(member)
        else:
            become_leader(member, role.granted)
    elif len(role.rejected) > len(member.voters) - member.majority:
        _lose(member, role)
    elif role.retry_at_ms is not None and member.now_ms >= role.retry_at_ms:
        _ask(member, role)


def _lose(member: Member, role: Prospective | Candidate) -> None:
    if isinstance(role, Prospective):
        _step_back(member)
    elif role.retry_at_ms is not None:
        role.retry_at_ms = None
        role.election_at_ms = member.now_ms + _backoff_ms(member)


def _backoff_ms(member: Member) -> int:
    choices = 2 << min(_DOUBLINGS_MAX, member.lost_elections)
    return min(BACKOFF_STEP_MS * member.rng.randrange(choices), member.settings.election_backoff_max_ms)


def _step_back(member: Member) -> None:
    """Return to the role before the pre-vote, which was rejected or not answered, and wait."""
    leader = member.election.leader
    if leader is None or leader == member.me:
        member.become_unattached(member.epoch)
    else:
        member.become_follower(leader, member.epoch)
