"""The rules of the quorum, one at a time. tests/property/test_raft.py tests them together."""

from random import Random

import pytest

from barnabas.protocol.error_codes import ErrorCode
from barnabas.raft.core import RaftCore
from barnabas.raft.effects import (
    AppendFetched,
    AppendLeaderChange,
    BecameLeader,
    Effect,
    EpochAnswer,
    FetchAnswer,
    HighWatermarkAdvanced,
    InstallSnapshot,
    LeaderChanged,
    LostLeadership,
    PersistState,
    SendBeginEpoch,
    SendEndEpoch,
    SendFetch,
    SendVote,
    TruncateTo,
    VoteAnswer,
)
from barnabas.raft.errors import BrokenPromise
from barnabas.raft.events import (
    BeginEpochRequested,
    EndEpochRequested,
    FetchAnswered,
    FetchRequested,
    Flushed,
    ResignRequested,
    SnapshotInstalled,
    Tick,
    Truncated,
    Unanswered,
    VoteAnswered,
    VoteRequested,
)
from barnabas.raft.facts import Election, OffsetAndEpoch
from barnabas.raft.roles import Candidate, Follower, Leader, Prospective, Resigned, Unattached
from barnabas.raft.settings import QuorumSettings
from support.raft_world import Disk, ModelLog

SETTINGS = QuorumSettings()
OK = ErrorCode.NONE


def member(
    *entries: int, me: int = 1, voters: tuple[int, ...] = (1, 2, 3), election: Election | None = None
) -> tuple[RaftCore, Disk]:
    """A member whose log has synced entries of these epochs."""
    disk = Disk(entries=[(epoch, "") for epoch in entries], flushed=len(entries))
    core = RaftCore(
        me=me, voters=voters, log=ModelLog(disk), election=election, settings=SETTINGS, rng=Random(0)
    )
    return core, disk


def started(core: RaftCore) -> RaftCore:
    core.start(0)
    return core


def vote(candidate: int, epoch: int, *, last: tuple[int, int], pre_vote: bool = False) -> VoteRequested:
    return VoteRequested(candidate=candidate, epoch=epoch, last=OffsetAndEpoch(*last), pre_vote=pre_vote)


def granted(voter: int, epoch: int, *, pre_vote: bool = False, yes: bool = True) -> VoteAnswered:
    return VoteAnswered(
        voter=voter, asked_epoch=epoch, pre_vote=pre_vote, error=OK, leader=None, epoch=epoch, granted=yes
    )


def fetch_of(replica: int, epoch: int, offset: int, last_epoch: int) -> FetchRequested:
    return FetchRequested(replica=replica, epoch=epoch, offset=offset, last_epoch=last_epoch)


def kinds(effects: list[Effect]) -> list[str]:
    return [type(effect).__name__ for effect in effects]


def only(effects: list[Effect], kind: type) -> Effect:
    (found,) = [effect for effect in effects if isinstance(effect, kind)]
    return found


def timed_out(core: RaftCore) -> tuple[list[Effect], int]:
    """Tick until it starts an election; return the time and the effects."""
    for _ in range(20):
        at = core.deadline_ms
        assert at is not None
        effects = core.step(Tick(), at)
        if isinstance(core.role, Prospective):
            return effects, at
    raise AssertionError(f"{core.role} waits for ever")


def leading(*entries: int) -> tuple[RaftCore, Disk, int]:
    """Node 1 of three, just elected in the epoch after its log's last; and the time."""
    core, disk = member(*entries)
    core.start(0)
    _, now = timed_out(core)
    epoch = core.leader.epoch
    core.step(granted(2, epoch, pre_vote=True), now)
    core.step(granted(2, epoch + 1), now)
    assert isinstance(core.role, Leader)
    disk.entries.append((core.leader.epoch, "leader"))
    return core, disk, now


# Elections


