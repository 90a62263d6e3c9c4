"""The records of a classic group, and its state after a reload."""

import pytest

from barnabas.coordinators.decision.outcome import StoredRecord
from barnabas.coordinators.group.settings import GroupSettings
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.stored.offsets import GroupMetadataValue, MemberMetadata
from support.group.stories import HOST, REBALANCE_MS, SESSION_MS, START_MS, Member, Story, subscription

pytestmark = pytest.mark.kernel

ORDERS = subscription("orders")


def test_a_new_group_is_written_as_an_empty_one_when_an_id_is_given_out() -> None:
    group = Story()

    group.asks_to_join(Member("a"))

    assert group.values == [
        GroupMetadataValue(
            protocol_type="", generation=0, protocol=None, leader=None, current_state_timestamp=START_MS
        )
    ]


def test_records_have_the_version_that_kafka_writes() -> None:
    group = Story()
    group.is_stable_with("a")

    for record in group.stage.records:
        assert isinstance(record, StoredRecord)
        assert record.version == 3


def test_the_assignment_is_written_with_everything_that_members_have_said() -> None:
    group = Story()
    a, b = group.is_stable_with("a", Member("b", "two"))

    assert len(group.values) == 2
    assert group.values[-1] == GroupMetadataValue(
        protocol_type="consumer",
        generation=1,
        protocol="range",
        leader=a.id,
        current_state_timestamp=START_MS + 6_000,
        members=[
            MemberMetadata(
                member_id=member.id,
                group_instance_id=member.instance_id,
                client_id=member.client,
                client_host=HOST,
                rebalance_timeout=REBALANCE_MS,
                session_timeout=SESSION_MS,
                subscription=ORDERS,
                assignment=member.client.encode(),
            )
            for member in (a, b)
        ],
    )


def test_an_empty_group_keeps_its_type_and_the_time() -> None:
    group = Story()
    (a,) = group.is_stable_with("a")
    group.waits(1_000)

    group.leaves(a)

    assert group.values[-1] == GroupMetadataValue(
        protocol_type="consumer",
        generation=2,
        protocol=None,
        leader=None,
        current_state_timestamp=START_MS + 7_000,
    )


def test_nothing_is_written_between_two_assignments() -> None:
    group = Story()
    a, b = group.is_stable_with("a", "b")
    written = len(group.stage.records)

    group.leaves(b)
    group.joins(a)
    group.learns(a)

    assert len(group.stage.records) == written
    group.settles(a)
    assert len(group.stage.records) == written + 1


def test_after_a_crash_a_group_with_members_is_stable_and_its_members_are_known() -> None:
    group = Story()
    a, b = group.is_stable_with("a", Member("b", "two"))

    after = group.replayed()

    assert after.state == "Stable"
    assert after.group.leader == a.id
    assert after.group.static == {"two": b.id}
    assert after.beats(a) is ErrorCode.NONE
    assert after.syncs(b).answer.assignment == b"b"
    assert after.group.durable() == group.group.durable()


def test_after_a_crash_sessions_begin_anew() -> None:
    group = Story()
    a, _ = group.is_stable_with("a", "b")

    after = group.replayed()
    after.waits(SESSION_MS - 1)
    assert len(after.group.members) == 2
    assert after.beats(a) is ErrorCode.NONE
    after.waits(1)

    assert set(after.group.members) == {a.id}


def test_a_crash_during_a_round_goes_back_to_the_last_assignment() -> None:
    group = Story()
    a, b = group.is_stable_with("a", "b")
    group.joins("c")
    group.joins(a)

    after = group.replayed()

    assert after.state == "Stable"
    assert after.group.generation == 1
    assert set(after.group.members) == {a.id, b.id}
    assert after.group.durable() == group.group.durable()


def test_a_follower_that_joins_as_before_a_crash_is_in_as_before() -> None:
    group = Story()
    _, b = group.is_stable_with("a", "b")
    after = group.replayed()

    after.joins(b)

    assert b.joined.generation_id == 1


