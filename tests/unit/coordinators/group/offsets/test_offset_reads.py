import pytest

from barnabas.base.ids import ZERO_UUID, Uuid
from barnabas.coordinators.group.offsets.record import CommittedOffset, OffsetRecord, pack_offset
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.group_offsets import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from unit.coordinators.group.offsets.offset_world import World, record

pytestmark = pytest.mark.kernel

OLD, NEW = Uuid(b"o" * 16), Uuid(b"n" * 16)
NOTHING = OffsetFetchResponsePartitions(
    partition_index=0, committed_offset=-1, committed_leader_epoch=-1, metadata=""
)


def asked(group: str, *, topic_id: Uuid = ZERO_UUID) -> OffsetFetchRequestGroup:
    topic = OffsetFetchRequestTopics(name="t", topic_id=topic_id, partition_indexes=[0])
    return OffsetFetchRequestGroup(group_id=group, topics=[topic])


def test_a_committed_offset_is_read_with_all_that_was_said_of_it() -> None:
    world = World()
    world.offsets.apply(OffsetRecord("g", "t", 0, pack_offset(CommittedOffset(7, 3, "note", 5))))

    response = world.offsets.fetch(asked("g"), require_stable=False)

    found = OffsetFetchResponsePartitions(
        partition_index=0, committed_offset=7, committed_leader_epoch=3, metadata="note"
    )
    topic = OffsetFetchResponseTopics(name="t", partitions=[found])
    assert response == OffsetFetchResponseGroup(group_id="g", topics=[topic])


@pytest.mark.parametrize("stable", [False, True])
def test_a_missing_group_or_offset_is_not_an_error(stable: bool) -> None:
    world = World()
    world.new_group("g")

    for group in ("g", "nobody"):
        response = world.offsets.fetch(asked(group), require_stable=stable)

        assert response.error_code == ErrorCode.NONE
        assert response.topics == [OffsetFetchResponseTopics(name="t", partitions=[NOTHING])]


def test_all_offsets_of_a_group_are_read_by_topic_and_partition() -> None:
    world = World()
    for topic, partition in (("u", 1), ("t", 2), ("t", 0), ("u", 0)):
        world.offsets.apply(record("g", topic, partition, 10 + partition, topic_id=OLD))
    world.offsets.apply(record("h", "t", 1, 99))

    response = world.offsets.fetch(OffsetFetchRequestGroup(group_id="g", topics=None), require_stable=False)

    found = {
        topic.name: [(one.partition_index, one.committed_offset) for one in topic.partitions]
        for topic in response.topics
    }
    assert found == {"t": [(0, 10), (2, 12)], "u": [(0, 10), (1, 11)]}
    assert {topic.topic_id for topic in response.topics} == {ZERO_UUID}


def test_all_offsets_of_no_group_are_none() -> None:
    world = World()

    response = world.offsets.fetch(OffsetFetchRequestGroup(group_id="g", topics=None), require_stable=True)

    assert response == OffsetFetchResponseGroup(group_id="g", topics=[])


@pytest.mark.parametrize("topics", [None, []])
def test_a_group_error_is_the_response_for_the_whole_group(
    topics: list[OffsetFetchRequestTopics] | None,
) -> None:
    world = World()
    world.offsets.apply(record("g", "t", 0, 7))
    group = world.new_group("g", refuses={"fetch": ErrorCode.STALE_MEMBER_EPOCH})
    request = OffsetFetchRequestGroup(group_id="g", member_id="m", member_epoch=4, topics=topics)

    response = world.offsets.fetch(request, require_stable=True)

    assert response == OffsetFetchResponseGroup(
        group_id="g", topics=[], error_code=ErrorCode.STALE_MEMBER_EPOCH
    )
    assert group.asked == [("fetch", "m", 4)]


def test_a_dead_group_answers_like_a_missing_group() -> None:
    world = World()
    world.offsets.apply(record("g", "t", 0, 7))
    world.new_group("g", refuses={"fetch": ErrorCode.GROUP_ID_NOT_FOUND})

    some = world.offsets.fetch(asked("g"), require_stable=False)
    all_of_it = world.offsets.fetch(OffsetFetchRequestGroup(group_id="g", topics=None), require_stable=False)

    assert some.topics == [OffsetFetchResponseTopics(name="t", partitions=[NOTHING])]
    assert (some.error_code, all_of_it.error_code, all_of_it.topics) == (0, 0, [])


@pytest.mark.parametrize(
    ("kept", "wanted", "offset"),
    [(OLD, NEW, -1), (OLD, OLD, 7), (OLD, ZERO_UUID, 7), (ZERO_UUID, NEW, 7)],
)
def test_an_offset_of_a_topic_that_was_made_anew_is_not_seen(kept: Uuid, wanted: Uuid, offset: int) -> None:
    world = World()
    world.offsets.apply(record("g", "t", 0, 7, topic_id=kept))

    response = world.offsets.fetch(asked("g", topic_id=wanted), require_stable=False)

    assert response.topics[0].topic_id == wanted
    assert response.topics[0].partitions[0].committed_offset == offset


def test_require_stable_reports_open_transactions() -> None:
    world = World()
    world.offsets.apply(record("g", "t", 0, 7))
    world.offsets.apply(record("g", "t", 1, 8))
    world.pend(1, [record("g", "t", 0, 20)])

    assert world.committed("g", "t", 0, stable=True) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    assert world.committed("g", "t", 0) == (7, ErrorCode.NONE)
    assert world.committed("g", "t", 1, stable=True) == (8, ErrorCode.NONE)

    everything = OffsetFetchRequestGroup(group_id="g", topics=None)
    found = world.offsets.fetch(everything, require_stable=True).topics[0].partitions
    assert [one.error_code for one in found] == [ErrorCode.UNSTABLE_OFFSET_COMMIT, ErrorCode.NONE]
