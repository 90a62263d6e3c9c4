"""The hand-written encoders produce the bytes of the messages, which decode to the same values."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from barnabas.base.ids import Uuid
from barnabas.coordinators.decision.outcome import Record
from barnabas.coordinators.group.consumer import records
from barnabas.coordinators.group.consumer.member import ClassicMetadata, ConsumerMember, MemberState
from barnabas.protocol.stored import consumer_groups as stored
from barnabas.protocol.stored.framing import encode_key, encode_value

pytestmark = pytest.mark.kernel

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
ID = st.text(max_size=200)
MAYBE = st.none() | ID
TOPIC = st.binary(min_size=16, max_size=16).map(Uuid)
PARTITION = st.integers(0, 2**31 - 1)
TARGET = st.dictionaries(TOPIC, st.frozensets(PARTITION, max_size=200), max_size=3)
HELD = st.dictionaries(TOPIC, st.dictionaries(PARTITION, INT32, max_size=200), max_size=3)
CLASSIC = st.none() | st.builds(
    ClassicMetadata, INT32, st.lists(st.tuples(ID, st.binary(max_size=40)), max_size=3).map(tuple)
)
MEMBER = st.builds(
    ConsumerMember,
    id=ID,
    instance_id=MAYBE,
    rack=MAYBE,
    client_id=ID,
    client_host=ID,
    rebalance_timeout_ms=INT32,
    topics=st.lists(ID, max_size=130).map(tuple),
    regex=MAYBE,
    assignor=MAYBE,
    classic=CLASSIC,
    epoch=INT32,
    previous_epoch=INT32,
    state=st.sampled_from(MemberState),
    assigned=HELD,
    revoking=HELD,
)
# Lengths that take two bytes.
TOPIC_ID = Uuid(bytes(16))
MANY = range(0x80)
LONG = ConsumerMember(id="m", client_id="c" * 0x80, assigned={TOPIC_ID: dict.fromkeys(MANY, 7)})


def check(record: Record, key: object, value: object) -> None:
    assert record.encoded() == (encode_key(key), encode_value(value, 0))


@given(ID, INT32, INT64)
# Without hash, and without time.
@example("g", 3, 0)
def test_epochs(group_id: str, epoch: int, number: int) -> None:
    check(
        records.epoch_record(group_id, epoch, number),
        stored.ConsumerGroupMetadataKey(group_id=group_id),
        stored.ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=number),
    )
    check(
        records.target_epoch_record(group_id, epoch, number),
        stored.ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id),
        stored.ConsumerGroupTargetAssignmentMetadataValue(
            assignment_epoch=epoch, assignment_timestamp=number
        ),
    )


@given(ID, MEMBER)
@example("g", LONG)
def test_members(group_id: str, member: ConsumerMember) -> None:
    classic = None
    if member.classic is not None:
        classic = stored.ClassicMemberMetadata(
            session_timeout_ms=member.classic.session_timeout_ms,
            supported_protocols=[
                stored.ClassicProtocol(name=name, metadata=metadata)
                for name, metadata in member.classic.protocols
            ],
        )
    value = stored.ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.topics),
        subscribed_topic_regex=member.regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.assignor,
        classic_member_metadata=classic,
    )

    key = stored.ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.id)
    check(records.member_record(group_id, member), key, value)


@given(ID, ID, TARGET)
@example("g", "m", {TOPIC_ID: frozenset(MANY)})
def test_targets(group_id: str, member_id: str, target: dict[Uuid, frozenset[int]]) -> None:
    check(
        records.target_record(group_id, member_id, target),
        stored.ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        stored.ConsumerGroupTargetAssignmentMemberValue(
            topic_partitions=[
                stored.TopicPartition(topic_id=topic_id, partitions=sorted(numbers))
                for topic_id, numbers in target.items()
            ]
        ),
    )


@given(ID, MEMBER)
@example("g", LONG)
def test_current_assignments(group_id: str, member: ConsumerMember) -> None:
    check(
        records.current_record(group_id, member),
        stored.ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.id),
        stored.ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=member.epoch,
            previous_member_epoch=member.previous_epoch,
            state=member.state,
            assigned_partitions=held(member.assigned),
            partitions_pending_revocation=held(member.revoking),
        ),
    )


def held(of: Any) -> list[stored.TopicPartitions]:
    return [
        stored.TopicPartitions(
            topic_id=topic_id, partitions=list(since), assignment_epochs=list(since.values())
        )
        for topic_id, since in of.items()
    ]
