"""What a commit in a transaction writes, and what is refused."""

import pytest

from barnabas.base.ids import ZERO_UUID
from barnabas.coordinators.decision.outcome import EndMarker, InTransaction, Outcome, ReplyTo
from barnabas.coordinators.group.group import CONSUMER
from barnabas.coordinators.group.offsets.record import CommittedOffset, OffsetRecord, pack_offset, read_offset
from barnabas.coordinators.group.offsets.txn_commits import PendingOffset, TransactionEnd, decide_end
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.transactions import TxnOffsetCommitRequest
from support.group.consumer_stories import image_of, topic_id
from unit.coordinators.group.offsets.offset_world import NOW, World, caller, codes
from unit.coordinators.group.offsets.txn_requests import EPOCH, PRODUCER, VERSION, txn_request

pytestmark = pytest.mark.kernel


def decided(world: World, request: TxnOffsetCommitRequest, *, version: int = VERSION) -> Outcome:
    return world.offsets.commit_in_transaction(request, caller(version), ReplyTo(), NOW)


def refusal(world: World, request: TxnOffsetCommitRequest, *, version: int = VERSION) -> ErrorCode:
    """The code that all partitions have. Nothing may be written, and then nothing may be stamped."""
    outcome = decided(world, request, version=version)
    assert outcome.records == []
    assert outcome.stamp is None
    [(_, response)] = outcome.answers
    [code] = set(codes(response).values())
    return ErrorCode(code)


# What is written


def test_a_commit_is_pending_offsets_of_its_producer_and_changes_nothing_itself() -> None:
    world = World()
    before = world.offsets.durable()
    to = ReplyTo()

    request = txn_request({("t", 0): 7, ("u", 3): 8})
    outcome = world.offsets.commit_in_transaction(request, caller(VERSION), to, NOW)

    assert outcome.stamp == InTransaction(PRODUCER, EPOCH)
    first = OffsetRecord("g", "t", 0, pack_offset(CommittedOffset(7, -1, "", NOW.ms)))
    second = OffsetRecord("g", "u", 3, pack_offset(CommittedOffset(8, -1, "", NOW.ms)))
    assert outcome.records == [PendingOffset(PRODUCER, first), PendingOffset(PRODUCER, second)]
    assert [one.encoded() for one in outcome.records] == [first.encoded(), second.encoded()]
    [(answered, response)] = outcome.answers
    assert answered is to
    assert codes(response) == {("t", 0): ErrorCode.NONE, ("u", 3): ErrorCode.NONE}
    assert world.offsets.durable() == before
    assert world.context.groups == {}


def test_leader_epoch_and_metadata_are_kept_and_topic_ids_are_not_as_in_kafka() -> None:
    world = World()
    world.context.image = image_of({"t": 1})
    request = txn_request({("t", 0): 7}, metadata="über")
    request.topics[0].partitions[0].committed_leader_epoch = 5

    [written] = decided(world, request).records

    value = written.encoded()[1]
    assert value is not None
    assert read_offset(value) == CommittedOffset(7, 5, "über", NOW.ms, -1, ZERO_UUID)


def test_no_metadata_is_kept_as_an_empty_text() -> None:
    [written] = decided(World(), txn_request({("t", 0): 7}, metadata=None)).records

    assert written.encoded()[1] == pack_offset(CommittedOffset(7, -1, "", NOW.ms))


def test_a_marker_is_the_end_of_a_transaction() -> None:
    marker = EndMarker(PRODUCER, EPOCH, True, 9, 2)
    to = ReplyTo()

    outcome = decide_end(marker, to)

    assert outcome.stamp == marker
    assert outcome.records == [TransactionEnd(PRODUCER, True)]
    assert outcome.answers == [(to, ErrorCode.NONE)]


def test_a_marker_is_never_written_as_a_record() -> None:
    with pytest.raises(AssertionError, match="control batch"):
        TransactionEnd(PRODUCER, True).encoded()


# What is refused


def test_metadata_that_is_too_long_is_refused_for_that_partition_alone() -> None:
    world = World(offset_metadata_bytes_max=4)
    request = txn_request({("t", 0): 7, ("t", 1): 8}, metadata="1234")
    request.topics[1].partitions[0].committed_metadata = "😀😀1"

    outcome = decided(world, request)

    assert codes(outcome.answers[0][1]) == {
        ("t", 0): ErrorCode.NONE,
        ("t", 1): ErrorCode.OFFSET_METADATA_TOO_LARGE,
    }
    assert len(outcome.records) == 1


