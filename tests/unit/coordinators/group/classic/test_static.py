"""Static members of a classic group: a quick restart moves nobody, the one before is fenced. (KIP-345)"""

import pytest

from barnabas.coordinators.group.settings import GroupSettings
from barnabas.protocol.error_codes import ErrorCode
from support.group.stories import RANGE, REBALANCE_MS, SESSION_MS, Member, Story

pytestmark = pytest.mark.kernel

TWO_PROTOCOLS = [("range", b""), ("sticky", b"")]


def stable(*, protocols: object = RANGE) -> tuple[Story, Member, Member]:
    """A leader of instance "one" and a follower of instance "two"."""
    group = Story()
    one, two = Member("one", "one"), Member("two", "two")
    group.is_stable_with(one, two, protocols=protocols)
    return group, one, two


def test_a_static_member_is_taken_at_once_and_named_after_its_instance() -> None:
    group = Story()
    s = Member("client", "instance")

    s.join = group.asks_to_join(s)

    assert s.waits
    group.opens(s)
    assert s.id.startswith("instance-")
    assert s.joined.members[0].group_instance_id == "instance"


def test_a_returning_static_member_causes_no_rebalance() -> None:
    group, one, two = stable()
    again = Member("elsewhere", "two")

    group.joins(again)

    assert again.joined.error_code == 0
    assert again.joined.generation_id == 1
    assert again.joined.leader == one.id
    assert again.joined.members == []
    assert again.joined.skip_assignment is False
    assert group.state == "Stable"
    group.learns(again)
    assert again.id != two.id
    assert group.syncs(again).answer.assignment == b"two"
    assert group.beats(one) is ErrorCode.NONE
    # It is described as the client that it was first.
    assert group.group.members[again.id].client_id == "two"


def test_the_replaced_member_is_fenced_in_every_request() -> None:
    group, _, two = stable()
    group.joins(Member("again", "two"))

    assert group.beats(two) is ErrorCode.FENCED_INSTANCE_ID
    assert group.syncs(two).error is ErrorCode.FENCED_INSTANCE_ID
    assert group.asks_to_join(two).error is ErrorCode.FENCED_INSTANCE_ID
    assert group.leaves(two).members[0].error_code == ErrorCode.FENCED_INSTANCE_ID
    assert group.state == "Stable"


def test_an_instance_that_is_no_member_is_unknown() -> None:
    group, _, two = stable()
    stranger = Member("x", "three")
    stranger.id = two.id
    stranger.generation = 1

    assert group.beats(stranger) is ErrorCode.UNKNOWN_MEMBER_ID
    assert group.asks_to_join(stranger).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_returning_static_leader_skips_the_assignment() -> None:
    group, _, two = stable()
    again = Member("again", "one")

    group.joins(again, version=9)

    group.learns(again)
    assert again.joined.leader == again.id
    assert again.joined.skip_assignment is True
    assert {member.member_id for member in again.joined.members} == {again.id, two.id}
    assert group.group.leader == again.id


def test_before_version_9_a_returning_static_leader_is_a_follower() -> None:
    group, one, _ = stable()
    again = Member("again", "one")

    group.joins(again, version=8)

    group.learns(again)
    assert again.joined.leader == one.id
    assert again.joined.members == []
    assert again.joined.skip_assignment is False
    assert group.group.leader == again.id


def test_a_replacement_is_written_and_there_after_a_crash() -> None:
    group, _, two = stable()
    again = Member("again", "two")
    group.joins(again, protocols=[("range", b"new")])
    group.learns(again)

    after = group.replayed()

    assert after.beats(again) is ErrorCode.NONE
    assert after.beats(two) is ErrorCode.FENCED_INSTANCE_ID
    assert after.group.members[again.id].assignment == b"two"
    assert after.group.members[again.id].protocols == (("range", b"new"),)
    assert after.group.durable() == group.group.durable()


def test_a_replacement_that_changes_the_elected_protocol_calls_all_to_join() -> None:
    group, one, _ = stable(protocols=TWO_PROTOCOLS)
    again = Member("again", "two")

    group.joins(again, protocols=[("sticky", b"")])

    assert again.waits
    assert group.beats(one) is ErrorCode.REBALANCE_IN_PROGRESS
    group.joins(one, protocols=TWO_PROTOCOLS)
    group.learns(one, again)
    assert group.group.protocol == "sticky"


def test_a_replacement_fences_the_join_that_waits() -> None:
    group = Story()
    s = group.joins(Member("s", "one"))

    again = group.joins(Member("again", "one"))

    assert s.join.error is ErrorCode.FENCED_INSTANCE_ID
    assert again.waits
    assert group.group.joining_count == 1
    group.opens(again)


