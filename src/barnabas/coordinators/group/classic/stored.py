"""Conversion of a classic group to and from its record."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from barnabas.coordinators.decision.outcome import StoredRecord
from barnabas.coordinators.group.classic.member import ClassicMember
from barnabas.protocol.stored.offsets import GroupMetadataKey, GroupMetadataValue, MemberMetadata

if TYPE_CHECKING:
    from barnabas.coordinators.group.classic.group import ClassicGroup

# The version that Kafka 4.3 writes. Version 4, which it also reads, has no additional fields.
_VERSION: Final = 3
_NO_TIMESTAMP: Final = -1
_NO_REBALANCE_TIMEOUT: Final = -1

# Upper bound of batch header, record lengths, key type and length.
_FRAMING_BYTES: Final = 128
_CHARACTER_BYTES_MAX: Final = 4
# Upper bound of the lengths and numbers of one member.
_MEMBER_FRAMING_BYTES: Final = 32


def group_record(group_id: str, value: GroupMetadataValue) -> StoredRecord:
    return StoredRecord(GroupMetadataKey(group=group_id), value, _VERSION)


def tombstone(group_id: str) -> StoredRecord:
    return StoredRecord(GroupMetadataKey(group=group_id), None)


def value_of(group: "ClassicGroup", assignments: Mapping[str, bytes] | None = None) -> GroupMetadataValue:
    """The current state. Members not in `assignments` get an empty one; without it all keep theirs."""
    return GroupMetadataValue(
        protocol_type=group.protocol_type,
        generation=group.generation,
        protocol=group.protocol,
        leader=group.leader,
        current_state_timestamp=_NO_TIMESTAMP if group.state_ms is None else group.state_ms,
        members=[
            _stored_member(
                member,
                group.protocol or "",
                member.assignment if assignments is None else assignments.get(member.id, b""),
            )
            for member in group.members.values()
        ],
    )


def state_ms_of(value: GroupMetadataValue) -> int | None:
    """None in records before version 2."""
    return None if value.current_state_timestamp == _NO_TIMESTAMP else value.current_state_timestamp


def members_of(value: GroupMetadataValue) -> list[ClassicMember]:
    """The members, with only the elected protocol, because the record has no others."""
    return [
        ClassicMember(
            member_id=stored.member_id,
            instance_id=stored.group_instance_id,
            client_id=stored.client_id,
            client_host=stored.client_host,
            # Records before version 1 have none, because clients had only a session timeout.
            rebalance_timeout_ms=(
                stored.session_timeout
                if stored.rebalance_timeout == _NO_REBALANCE_TIMEOUT
                else stored.rebalance_timeout
            ),
            session_timeout_ms=stored.session_timeout,
            protocol_type=value.protocol_type,
            protocols=((value.protocol or "", stored.subscription),),
            assignment=stored.assignment,
        )
        for stored in value.members
    ]


def is_too_large(record: StoredRecord, bytes_max: int) -> bool:
    """Whether the log would refuse the record. It is encoded only if its upper bound exceeds the limit."""
    assert isinstance(record.key, GroupMetadataKey)
    assert isinstance(record.value, GroupMetadataValue)
    value = record.value
    characters = len(record.key.group + value.protocol_type + (value.protocol or "") + (value.leader or ""))
    bound = _FRAMING_BYTES + _CHARACTER_BYTES_MAX * characters
    if bound + sum(_bytes_at_most(member) for member in value.members) <= bytes_max:
        return False
    encoded_key, encoded_value = record.encoded()
    assert encoded_value is not None
    return _FRAMING_BYTES + len(encoded_key) + len(encoded_value) > bytes_max


def _bytes_at_most(member: MemberMetadata) -> int:
    characters = (
        len(member.member_id)
        + len(member.group_instance_id or "")
        + len(member.client_id)
        + len(member.client_host)
    )
    return (
        _MEMBER_FRAMING_BYTES
        + _CHARACTER_BYTES_MAX * characters
        + len(member.subscription)
        + len(member.assignment)
    )


def _stored_member(member: ClassicMember, protocol: str, assignment: bytes) -> MemberMetadata:
    return MemberMetadata(
        member_id=member.id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout=member.rebalance_timeout_ms,
        session_timeout=member.session_timeout_ms,
        subscription=member.metadata(protocol),
        assignment=assignment,
    )
