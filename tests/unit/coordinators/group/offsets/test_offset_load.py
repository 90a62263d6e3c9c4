"""Replaying a log: commits are taken, other records are handed back, and what is damaged changes nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.errors import Malformed
from barnabas.base.ids import Uuid
from barnabas.coordinators.group.offsets import load
from barnabas.coordinators.group.offsets.record import CommittedOffset, OffsetRecord, pack_offset
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.group_offsets import OffsetFetchRequestGroup
from barnabas.protocol.stored.framing import encode_key, encode_value
from barnabas.protocol.stored.offsets import (
    GroupMetadataKey,
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from barnabas.records.builder import build_batch
from barnabas.records.control import ControlType, build_control_batch
from barnabas.records.errors import CorruptBatch, UnknownCodec, UnsupportedMagic
from barnabas.records.header import ATTRIBUTES_AT, COUNT_AT, MAGIC_AT, Codec
from unit.coordinators.group.offsets.offset_world import World, batch_of, group_tombstone, record

pytestmark = pytest.mark.kernel

KEY = encode_key(OffsetCommitKey(group="g", topic="t", partition=0))
TOPIC_ID = Uuid(b"i" * 16)
VALUE = pack_offset(CommittedOffset(7, 1, "note", 5))


def batch(*records: tuple[bytes | None, bytes | None]) -> bytes:
    return build_batch([(1, key, value, ()) for key, value in records], base_offset=40)


@pytest.mark.parametrize("codec", Codec)
def test_the_last_commit_of_each_partition_counts(codec: Codec) -> None:
    world = World()
    written = [record("g", "t", 0, 7), record("g", "t", 1, 8), record("g", "t", 0, 9), record("h", "t", 0, 3)]

    assert world.offsets.replay(batch_of(written, codec=codec)) == []
    world.offsets.loaded()

    assert world.offsets.count == 3
    assert world.committed("g", "t", 0) == (9, ErrorCode.NONE)
    assert world.committed("g", "t", 1) == (8, ErrorCode.NONE)
    assert world.committed("h", "t", 0) == (3, ErrorCode.NONE)


def test_groups_that_have_nothing_but_offsets_are_made_when_all_is_loaded() -> None:
    world = World()
    there = world.new_group("g")
    world.offsets.replay(
        batch_of([record("g", "t", 0, 7), record("h", "t", 0, 7), record("gone", "t", 0, 7)])
    )
    world.offsets.replay(batch_of([record("gone", "t", 0, None)]))
    world.offsets.replay(batch_of([record("k", "t", 0, 7)], producer_id=1, producer_epoch=0, base_sequence=0))
    assert list(world.context.groups) == ["g"]

    world.offsets.loaded()

    assert sorted(world.context.groups) == ["g", "h", "k"]
    assert world.context.groups["g"] is there


def test_other_records_are_handed_back_in_their_order() -> None:
    world = World()
    tombstone = group_tombstone("g")
    other = (encode_key(GroupMetadataKey(group="h")), b"\x00\x00 whatever")

    others = world.offsets.replay(batch(other, (KEY, VALUE), tombstone.encoded()))

    assert others == [other, tombstone.encoded()]
    assert world.offsets.count == 1


def test_commits_of_the_first_releases_are_read() -> None:
    world = World()
    key = encode_key(LegacyOffsetCommitKey(group="g", topic="t", partition=3))
    value = encode_value(LegacyOffsetCommitValue(offset=7, metadata="old", commit_timestamp=5), 0)

    assert world.offsets.replay(batch((key, value))) == []
    world.offsets.loaded()
    assert world.committed("g", "t", 3) == (7, ErrorCode.NONE)

    assert world.offsets.replay(batch((key, None))) == []
    assert world.committed("g", "t", 3) == (-1, ErrorCode.NONE)


@pytest.mark.parametrize("version", range(5))
@pytest.mark.parametrize("metadata", ["", "note", "ü" * 100])
def test_values_of_all_versions_are_taken(version: int, metadata: str) -> None:
    world = World()
    value = OffsetCommitValue(offset=7, metadata=metadata, commit_timestamp=5)

    assert world.offsets.replay(batch((KEY, encode_value(value, version)))) == []
    world.offsets.loaded()

    assert world.committed("g", "t", 0) == (7, ErrorCode.NONE)


@pytest.mark.parametrize(("kind", "version"), [(0, 1), (0, 4), (0, -1), (1, 5), (1, 300), (1, -1)])
def test_commits_of_a_later_release_are_handed_back(kind: int, version: int) -> None:
    world = World()
    later = (kind.to_bytes(2, "big") + KEY[2:], version.to_bytes(2, "big", signed=True) + VALUE[2:])

    assert world.offsets.replay(batch(later)) == [later]

    assert world.offsets.count == 0


@pytest.mark.parametrize("tags", [b"\x01\x05\x02xy", b"\x02\x05\x00\x00\x10" + TOPIC_ID])
def test_tagged_fields_of_a_later_release_are_no_harm(tags: bytes) -> None:
    world = World()

    assert world.offsets.replay(batch((KEY, VALUE[:-1] + tags))) == []
    world.offsets.loaded()

    assert world.committed("g", "t", 0) == (7, ErrorCode.NONE)


def test_a_batch_that_compaction_has_emptied_says_nothing() -> None:
    whole = bytearray(batch((KEY, VALUE))[: load.RECORDS_AT])
    whole[8:12] = (len(whole) - 12).to_bytes(4, "big")
    whole[COUNT_AT : COUNT_AT + 4] = bytes(4)

    assert World().offsets.replay(bytes(whole)) == []


def test_control_records_that_are_no_markers_are_passed_over() -> None:
    world = World()
    change = build_control_batch(ControlType.LEADER_CHANGE, b"\x00\x00", timestamp=1, leader_epoch=3)

    assert world.offsets.replay(change) == []

    assert world.offsets.count == 0


def test_a_group_that_lost_its_last_offset_begins_anew_within_a_batch() -> None:
    world = World()
    steps = [
        record("g", "t", 0, 1),
        record("g", "t", 0, None),
        record("g", "u", 0, 2),
        record("h", "t", 0, 3),
    ]

    world.offsets.replay(batch_of(steps))
    world.offsets.loaded()

    assert world.committed("g", "t", 0) == (-1, ErrorCode.NONE)
    assert world.committed("g", "u", 0) == (2, ErrorCode.NONE)
    assert world.committed("h", "t", 0) == (3, ErrorCode.NONE)


def test_a_group_that_lost_its_last_offset_begins_anew_in_a_later_batch() -> None:
    world = World()
    world.offsets.replay(batch_of([record("g", "t", 0, 1)]))
    world.offsets.apply(record("g", "t", 0, None))
    world.offsets.apply(record("h", "u", 0, 2))

    world.offsets.replay(batch_of([record("g", "t", 0, 3)]))

    assert world.offsets.durable() == (
        {"h": [("u", 0, record("h", "u", 0, 2).value)], "g": [("t", 0, record("g", "t", 0, 3).value)]},
        [],
    )


def test_more_groups_than_are_remembered_are_loaded() -> None:
    world = World()
    count = 3 * load.PLACES_MAX
    for start in range(0, count, 1000):
        world.offsets.replay(batch_of([record(f"g{one}", "t", 0, one) for one in range(start, start + 1000)]))
    world.offsets.replay(batch_of([record("g1", "t", 0, 9)]))
    world.offsets.loaded()

    assert world.offsets.count == -(-count // 1000) * 1000
    assert world.committed("g1", "t", 0) == (9, ErrorCode.NONE)
    assert world.committed("g2", "t", 0) == (2, ErrorCode.NONE)


RECORDS = st.lists(
    st.builds(
        record,
        st.sampled_from(["g", "h", "ü"]),
        st.sampled_from(["t", "u"]),
        st.integers(-1, 2),
        st.none() | st.integers(0, 2**40),
    ),
    min_size=1,
)


@given(st.lists(RECORDS))
def test_replaying_is_the_same_as_applying(batches: list[list[OffsetRecord]]) -> None:
    applied, replayed = World(), World()

    for records in batches:
        for one in records:
            applied.offsets.apply(one)
        replayed.offsets.replay(batch_of(records))

    assert replayed.offsets.durable() == applied.offsets.durable()


# What is damaged

TAGGED = pack_offset(CommittedOffset(7, 1, "", 5, topic_id=TOPIC_ID))
BAD_RECORDS = {
    "no key": (None, VALUE),
    "an empty key": (b"", VALUE),
    "a key without a type": (b"\x00", VALUE),
    "a key that ends in the group": (KEY[:4], VALUE),
    "a key without a group": (b"\x00\x01\xff\xff" + KEY[5:], VALUE),
    "a key that ends before the topic": (KEY[:5], VALUE),
    "a key that ends in the partition": (KEY[:-1], VALUE),
    "a group that is not UTF-8": (KEY.replace(b"g", b"\xff"), VALUE),
    "a topic that is not UTF-8": (KEY.replace(b"t", b"\xff"), VALUE),
    "an empty value": (KEY, b""),
    "a value without a version": (KEY, b"\x00"),
    "a value that ends in the offset": (KEY, VALUE[:8]),
    "a value that ends in the metadata": (KEY, VALUE[:17]),
    "a value without metadata": (KEY, VALUE[:14] + b"\x00" + VALUE[19:]),
    "metadata of a length that does not end": (KEY, VALUE[:14] + b"\xff\xff\xff\xff\xff\xff\x01" + bytes(99)),
    "metadata longer than the value": (KEY, VALUE[:14] + b"\x7f" + VALUE[15:]),
    "metadata that is not UTF-8": (KEY, VALUE.replace(b"note", b"n\xffte")),
    "a value that ends in the time": (KEY, VALUE[:-3]),
    "a value that ends before its tags": (KEY, VALUE[:-1]),
    "a topic id that is cut off": (KEY, TAGGED[:-1]),
    "a topic id of another size": (KEY, TAGGED[:25] + b"\x0f" + TAGGED[26:]),
    "an old value that ends in the time": (
        KEY,
        encode_value(OffsetCommitValue(offset=1, metadata=""), 2)[:-1],
    ),
    "an old value without its second time": (
        KEY,
        encode_value(OffsetCommitValue(offset=1, metadata=""), 1)[:-1],
    ),
    "an old value that ends in the metadata": (
        KEY,
        encode_value(OffsetCommitValue(offset=1, metadata="note"), 3)[:18],
    ),
}


@pytest.mark.parametrize("damaged", BAD_RECORDS.values(), ids=BAD_RECORDS.keys())
def test_a_malformed_record_is_named_and_its_batch_changes_nothing(
    damaged: tuple[bytes | None, bytes | None],
) -> None:
    world = World()
    world.offsets.replay(batch_of([record("g", "t", 0, 3)]))
    before = world.offsets.durable()
    good = record("g", "t", 0, 9).encoded()

    with pytest.raises(Malformed) as error:
        world.offsets.replay(batch(good, damaged, good))

    assert error.value.where == "batch with base offset 40, record 1"
    assert world.offsets.durable() == before
    world.offsets.replay(batch(good))
    world.offsets.loaded()
    assert world.committed("g", "t", 0) == (9, ErrorCode.NONE)


def changed(whole: bytes, at: int, byte: int) -> bytes:
    return whole[:at] + bytes([byte]) + whole[at + 1 :]


@pytest.mark.parametrize(
    ("damaged", "error"),
    [
        (b"", CorruptBatch),
        (batch((KEY, VALUE))[:60], CorruptBatch),
        (batch((KEY, VALUE))[:-1], CorruptBatch),
        (batch((KEY, VALUE)) + b"x", CorruptBatch),
        (changed(batch((KEY, VALUE)), MAGIC_AT, 1), UnsupportedMagic),
        (changed(batch((KEY, VALUE)), ATTRIBUTES_AT + 1, 5), UnknownCodec),
        (changed(batch((KEY, VALUE)), ATTRIBUTES_AT + 1, 4), Malformed),
        (changed(batch((KEY, VALUE)), COUNT_AT, 0x7F), CorruptBatch),
        (changed(batch((KEY, VALUE)), COUNT_AT, 0xFF), CorruptBatch),
        (changed(batch((KEY, VALUE)), COUNT_AT + 3, 2), Malformed),
        (changed(batch((KEY, VALUE)), COUNT_AT + 3, 0), Malformed),
    ],
)
def test_an_invalid_batch_is_refused(damaged: bytes, error: type[Malformed]) -> None:
    world = World()

    with pytest.raises(error):
        world.offsets.replay(damaged)

    assert world.offsets.count == 0


@given(st.data())
def test_bytes_that_were_changed_are_read_or_refused(data: st.DataObject) -> None:
    world = World()
    whole = batch_of(
        [record("g", "t", 0, 7), record("h", "u", 1, None), record("g", "t", 1, 8, topic_id=TOPIC_ID)]
    )
    at = data.draw(st.integers(load.RECORDS_AT, len(whole) - 1))

    try:
        world.offsets.replay(changed(whole, at, data.draw(st.integers(0, 255))))
    except Malformed:
        assert world.offsets.count == 0
    world.offsets.loaded()
    for group in world.context.groups:
        world.offsets.fetch(OffsetFetchRequestGroup(group_id=group, topics=None), require_stable=False)