def test_a_commit_of_which_nothing_is_taken_is_not_stamped() -> None:
    request = txn_request({("t", 0): 7}, metadata="x")

    assert refusal(World(offset_metadata_bytes_max=0), request) is ErrorCode.OFFSET_METADATA_TOO_LARGE


def test_a_commit_of_nothing_is_answered_and_not_stamped() -> None:
    outcome = decided(World(), txn_request({}))

    assert (outcome.stamp, outcome.records, len(outcome.answers)) == (None, [], 1)


@pytest.mark.parametrize("version", [0, 3, 5])
def test_a_commit_with_a_generation_needs_a_group(version: int) -> None:
    """Unlike a plain one it is told the same in all versions."""
    request = txn_request({("t", 0): 7}, member_id="m", generation_id=0)

    assert refusal(World(), request, version=version) is ErrorCode.ILLEGAL_GENERATION


def test_a_commit_without_a_generation_needs_no_group() -> None:
    assert len(decided(World(), txn_request({("t", 0): 7}, member_id="m")).records) == 1


def test_a_group_without_a_name_is_refused() -> None:
    assert refusal(World(), txn_request({("t", 0): 7}, group="")) is ErrorCode.INVALID_GROUP_ID


@pytest.mark.parametrize(
    ("producer_id", "epoch", "code"),
    [
        (-1, -1, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (-1, 0, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (0, -1, ErrorCode.INVALID_PRODUCER_EPOCH),
    ],
)
def test_without_a_producer_no_transactional_offset_is_written(
    producer_id: int, epoch: int, code: ErrorCode
) -> None:
    request = txn_request({("t", 0): 7}, producer_id=producer_id, producer_epoch=epoch)

    assert refusal(World(), request) is code


@pytest.mark.parametrize(("producer_id", "epoch"), [(-1, 0), (-5, 0), (0, -1)])
def test_a_marker_without_a_producer_is_refused(producer_id: int, epoch: int) -> None:
    to = ReplyTo()

    outcome = decide_end(EndMarker(producer_id, epoch, True, 0, 2), to)

    assert (outcome.stamp, outcome.records) == (None, [])
    assert outcome.answers == [(to, ErrorCode.UNKNOWN_SERVER_ERROR)]


# What the group is asked


def test_the_group_validates_the_request_with_the_ids_of_its_topics() -> None:
    world = World()
    world.context.image = image_of({"t": 5})
    group = world.new_group("g")

    decided(
        world,
        txn_request({("t", 4): 7}, member_id="m", group_instance_id="i", generation_id=3),
        version=4,
    )

    assert group.asked == [("commit", "m", "i", 3, True, 4), ("commit_of", topic_id("t"), 4, 3, "m")]


@pytest.mark.parametrize(
    ("refused", "code"),
    [
        (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.UNKNOWN_MEMBER_ID),
        (ErrorCode.FENCED_INSTANCE_ID, ErrorCode.FENCED_INSTANCE_ID),
        (ErrorCode.ILLEGAL_GENERATION, ErrorCode.ILLEGAL_GENERATION),
        # A dead group.
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        # Of epochs producers know nothing.
        (ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.ILLEGAL_GENERATION),
    ],
)
@pytest.mark.parametrize("guard", ["commit", "commit_of"])
def test_a_group_error_applies_to_every_partition(guard: str, refused: ErrorCode, code: ErrorCode) -> None:
    world = World()
    world.new_group("g", kind=CONSUMER, refuses={guard: refused})
    request = txn_request({("t", 0): 7, ("u", 1): 8}, member_id="m", generation_id=1)

    assert refusal(world, request) is code


def test_metadata_length_is_checked_before_partition_ownership() -> None:
    world = World(offset_metadata_bytes_max=0)
    world.context.image = image_of({"t": 1})
    world.new_group("g", refuses={"commit_of": ErrorCode.STALE_MEMBER_EPOCH})

    request = txn_request({("t", 0): 7}, metadata="x")

    assert refusal(world, request) is ErrorCode.OFFSET_METADATA_TOO_LARGE


def test_a_deleted_topic_is_unowned_even_if_its_offset_is_invalid() -> None:
    world = World(offset_metadata_bytes_max=0)
    world.new_group("g", refuses={"commit_of": ErrorCode.STALE_MEMBER_EPOCH})

    assert refusal(world, txn_request({("t", 0): 7}, metadata="x")) is ErrorCode.ILLEGAL_GENERATION


def test_a_commit_in_a_transaction_is_no_heartbeat() -> None:
    """The producer sends it, and the log may refuse it."""
    world = World()
    group = world.new_group("g", state="Stable", is_empty=False)

    decided(world, txn_request({("t", 0): 7}, member_id="m", generation_id=1))

    assert group.heard == []
