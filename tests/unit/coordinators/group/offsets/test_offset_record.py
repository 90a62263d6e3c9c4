import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.ids import ZERO_UUID, Uuid
from barnabas.coordinators.group.offsets.record import (
    NO_EXPIRY,
    CommittedOffset,
    OffsetRecord,
    pack_offset,
    read_offset,
)
from barnabas.protocol.stored.framing import encode_key, encode_value
from barnabas.protocol.stored.offsets import OffsetCommitKey, OffsetCommitValue

pytestmark = pytest.mark.kernel

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(st.characters(codec="utf-8"), max_size=200)
TOPIC_IDS = st.just(ZERO_UUID) | st.binary(min_size=16, max_size=16).map(Uuid)
EXPIRIES = st.just(NO_EXPIRY) | INT64
COMMITTED = st.builds(CommittedOffset, INT64, INT32, TEXT, INT64, EXPIRIES, TOPIC_IDS)


def stored(committed: CommittedOffset) -> OffsetCommitValue:
    return OffsetCommitValue(
        offset=committed.offset,
        leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        commit_timestamp=committed.commit_ms,
        expire_timestamp=committed.expire_ms,
        topic_id=committed.topic_id,
    )


@given(TEXT, TEXT, INT32, st.none() | st.binary(max_size=50))
def test_keys_are_those_of_the_declared_message(
    group: str, topic: str, partition: int, value: bytes | None
) -> None:
    key = encode_key(OffsetCommitKey(group=group, topic=topic, partition=partition))

    assert OffsetRecord(group, topic, partition, value).encoded() == (key, value)


@given(COMMITTED)
def test_values_are_those_of_the_declared_message(committed: CommittedOffset) -> None:
    version = 4 if committed.expire_ms == NO_EXPIRY else 1

    assert pack_offset(committed) == encode_value(stored(committed), version)


@given(COMMITTED)
def test_packed_records_are_read_back(committed: CommittedOffset) -> None:
    expected = committed
    if committed.expire_ms != NO_EXPIRY:
        # Version 1 has no room for these.
        expected = committed._replace(leader_epoch=-1, topic_id=ZERO_UUID)

    assert read_offset(pack_offset(committed)) == expected


@pytest.mark.parametrize("version", range(5))
@given(committed=COMMITTED)
def test_values_of_all_versions_are_read(version: int, committed: CommittedOffset) -> None:
    found = read_offset(encode_value(stored(committed), version))

    assert found == CommittedOffset(
        committed.offset,
        committed.leader_epoch if version >= 3 else -1,
        committed.metadata,
        committed.commit_ms,
        committed.expire_ms if version == 1 else NO_EXPIRY,
        committed.topic_id if version >= 4 else ZERO_UUID,
    )