def test_the_only_voter_leads_at_once_and_persists_before_it_appends() -> None:
    core, _ = member(voters=(1,))

    effects = core.start(0)

    assert effects == [
        PersistState(Election(1, 1, None)),
        BecameLeader(epoch=1, start=0),
        AppendLeaderChange(epoch=1, granting=(1,)),
        LeaderChanged(1, 1),
    ]
    assert core.deadline_ms is None


def test_a_node_asks_whether_it_would_be_elected_before_it_starts_an_epoch() -> None:
    core, _ = member(1, 1, election=Election(4))
    core.start(0)

    effects, now = timed_out(core)

    last = OffsetAndEpoch(2, 1)
    assert [effect for effect in effects if isinstance(effect, SendVote)] == [
        SendVote(to=2, epoch=4, last=last, pre_vote=True),
        SendVote(to=3, epoch=4, last=last, pre_vote=True),
    ]
    effects = core.step(granted(3, 4, pre_vote=True), now)
    assert effects[0] == PersistState(Election(5, None, 1))
    assert effects[1] == SendVote(to=2, epoch=5, last=last, pre_vote=False)
    assert isinstance(core.role, Candidate)


def test_a_majority_of_votes_elects_a_leader_that_notifies_the_others() -> None:
    core, _ = member(1)
    core.start(0)
    _, now = timed_out(core)
    core.step(granted(2, 1, pre_vote=True), now)

    effects = core.step(granted(3, 2), now)

    assert effects == [
        PersistState(Election(2, 1, None)),
        BecameLeader(epoch=2, start=1),
        AppendLeaderChange(epoch=2, granting=(1, 3)),
        SendBeginEpoch(to=2, epoch=2),
        SendBeginEpoch(to=3, epoch=2),
        LeaderChanged(1, 2),
    ]


def test_pre_votes_do_not_count_as_votes() -> None:
    core, _ = member(1)
    core.start(0)
    _, now = timed_out(core)
    core.step(granted(2, 1, pre_vote=True), now)

    core.step(granted(2, 1, pre_vote=True), now)
    core.step(granted(3, 2, pre_vote=True), now)

    assert isinstance(core.role, Candidate)


def test_a_lost_election_is_tried_again_after_a_while() -> None:
    core, _ = member(1)
    core.start(0)
    _, now = timed_out(core)
    core.step(granted(2, 1, pre_vote=True), now)

    core.step(granted(2, 2, yes=False), now)
    core.step(granted(3, 2, yes=False), now)

    at = core.deadline_ms
    assert at is not None
    assert at <= now + SETTINGS.election_backoff_max_ms
    core.step(Tick(), at)
    assert isinstance(core.role, Prospective)
    assert core.election == Election(2, None, 1)


def test_a_vote_is_persisted_before_it_is_answered() -> None:
    core = started(member(1)[0])

    effects = core.step(vote(2, 3, last=(1, 1)), 0)

    assert effects[:2] == [
        PersistState(Election(3, None, 2)),
        VoteAnswer(error=OK, leader=None, epoch=3, granted=True),
    ]


def test_a_vote_is_given_once_in_an_epoch_also_after_a_restart() -> None:
    for core in (member(1, election=Election(3, None, 2))[0], started(member(1)[0])):
        core.start(0)
        core.step(vote(2, 3, last=(1, 1)), 0)

        other = only(core.step(vote(3, 3, last=(9, 2)), 0), VoteAnswer)
        same = only(core.step(vote(2, 3, last=(1, 1)), 0), VoteAnswer)

        assert isinstance(other, VoteAnswer)
        assert not other.granted
        assert isinstance(same, VoteAnswer)
        assert same.granted


@pytest.mark.parametrize(
    ("last", "expected"), [((2, 2), True), ((3, 2), True), ((1, 3), True), ((1, 2), False), ((9, 1), False)]
)
@pytest.mark.parametrize("pre_vote", [False, True])
def test_only_a_log_that_is_up_to_date_gets_a_vote(
    last: tuple[int, int], expected: bool, pre_vote: bool
) -> None:
    core = started(member(1, 2)[0])

    answer = only(core.step(vote(2, 5, last=last, pre_vote=pre_vote), 0), VoteAnswer)

    assert isinstance(answer, VoteAnswer)
    assert answer.granted == expected


