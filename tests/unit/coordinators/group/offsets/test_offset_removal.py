from dataclasses import replace

import pytest

from barnabas.base.ids import Uuid
from barnabas.coordinators.decision.outcome import Now, ReplyTo
from barnabas.coordinators.group.offsets.record import CommittedOffset, OffsetRecord, pack_offset
from barnabas.coordinators.group.offsets.removal import AT_ONCE
from barnabas.metadata.image import TopicImage
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.group_offsets import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from unit.coordinators.group.offsets.offset_world import World, codes, group_tombstone, record

pytestmark = pytest.mark.kernel

OLD, NEW = Uuid(b"o" * 16), Uuid(b"n" * 16)


def delete_request(group: str, *partitions: tuple[str, int]) -> OffsetDeleteRequest:
    return OffsetDeleteRequest(
        group_id=group,
        topics=[
            OffsetDeleteRequestTopic(
                name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=partition)]
            )
            for topic, partition in partitions
        ],
    )


def at(ms: int) -> Now:
    return Now(ms, 0)


# Asked to


def test_deleting_writes_tombstones_for_existing_offsets() -> None:
    world = World()
    world.offsets.apply(record("g", "t", 0, 7))
    world.offsets.apply(record("g", "t", 1, 8))

    outcome = world.offsets.delete(delete_request("g", ("t", 0), ("t", 5), ("t", 0)), ReplyTo())

    assert outcome.records == [record("g", "t", 0, None)]
    assert world.offsets.count == 2
    response = world.carry_out(outcome)
    assert codes(response) == {("t", 0): ErrorCode.NONE, ("t", 5): ErrorCode.NONE}
    assert response.error_code == ErrorCode.NONE
    assert world.committed("g", "t", 0) == (-1, ErrorCode.NONE)
    assert world.committed("g", "t", 1) == (8, ErrorCode.NONE)


def test_deleting_removes_pending_offsets_too() -> None:
    world = World()
    world.pend(1, [record("g", "t", 0, 7)])

    outcome = world.offsets.delete(delete_request("g", ("t", 0)), ReplyTo())
    world.carry_out(outcome)
    world.offsets.end_transaction(1, commit=True)

    assert outcome.records == [record("g", "t", 0, None)]
    assert world.committed("g", "t", 0, stable=True) == (-1, ErrorCode.NONE)


def test_offsets_of_subscribed_topics_stay() -> None:
    world = World()
    world.new_group("g", subscribed={"t"})
    world.offsets.apply(record("g", "t", 0, 7))
    world.offsets.apply(record("g", "u", 0, 8))

    outcome = world.offsets.delete(delete_request("g", ("t", 0), ("u", 0)), ReplyTo())

    assert outcome.records == [record("g", "u", 0, None)]
    assert codes(world.carry_out(outcome)) == {
        ("t", 0): ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
        ("u", 0): ErrorCode.NONE,
    }


@pytest.mark.parametrize(
    ("group", "code"),
    [
        ("", ErrorCode.INVALID_GROUP_ID),
        ("nobody", ErrorCode.GROUP_ID_NOT_FOUND),
        ("busy", ErrorCode.NON_EMPTY_GROUP),
    ],
)
def test_deleting_is_refused_as_a_whole(group: str, code: ErrorCode) -> None:
    world = World()
    world.offsets.apply(record("busy", "t", 0, 7))
    world.offsets.apply(record("", "t", 0, 7))
    world.new_group("busy", refuses={"offset_delete": ErrorCode.NON_EMPTY_GROUP})

    outcome = world.offsets.delete(delete_request(group, ("t", 0)), ReplyTo())

    assert outcome.records == []
    assert outcome.answers[0][1] == OffsetDeleteResponse(error_code=code, topics=[])


def test_forgetting_a_group_takes_all_of_it() -> None:
    world = World()
    world.offsets.apply(record("g", "u", 1, 7))
    world.offsets.apply(record("g", "t", 0, 7))
    world.offsets.apply(record("h", "t", 0, 7))
    world.pend(1, [record("g", "t", 0, 8), record("g", "v", 0, 8)])

    assert world.offsets.forget("g") == [
        record("g", "t", 0, None),
        record("g", "u", 1, None),
        record("g", "v", 0, None),
    ]
    assert world.offsets.forget("nobody") == []


# With time


def test_offsets_expire_when_they_are_as_old_as_the_retention() -> None:
    world = World(offsets_retention_ms=100)
    world.offsets.apply(record("g", "t", 0, 7, at_ms=1000))
    world.offsets.apply(record("g", "t", 1, 7, at_ms=1001))

    assert world.offsets.expire(at(1099)).records == []
    assert world.offsets.expire(at(1100)).records == [record("g", "t", 0, None)]


