import pytest

from barnabas.base.ids import Uuid
from barnabas.coordinators.decision.outcome import ReplyTo
from barnabas.coordinators.group.group import CONSUMER
from barnabas.coordinators.group.offsets.record import CommittedOffset, OffsetRecord, pack_offset, read_offset
from barnabas.protocol.error_codes import ErrorCode
from unit.coordinators.group.offsets.offset_world import NOW, World, caller, codes, commit_request

pytestmark = pytest.mark.kernel

TOPIC_ID = Uuid(b"t" * 16)


def test_a_commit_writes_a_record_for_each_partition_and_changes_nothing_itself() -> None:
    world = World()
    to = ReplyTo()

    outcome = world.offsets.commit(commit_request("g", {("t", 0): 7, ("u", 3): 8}), caller(), to, NOW)

    assert outcome.records == [
        OffsetRecord("g", "t", 0, pack_offset(CommittedOffset(7, -1, "", NOW.ms))),
        OffsetRecord("g", "u", 3, pack_offset(CommittedOffset(8, -1, "", NOW.ms))),
    ]
    [(answered, response)] = outcome.answers
    assert answered is to
    assert codes(response) == {("t", 0): ErrorCode.NONE, ("u", 3): ErrorCode.NONE}
    assert world.offsets.count == 0
    assert world.context.groups == {}


def test_a_commit_without_a_generation_makes_a_group_when_it_is_applied() -> None:
    world = World()

    world.commit(commit_request("g", {("t", 0): 7}))

    assert list(world.context.groups) == ["g"]
    assert world.committed("g", "t", 0) == (7, ErrorCode.NONE)


@pytest.mark.parametrize(
    ("version", "code"), [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)]
)
def test_a_commit_with_a_generation_needs_a_group(version: int, code: ErrorCode) -> None:
    world = World()
    request = commit_request("g", {("t", 0): 7}, member_id="m", generation_id_or_member_epoch=0)

    response = world.commit(request, version=version)

    assert codes(response) == {("t", 0): code}
    assert world.offsets.count == 0


def test_an_empty_group_id_is_one_like_others() -> None:
    world = World()

    assert codes(world.commit(commit_request("", {("t", 0): 7}))) == {("t", 0): ErrorCode.NONE}

    assert world.committed("", "t", 0) == (7, ErrorCode.NONE)


def test_a_group_error_applies_to_every_partition() -> None:
    world = World()
    world.new_group("g", refuses={"commit": ErrorCode.UNKNOWN_MEMBER_ID})
    request = commit_request("g", {("t", 0): 7, ("u", 1): 8}, member_id="m")

    response = world.commit(request, version=5)

    assert codes(response) == {("t", 0): ErrorCode.UNKNOWN_MEMBER_ID, ("u", 1): ErrorCode.UNKNOWN_MEMBER_ID}
    assert world.offsets.count == 0


def test_the_group_validates_member_and_epoch_of_the_request() -> None:
    world = World()
    group = world.new_group("g")
    request = commit_request(
        "g", {("t", 4): 7}, member_id="m", group_instance_id="i", generation_id_or_member_epoch=3
    )
    request.topics[0].topic_id = TOPIC_ID

    world.commit(request, version=7)

    assert group.asked == [("commit", "m", "i", 3, False, 7), ("commit_of", TOPIC_ID, 4, 3, "m")]


def test_one_unowned_partition_fails_the_whole_commit() -> None:
    world = World()
    world.new_group("g", kind=CONSUMER, refuses={"commit_of": ErrorCode.STALE_MEMBER_EPOCH})

    response = world.commit(commit_request("g", {("t", 0): 7, ("t", 1): 8}, member_id="m"))

    assert set(codes(response).values()) == {ErrorCode.STALE_MEMBER_EPOCH}
    assert world.offsets.count == 0