def test_a_replacement_fences_the_sync_that_waits_and_begins_a_new_round() -> None:
    group = Story()
    one, two = group.joins(Member("one", "one")), group.joins(Member("two", "two"))
    group.opens(one, two)
    waiting = group.syncs(two)

    again = group.joins(Member("again", "two"))

    assert waiting.error is ErrorCode.FENCED_INSTANCE_ID
    assert again.waits
    group.joins(one)
    group.learns(one, again)
    assert one.joined.generation_id == 2


def test_the_last_that_is_waited_for_may_be_replaced() -> None:
    group, one, _ = stable()
    group.joins(one)
    assert one.waits

    again = group.joins(Member("again", "two"))

    group.learns(one, again)


def test_a_member_replaced_before_its_sync_is_not_awaited() -> None:
    group = Story()
    one, two = group.joins(Member("one", "one")), group.joins(Member("two", "two"))
    group.opens(one, two)
    group.syncs(one, {one.id: b"1", two.id: b"2"})
    again = group.joins(Member("again", "two"))
    group.learns(again)
    assert group.syncs(again).answer.assignment == b"2"

    group.waits(REBALANCE_MS, one, again)

    assert group.state == "Stable"


def test_a_static_member_that_does_not_join_stays_until_its_session_ends() -> None:
    group, one, two = stable()
    group.joins(one)

    group.waits(REBALANCE_MS, two)

    group.learns(one)
    assert two.id in group.group.members
    assert len(one.joined.members) == 2
    group.settles(one)
    group.waits(SESSION_MS, one)
    assert two.id not in group.group.members


def test_a_replacement_of_an_unsynced_member_must_sync() -> None:
    group = Story()
    one, two = group.joins(Member("one", "one")), group.joins(Member("two", "two"))
    group.opens(one, two)
    group.syncs(one, {one.id: b"1", two.id: b"2"})
    again = group.joins(Member("again", "two"))
    group.learns(again)

    group.waits(REBALANCE_MS, one, again)

    assert set(group.group.members) == {one.id}


def test_a_static_leader_that_does_not_join_leads_no_more() -> None:
    group, one, two = stable()
    group.joins(two, protocols=[("range", b"changed")])

    group.waits(REBALANCE_MS, one)

    group.learns(two)
    assert two.joined.leader == two.id
    assert {member.member_id for member in two.joined.members} == {one.id, two.id}


def test_the_session_of_a_replaced_member_removes_no_one_else() -> None:
    group, one, two = stable()
    group.waits(SESSION_MS - 1_000, one)
    again = group.joins(Member("again", "two"))
    group.learns(again)
    assert ("classic-session", "g", two.id) not in group.context.timers

    group.waits(2_000, one)

    assert group.state == "Stable"
    group.waits(SESSION_MS - 2_000, one)
    assert group.state == "PreparingRebalance"


def test_a_new_session_timeout_counts_from_the_first_heartbeat_on() -> None:
    group, one, _ = stable()
    again = group.joins(Member("again", "two"), session_ms=20_000)
    group.learns(again)
    group.waits(SESSION_MS - 1_000, one)
    assert group.beats(again) is ErrorCode.NONE

    group.waits(19_000, one)
    assert group.state == "Stable"

    third = group.joins(Member("third", "two"), session_ms=SESSION_MS)
    group.learns(third)
    group.waits(19_000, one)
    assert group.state == "Stable"
    group.waits(1_000, one)
    assert group.state == "PreparingRebalance"


def test_a_static_member_that_waits_for_nothing_and_sends_nothing_expires() -> None:
    group, one, two = stable()

    group.waits(SESSION_MS, one)

    assert set(group.group.members) == {one.id}
    assert group.group.static == {"one": one.id}
    assert group.beats(two) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_pending_id_cannot_become_a_static_member() -> None:
    group = Story()
    a = Member("a")
    a.id = group.asks_to_join(a).answer.member_id
    a.instance_id = "one"

    refused = group.asks_to_join(a)

    assert refused.error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert group.group.static == {}


def test_a_replacement_that_is_too_large_for_the_log_leaves_the_member_as_it_was() -> None:
    group, one, two = stable()
    written = len(group.stage.records)

    refused = group.asks_to_join(Member("again", "one"), protocols=[("range", bytes(1_100_000))])

    assert refused.error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert refused.answer.member_id == ""
    assert len(group.stage.records) == written
    assert group.group.leader == one.id
    assert group.beats(one) is ErrorCode.NONE
    assert group.beats(two) is ErrorCode.NONE


@pytest.mark.parametrize("is_static", [False, True])
def test_a_full_group_takes_a_static_member_back_only_while_it_has_room(is_static: bool) -> None:
    group = Story(GroupSettings(classic_size_max=2))
    group.is_stable_with(Member("one", "one"), "b")

    refused = group.asks_to_join(Member("again", "one" if is_static else None))

    # As in Kafka: one who has no id yet is somebody else, until its instance id is looked at.
    assert refused.error is ErrorCode.GROUP_MAX_SIZE_REACHED
