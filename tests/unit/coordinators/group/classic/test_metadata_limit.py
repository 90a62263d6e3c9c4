"""The total limit of the metadata of classic members."""

from barnabas.coordinators.group.classic.joins import METADATA_BYTES_MAX, SMALL_METADATA_BYTES
from barnabas.protocol.error_codes import ErrorCode
from support.group.stories import Member, Story

HALF = (("range", b"m" * (METADATA_BYTES_MAX // 2)),)
MORE = (("range", b"m" * (SMALL_METADATA_BYTES + 1)),)
SMALL = (("range", b"m" * SMALL_METADATA_BYTES),)


def test_members_with_large_metadata_are_refused_above_the_limit() -> None:
    story = Story()
    story.joins("a", protocols=HALF)
    beside = Story.beside(story, "other")
    beside.joins("b", protocols=HALF)

    assert story.asks_to_join(Member("c"), protocols=MORE).error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert beside.asks_to_join(Member("c"), protocols=MORE).error is ErrorCode.GROUP_MAX_SIZE_REACHED
    # Others are members as ever.
    assert story.joins("d", protocols=SMALL).waits


def test_a_member_that_joins_again_has_its_room_already() -> None:
    story = Story()
    story.joins("a", protocols=HALF)
    member = story.joins("b", protocols=HALF)

    again = story.asks_to_join(member, protocols=HALF)

    assert again.waits


def test_there_is_room_again_when_a_member_has_left() -> None:
    story = Story()
    first = story.joins("a", protocols=HALF)
    story.joins("b", protocols=HALF)
    story.leaves(first)

    assert story.group.metadata_bytes == METADATA_BYTES_MAX // 2
    assert story.joins("c", protocols=MORE).waits