def test_metadata_that_is_too_long_is_refused_for_that_partition_alone() -> None:
    world = World(offset_metadata_bytes_max=4)
    request = commit_request("g", {("t", 0): 7, ("t", 1): 8}, metadata="1234")
    request.topics[1].partitions[0].committed_metadata = "12345"

    response = world.commit(request)

    assert codes(response) == {("t", 0): ErrorCode.NONE, ("t", 1): ErrorCode.OFFSET_METADATA_TOO_LARGE}
    assert world.committed("g", "t", 0) == (7, ErrorCode.NONE)
    assert world.committed("g", "t", 1) == (-1, ErrorCode.NONE)


@pytest.mark.parametrize(
    ("metadata", "code"),
    [
        ("ééé", ErrorCode.NONE),
        ("éééé", ErrorCode.OFFSET_METADATA_TOO_LARGE),
        ("😀", ErrorCode.NONE),
        ("😀é", ErrorCode.NONE),
        ("😀😀", ErrorCode.OFFSET_METADATA_TOO_LARGE),
    ],
)
def test_the_length_of_metadata_is_counted_as_java_does(metadata: str, code: ErrorCode) -> None:
    world = World(offset_metadata_bytes_max=3)

    response = world.commit(commit_request("g", {("t", 0): 7}, metadata=metadata))

    assert codes(response) == {("t", 0): code}


def test_a_commit_of_which_nothing_is_taken_makes_no_group() -> None:
    world = World(offset_metadata_bytes_max=0)

    world.commit(commit_request("g", {("t", 0): 7}, metadata="x"))

    assert world.context.groups == {}


def test_leader_epoch_metadata_and_topic_id_are_kept() -> None:
    world = World()
    request = commit_request("g", {("t", 0): 7}, metadata="über")
    request.topics[0].topic_id = TOPIC_ID
    request.topics[0].partitions[0].committed_leader_epoch = 5

    [written] = world.offsets.commit(request, caller(10), ReplyTo(), NOW).records

    assert isinstance(written, OffsetRecord)
    assert written.value is not None
    assert read_offset(written.value) == CommittedOffset(7, 5, "über", NOW.ms, -1, TOPIC_ID)


def test_no_metadata_is_kept_as_an_empty_text() -> None:
    world = World()

    [written] = world.offsets.commit(
        commit_request("g", {("t", 0): 7}, metadata=None), caller(), ReplyTo(), NOW
    ).records

    assert written.encoded()[1] == pack_offset(CommittedOffset(7, -1, "", NOW.ms))


@pytest.mark.parametrize(
    ("retention_ms", "expire_ms"),
    [(0, NOW.ms), (60_000, NOW.ms + 60_000), (2**63 - 1, NOW.ms - 2**63 - 1), (-2, NOW.ms - 2)],
)
def test_a_retention_time_in_the_request_sets_the_expiry(retention_ms: int, expire_ms: int) -> None:
    world = World()
    request = commit_request("g", {("t", 0): 7}, retention_time_ms=retention_ms)

    [written] = world.offsets.commit(request, caller(4), ReplyTo(), NOW).records

    value = written.encoded()[1]
    assert value is not None
    assert value[:2] == b"\x00\x01"
    assert read_offset(value).expire_ms == expire_ms


def test_a_commit_of_a_member_of_a_classic_group_counts_as_a_heartbeat() -> None:
    world = World()
    group = world.new_group("g", state="Stable", is_empty=False)

    world.commit(commit_request("g", {("t", 0): 7}, member_id="m", generation_id_or_member_epoch=1))

    assert group.heard == [("m", NOW)]


def test_a_refused_commit_is_no_heartbeat() -> None:
    world = World()
    group = world.new_group("g", is_empty=False, refuses={"commit": ErrorCode.REBALANCE_IN_PROGRESS})

    world.commit(commit_request("g", {("t", 0): 7}, member_id="m", generation_id_or_member_epoch=1))

    assert group.heard == []


def test_commits_to_empty_groups_and_consumer_groups_are_no_heartbeats() -> None:
    world = World()
    groups = [world.new_group("g"), world.new_group("h", kind=CONSUMER, is_empty=False)]

    for group in groups:
        world.commit(commit_request(group.id, {("t", 0): 7}))

    assert [group.heard for group in groups] == [[], []]