def test_a_former_leader_gives_no_vote_in_its_epoch() -> None:
    core, _ = member(1, election=Election(4, 1, None))
    core.start(0)

    answer = only(core.step(vote(2, 4, last=(9, 3)), 0), VoteAnswer)

    assert isinstance(core.role, Resigned)
    assert answer == VoteAnswer(error=OK, leader=None, epoch=4, granted=False)


def test_a_follower_gives_no_vote_in_its_leaders_epoch() -> None:
    core, _ = member(1, election=Election(4, 3, None))
    core.start(0)

    answer = only(core.step(vote(2, 4, last=(9, 3)), 0), VoteAnswer)

    assert answer == VoteAnswer(error=OK, leader=3, epoch=4, granted=False)


def test_a_follower_with_a_live_leader_rejects_pre_votes() -> None:
    core, _ = member(1, election=Election(4, 3, None))
    fetch = only(core.start(0), SendFetch)
    assert isinstance(fetch, SendFetch)
    asked = vote(2, 4, last=(9, 4), pre_vote=True)
    before = only(core.step(asked, 0), VoteAnswer)

    core.step(FetchAnswered(peer=3, serial=fetch.serial, error=OK, leader=3, epoch=4), 0)
    after = only(core.step(asked, 0), VoteAnswer)

    assert isinstance(before, VoteAnswer)
    assert isinstance(after, VoteAnswer)
    assert (before.granted, after.granted) == (True, False)


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (vote(2, 3, last=(-1, 0)), ErrorCode.INVALID_REQUEST),
        (vote(2, 3, last=(1, 3)), ErrorCode.INVALID_REQUEST),
        (vote(-5, 3, last=(1, 1)), ErrorCode.INVALID_REQUEST),
        (vote(2, 1, last=(1, 0)), ErrorCode.FENCED_LEADER_EPOCH),
        (vote(7, 3, last=(1, 1)), ErrorCode.INCONSISTENT_VOTER_SET),
    ],
)
def test_a_vote_request_that_is_not_in_order_changes_nothing(
    request_: VoteRequested, error: ErrorCode
) -> None:
    core, _ = member(1, election=Election(2))
    core.start(0)

    effects = core.step(request_, 0)

    assert effects == [VoteAnswer(error=error, leader=None, epoch=2, granted=False)]


def test_an_observer_neither_votes_nor_stands_for_election() -> None:
    core, _ = member(1, me=9)
    core.start(0)

    for at in range(0, 100_000, 500):
        core.step(Tick(), at)
    answer = only(core.step(vote(2, 5, last=(9, 4)), 100_000), VoteAnswer)

    assert isinstance(core.role, Unattached)
    assert answer == VoteAnswer(error=ErrorCode.INCONSISTENT_VOTER_SET, leader=None, epoch=1, granted=False)


# Leading


def test_the_high_watermark_needs_a_flushed_majority_in_the_leaders_epoch() -> None:
    core, _, now = leading(1, 1)

    assert core.step(Flushed(3), now) == []
    early = core.step(fetch_of(2, 2, 2, 1), now)
    assert kinds(early) == ["FetchAnswer"]

    effects = core.step(fetch_of(2, 2, 3, 2), now)

    assert effects[0] == HighWatermarkAdvanced(3)
    assert effects[1] == FetchAnswer(error=OK, leader=1, epoch=2, high_watermark=3, read_from=3)


def test_unflushed_records_of_the_leader_do_not_count_for_itself() -> None:
    core, disk, now = leading(1)
    disk.entries += [(2, "a"), (2, "b")]

    assert core.step(fetch_of(2, 2, 4, 2), now)[0] != HighWatermarkAdvanced(4)
    assert core.step(Flushed(2), now) == [HighWatermarkAdvanced(2)]
    assert core.step(Flushed(4), now) == [HighWatermarkAdvanced(4)]