def test_a_tombstone_takes_the_group_away() -> None:
    group = Story()
    (a,) = group.is_stable_with("a")
    group.leaves(a)
    group.asks_to_join(Member("b"))
    gone = group.group

    for record in gone.tombstones():
        group.stage.records.append(record)
        group.classic.restore("g", None)

    assert group.context.groups == {}
    assert gone.state == "Dead"
    assert len(group.context.timers) == 0
    assert group.replayed().context.groups == {}


def test_timers_of_a_group_that_is_gone_do_nothing() -> None:
    group = Story()
    now = group.stage.now

    for what in ("classic-session", "classic-join", "classic-sync"):
        outcome = group.classic.rebalances.expire((what, "g", "a-1"), now)
        assert (outcome.records, outcome.answers) == ([], [])


def test_a_group_of_old_records_has_one_timeout_and_no_time_since_when() -> None:
    story = Story()
    member = MemberMetadata(
        member_id="m",
        client_id="c",
        client_host=HOST,
        rebalance_timeout=-1,
        session_timeout=9_000,
        subscription=ORDERS,
        assignment=b"x",
    )
    value = GroupMetadataValue(
        protocol_type="consumer", generation=5, protocol="range", leader="m", members=[member]
    )

    story.classic.restore("g", value)

    assert story.group.members["m"].rebalance_timeout_ms == 9_000
    assert story.group.state_ms is None


def test_a_record_with_inconsistent_members_is_loaded() -> None:
    story = Story()
    members = [
        MemberMetadata(
            member_id=member_id,
            group_instance_id="one",
            client_id="c",
            client_host=HOST,
            session_timeout=9_000,
            subscription=ORDERS,
            assignment=b"x",
        )
        for member_id in ("m", "n")
    ]
    value = GroupMetadataValue(
        protocol_type="consumer", generation=5, protocol="range", leader="gone", members=members
    )

    story.classic.restore("g", value)
    story.stage.carry_out(story.classic.loaded(story.stage.now))

    assert list(story.group.members) == ["n"]
    assert story.group.leader == "n"


def test_pending_requests_are_refused_when_the_shard_is_closed() -> None:
    group = Story()
    a, b = group.joins("a"), group.joins("b")
    group.opens(a, b)
    sync = group.syncs(b)
    other = Story.beside(group, "other")
    join = other.joins("c")

    group.stage.carry_out(group.classic.abandon(ErrorCode.NOT_COORDINATOR))

    assert sync.error is join.join.error is ErrorCode.NOT_COORDINATOR
    assert join.joined.member_id == join.id
    assert len(group.context.timers) == 0
    assert group.beats(a) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert group.asks_to_join(Member("d")).error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert group.leaves(a).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_a_released_group_refuses_only_its_own_pending_requests() -> None:
    group = Story()
    a = group.joins("a")
    other = Story.beside(group, "other").joins("c")

    group.stage.carry_out(group.classic.release(group.group, ErrorCode.REBALANCE_IN_PROGRESS))

    assert a.join.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert other.waits


def test_an_adopted_group_has_sessions_and_may_be_called_to_join() -> None:
    group = Story()
    (a,) = group.is_stable_with("a")
    adopted = group.group
    del group.context.groups["g"]
    group.context.timers.cancel(("classic-session", "g", a.id))

    group.classic.adopt(adopted, group.stage.now)
    group.stage.carry_out(group.classic.rebalance(adopted, "a test", group.stage.now))

    assert group.beats(a) is ErrorCode.REBALANCE_IN_PROGRESS
    group.waits(SESSION_MS)
    assert group.state == "Empty"


@pytest.mark.parametrize("size_max", [1, 2])
def test_only_a_group_that_is_too_large_is_called_to_join_after_loading(size_max: int) -> None:
    group = Story()
    group.is_stable_with("a", "b")
    group.settings = GroupSettings(classic_size_max=size_max)

    assert group.replayed().state == ("Stable" if size_max == 2 else "PreparingRebalance")