def test_a_group_without_members_goes_with_its_last_offset() -> None:
    world = World(offsets_retention_ms=100)
    world.offsets.apply(record("g", "t", 0, 7, at_ms=1000))
    world.new_group("h", is_empty=False)
    world.offsets.apply(record("h", "t", 0, 7, at_ms=1000))
    world.new_group("bare")

    outcome = world.offsets.expire(at(2000))

    assert outcome.records == [
        record("g", "t", 0, None),
        group_tombstone("g"),
        record("h", "t", 0, None),
        group_tombstone("bare"),
    ]
    assert outcome.answers == []


def test_of_many_offsets_some_are_looked_at_at_a_time() -> None:
    world = World(offsets_retention_ms=100)
    groups = ("a", "b", "c")
    each = AT_ONCE // 2
    for group in groups:
        for partition in range(each):
            world.offsets.apply(record(group, "t", partition, 7, at_ms=1000))
    rounds = []

    for _ in groups:
        outcome = world.offsets.expire(at(2000))
        rounds.append(len(outcome.records))
        for gone in outcome.records:
            if isinstance(gone, OffsetRecord):
                world.offsets.apply(gone)
        if not world.offsets.has_more_to_expire:
            break

    # With the tombstone of each group.
    assert rounds == [2 * each + 2, each + 1]
    assert world.offsets.count == 0


def test_the_group_says_from_when_on_the_age_counts() -> None:
    world = World(offsets_retention_ms=100)
    world.new_group("never", expire_from=lambda _: None)
    world.new_group("emptied", expire_from=lambda _: 1500)
    for group in ("never", "emptied"):
        world.offsets.apply(record(group, "t", 0, 7, at_ms=0))

    assert world.offsets.expire(at(1599)).records == []
    assert world.offsets.expire(at(1600)).records == [
        record("emptied", "t", 0, None),
        group_tombstone("emptied"),
    ]


def test_offsets_of_subscribed_topics_do_not_expire() -> None:
    world = World(offsets_retention_ms=100)
    world.new_group("g", subscribed={"t"})
    world.offsets.apply(record("g", "t", 0, 7))
    world.offsets.apply(record("g", "u", 0, 7))

    assert world.offsets.expire(at(1000)).records == [record("g", "u", 0, None)]


def test_an_offset_with_its_own_expiry_uses_it() -> None:
    world = World(offsets_retention_ms=100)
    for partition, expire_ms in enumerate((50, 5000)):
        value = pack_offset(CommittedOffset(7, -1, "", 0, expire_ms))
        world.offsets.apply(OffsetRecord("g", "t", partition, value))

    assert world.offsets.expire(at(49)).records == []
    assert world.offsets.expire(at(50)).records == [record("g", "t", 0, None)]
    assert world.offsets.expire(at(4999)).records == [record("g", "t", 0, None)]


def test_no_offset_expires_while_the_group_may_not() -> None:
    world = World()
    world.new_group("g", expire_from=lambda _: None)
    world.offsets.apply(OffsetRecord("g", "t", 0, pack_offset(CommittedOffset(7, -1, "", 0, 50))))

    assert world.offsets.expire(at(51)).records == []


def test_nothing_of_an_open_transaction_expires() -> None:
    world = World(offsets_retention_ms=100)
    world.offsets.apply(record("g", "t", 0, 7))
    world.pend(1, [record("g", "t", 0, 8), record("h", "t", 0, 8)])

    assert world.offsets.expire(at(1000)).records == []

    world.offsets.end_transaction(1, commit=False)
    assert world.offsets.expire(at(1000)).records == [
        record("g", "t", 0, None),
        group_tombstone("g"),
        group_tombstone("h"),
    ]


# With their topics


def test_offsets_of_deleted_topics_go_in_all_groups() -> None:
    world = World()
    for group in ("g", "h"):
        for topic in ("t", "u"):
            world.offsets.apply(record(group, topic, 0, 7, topic_id=OLD))
    world.offsets.apply(record("g", "t", 1, 7))
    world.pend(1, [record("g", "t", 0, 9), record("k", "t", 3, 9), record("k", "u", 3, 9)])

    outcome = world.offsets.topics_deleted({"t"})

    assert outcome.records == [
        record("g", "t", 0, None),
        record("g", "t", 1, None),
        record("h", "t", 0, None),
        record("k", "t", 3, None),
    ]
    assert world.offsets.topics_deleted({"nothing"}).records == []


def test_offsets_of_a_topic_that_was_made_anew_stay() -> None:
    world = World()
    world.context.image = replace(world.context.image, topics={"t": TopicImage("t", NEW, ())})
    world.offsets.apply(record("g", "t", 0, 7, topic_id=OLD))
    world.offsets.apply(record("g", "t", 1, 7, topic_id=NEW))
    world.offsets.apply(record("g", "t", 2, 7))
    world.pend(1, [record("h", "t", 0, 7, topic_id=NEW)])

    outcome = world.offsets.topics_deleted({"t"})

    assert outcome.records == [record("g", "t", 0, None), record("g", "t", 2, None)]