def test_a_follower_with_a_diverging_log_gets_the_divergence() -> None:
    core, _, now = leading(1, 1, 3)

    answer = only(core.step(fetch_of(2, 4, 5, 2), now), FetchAnswer)

    assert isinstance(answer, FetchAnswer)
    assert (answer.diverging, answer.read_from) == (OffsetAndEpoch(2, 1), None)


def test_a_follower_behind_the_log_start_gets_the_snapshot() -> None:
    core, disk, now = leading(1, 1, 1)
    del disk.entries[:2]
    disk.start, disk.start_epoch = 2, 1

    for offset, epoch in [(0, 0), (1, 1)]:
        answer = only(core.step(fetch_of(2, 2, offset, epoch), now), FetchAnswer)
        assert isinstance(answer, FetchAnswer)
        assert (answer.snapshot, answer.read_from) == (OffsetAndEpoch(2, 1), None)


@pytest.mark.parametrize(
    ("epoch", "error"),
    [(1, ErrorCode.FENCED_LEADER_EPOCH), (9, ErrorCode.UNKNOWN_LEADER_EPOCH)],
)
def test_a_fetch_of_another_epoch_is_refused(epoch: int, error: ErrorCode) -> None:
    core, _, now = leading(1)

    assert core.step(fetch_of(2, epoch, 1, 1), now) == [FetchAnswer(error=error, leader=1, epoch=2)]


@pytest.mark.parametrize(("offset", "last_epoch"), [(-1, 1), (1, -1), (1, 3)])
def test_a_fetch_that_cannot_be_is_refused(offset: int, last_epoch: int) -> None:
    core, _, now = leading(1)

    answer = only(core.step(fetch_of(2, 2, offset, last_epoch), now), FetchAnswer)

    assert isinstance(answer, FetchAnswer)
    assert answer.error == ErrorCode.INVALID_REQUEST


def test_a_leader_that_hears_from_no_majority_resigns() -> None:
    core, _, now = leading(1)
    limit = SETTINGS.fetch_timeout_ms * 3 // 2

    core.step(fetch_of(2, 2, 1, 1), now + limit - 1)
    core.step(Tick(), now + limit)
    assert isinstance(core.role, Leader)
    effects = core.step(Tick(), now + 2 * limit)

    assert isinstance(core.role, Resigned)
    assert LostLeadership(2) in effects
    assert LeaderChanged(None, 2) in effects


def test_a_leader_that_stops_names_the_one_with_the_longest_log_first() -> None:
    core, _, now = leading(1, 1)
    core.step(fetch_of(3, 2, 3, 2), now)
    core.step(fetch_of(2, 2, 2, 1), now)

    effects = core.step(ResignRequested(), now)

    assert [effect for effect in effects if isinstance(effect, SendEndEpoch)] == [
        SendEndEpoch(to=2, epoch=2, successors=(3, 2)),
        SendEndEpoch(to=3, epoch=2, successors=(3, 2)),
    ]


# Following


def following(*entries: int, epoch: int = 4) -> tuple[RaftCore, Disk, int]:
    """Node 1 follows node 3; and the serial of its fetch."""
    core, disk = member(*entries, election=Election(epoch, 3, None))
    fetch = only(core.start(0), SendFetch)
    assert isinstance(fetch, SendFetch)
    return core, disk, fetch.serial


def answer_to(serial: int, **facts: object) -> FetchAnswered:
    return FetchAnswered(peer=3, serial=serial, error=OK, leader=3, epoch=4, **facts)  # type: ignore[arg-type]


