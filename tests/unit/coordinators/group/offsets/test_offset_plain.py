"""Plain values become two numbers and the same bytes again; all others are not taken for plain."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from barnabas.base.ids import ZERO_UUID, Uuid
from barnabas.coordinators.group.offsets.record import (
    EPOCH_MAX,
    NO_EXPIRY,
    NOT_PLAIN,
    OLD,
    TIME_MAX,
    WITH_ID,
    CommittedOffset,
    form_in,
    pack_offset,
    plain_facts,
    plain_form,
    plain_value,
    value_fault,
)
from barnabas.protocol.stored.framing import encode_value
from barnabas.protocol.stored.offsets import OffsetCommitValue

pytestmark = pytest.mark.kernel

ID = Uuid(bytes(range(240, 256)))
NOW_MS = 1_790_000_000_000
INT64 = st.integers(-(2**63), 2**63 - 1)
OFFSETS = st.sampled_from([0, 1, -1, 2**63 - 1, -(2**63)]) | INT64
EPOCHS = st.sampled_from([-1, 0, EPOCH_MAX]) | st.integers(-1, EPOCH_MAX)
TIMES = st.sampled_from([0, NOW_MS, TIME_MAX]) | st.integers(0, TIME_MAX)


def v3(offset: int, leader_epoch: int, commit_ms: int, metadata: str = "") -> bytes:
    """As earlier releases wrote it."""
    return encode_value(
        OffsetCommitValue(
            offset=offset, leader_epoch=leader_epoch, metadata=metadata, commit_timestamp=commit_ms
        ),
        3,
    )


def again(value: bytes) -> bytes:
    facts = plain_facts(value, 0, len(value))
    offset = int.from_bytes(value[2:10], signed=True)
    high, low = (int.from_bytes(half, signed=True) for half in (ID[:8], ID[8:]))
    return plain_value(offset, facts, high, low)


@given(OFFSETS, EPOCHS, TIMES, st.sampled_from([ID, ZERO_UUID]))
def test_current_records_round_trip(offset: int, epoch: int, time_ms: int, topic_id: Uuid) -> None:
    value = pack_offset(CommittedOffset(offset, epoch, "", time_ms, NO_EXPIRY, topic_id))

    assert again(value) == value
    assert (form_in(plain_facts(value, 0, len(value))) == WITH_ID) == (topic_id == ID)


@given(OFFSETS, EPOCHS, TIMES)
def test_records_of_earlier_releases_round_trip(offset: int, epoch: int, time_ms: int) -> None:
    value = v3(offset, epoch, time_ms)

    assert plain_form(value, 0, len(value)) == OLD
    assert again(value) == value


@given(st.binary(max_size=3), st.binary(max_size=3))
def test_a_value_may_be_anywhere_in_the_data(before: bytes, after: bytes) -> None:
    value = pack_offset(CommittedOffset(7, 3, "", NOW_MS, NO_EXPIRY, ID))
    data = before + value + after

    found = plain_facts(data, len(before), len(before) + len(value))

    assert found == plain_facts(value, 0, len(value)) != NOT_PLAIN


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"\x00",
        pack_offset(CommittedOffset(7, 3, "text", NOW_MS, NO_EXPIRY, ID)),
        pack_offset(CommittedOffset(7, 3, "text", NOW_MS)),
        pack_offset(CommittedOffset(7, 3, "", NOW_MS, NOW_MS + 1)),
        # As long as plain ones are: 18 bytes of metadata are the size of a topic id with its tag.
        pack_offset(CommittedOffset(7, 3, "x" * 18, NOW_MS)),
        v3(7, 3, NOW_MS, "text"),
        v3(7, 3, NOW_MS, "x" * 18),
        # Facts that there are not enough bits for.
        pack_offset(CommittedOffset(7, EPOCH_MAX + 1, "", NOW_MS)),
        pack_offset(CommittedOffset(7, -2, "", NOW_MS)),
        pack_offset(CommittedOffset(7, 3, "", TIME_MAX + 1)),
        pack_offset(CommittedOffset(7, 3, "", -1)),
        v3(7, 3, -1),
        v3(7, 2**31 - 1, NOW_MS),
    ],
)
def test_records_with_further_fields_are_not_plain(value: bytes) -> None:
    assert plain_facts(value, 0, len(value)) == NOT_PLAIN


PLAIN = [
    pack_offset(CommittedOffset(7, 3, "", NOW_MS)),
    pack_offset(CommittedOffset(7, 3, "", NOW_MS, NO_EXPIRY, ID)),
    v3(7, 3, NOW_MS),
]


@pytest.mark.parametrize("value", PLAIN)
def test_a_changed_byte_round_trips_or_is_not_plain(value: bytes) -> None:
    for at in range(len(value)):
        for byte in range(256):
            changed = value[:at] + bytes([byte]) + value[at + 1 :]
            if plain_facts(changed, 0, len(changed)) != NOT_PLAIN:
                # The id is kept by whoever keeps the numbers.
                assert again(changed)[:26] == changed[:26]
                assert len(again(changed)) == len(changed)


@pytest.mark.parametrize("value", PLAIN)
def test_records_of_wrong_length_are_not_plain(value: bytes) -> None:
    for size in range(len(value)):
        assert plain_facts(value[:size], 0, size) == NOT_PLAIN
    longer = value + b"\x00" * 20
    for size in range(len(value) + 1, len(longer)):
        assert plain_facts(longer[:size], 0, size) == NOT_PLAIN


@given(st.integers(0, 4), st.binary(max_size=45))
@example(4, bytes(12) + b"\x01" + bytes(9))
def test_plain_records_are_valid(version: int, rest: bytes) -> None:
    """The loader asks for no more of it."""
    value = version.to_bytes(2) + rest

    if plain_form(value, 0, len(value)) != NOT_PLAIN:
        assert value_fault(value, 2, len(value), version) == ""