def test_fetched_records_are_acknowledged_after_their_flush() -> None:
    core, disk, serial = following(1)

    effects = core.step(answer_to(serial, records=((4, "x"),), high_watermark=2), 0)
    assert effects == [AppendFetched(((4, "x"),))]
    disk.entries.append((4, "x"))
    assert core.step(Flushed(1), 0) == []
    disk.flushed = 2
    effects = core.step(Flushed(2), 0)

    assert effects[0] == HighWatermarkAdvanced(2)
    assert effects[1] == SendFetch(to=3, epoch=4, end=OffsetAndEpoch(2, 4), serial=serial + 1)


def test_a_new_follower_that_has_not_flushed_its_log_does_not_fetch_yet() -> None:
    core, disk, now = leading(1)

    effects = core.step(BeginEpochRequested(leader=3, epoch=7), now)
    assert SendFetch not in [type(effect) for effect in effects]
    assert effects[0] == PersistState(Election(7, 3, None))
    disk.flushed = 2
    effects = core.step(Flushed(2), now)

    assert isinstance(only(effects, SendFetch), SendFetch)


def test_a_late_answer_to_an_earlier_fetch_is_not_appended() -> None:
    core, _, serial = following(1)
    core.step(Unanswered(3), 0)
    again = only(core.step(Tick(), SETTINGS.retry_backoff_ms), SendFetch)

    late = core.step(answer_to(serial, records=((4, "x"),)), SETTINGS.retry_backoff_ms)

    assert late == []
    assert isinstance(again, SendFetch)
    assert again.serial == serial + 1


def test_a_diverging_log_is_cut_where_both_agree_and_fetched_on_from_there() -> None:
    core, disk, serial = following(1, 2, 2)

    effects = core.step(answer_to(serial, diverging=OffsetAndEpoch(1, 1)), 0)
    assert effects == [TruncateTo(1)]
    del disk.entries[1:]
    disk.flushed = 1
    effects = core.step(Truncated(), 0)

    assert effects == [SendFetch(to=3, epoch=4, end=OffsetAndEpoch(1, 1), serial=serial + 1)]


def test_committed_records_are_never_truncated() -> None:
    core, _, serial = following(1, 2)
    core.step(answer_to(serial, high_watermark=2), 0)

    with pytest.raises(BrokenPromise, match="records up to 2 are committed"):
        core.step(answer_to(serial + 1, diverging=OffsetAndEpoch(1, 1)), 0)


def test_a_snapshot_is_installed_only_while_it_is_wanted() -> None:
    core, _, serial = following(1)

    effects = core.step(answer_to(serial, snapshot=OffsetAndEpoch(9, 3)), 0)

    assert effects == [InstallSnapshot(leader=3, epoch=4, snapshot=OffsetAndEpoch(9, 3), serial=serial)]
    assert core.is_installing(serial)
    core.step(BeginEpochRequested(leader=2, epoch=6), 0)
    assert not core.is_installing(serial)
    assert core.step(SnapshotInstalled(serial), 0) == []


def test_a_follower_without_a_leader_becomes_prospective_until_it_returns() -> None:
    core, _, _ = following(1)

    _, now = timed_out(core)
    effects = core.step(BeginEpochRequested(leader=3, epoch=4), now)

    assert isinstance(core.role, Follower)
    assert EpochAnswer(error=OK, leader=3, epoch=4) in effects


def test_a_second_leader_in_one_epoch_is_rejected() -> None:
    core, _, _ = following(1)

    effects = core.step(BeginEpochRequested(leader=2, epoch=4), 0)

    assert effects == [EpochAnswer(error=ErrorCode.INVALID_REQUEST, leader=3, epoch=4)]


def test_the_preferred_successor_starts_an_election_first() -> None:
    first, _, _ = following(1)
    second, _, _ = following(1)

    first.step(EndEpochRequested(leader=3, epoch=4, successors=(1, 2)), 0)
    second.step(EndEpochRequested(leader=3, epoch=4, successors=(2, 1)), 0)

    assert isinstance(first.role, Prospective)
    assert isinstance(second.role, Follower)
    assert second.deadline_ms == SETTINGS.election_backoff_max_ms // 2
