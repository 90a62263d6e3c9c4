"""Records of __consumer_offsets: committed offsets and classic groups."""

from barnabas.base.ids import Uuid
from barnabas.protocol.schema.fields import array, binary, int32, int64, string, uuid
from barnabas.protocol.schema.struct import message, struct


@message("key", key=0, versions="0", flexible="none")
class LegacyOffsetCommitKey:
    group: str = string()
    topic: str = string()
    partition: int = int32()


@message("value", key=0, versions="0", flexible="none")
class LegacyOffsetCommitValue:
    offset: int = int64()
    metadata: str = string()
    commit_timestamp: int = int64()


@message("key", key=1, versions="0", flexible="none")
class OffsetCommitKey:
    group: str = string()
    topic: str = string()
    partition: int = int32()


@message("value", key=1, versions="0-4", flexible="4+")
class OffsetCommitValue:
    """v1 expire_timestamp; v2 no expire_timestamp; v3 leader_epoch; v4 flexible, topic_id"""

    offset: int = int64()
    leader_epoch: int = int32("3+", default=-1, ignorable=True)
    metadata: str = string()
    commit_timestamp: int = int64()
    expire_timestamp: int = int64("1", default=-1, ignorable=True)
    topic_id: Uuid = uuid("4+", tag=0, ignorable=True)


@message("key", key=2, versions="0", flexible="none")
class GroupMetadataKey:
    group: str = string()


@struct
class MemberMetadata:
    member_id: str = string()
    group_instance_id: str | None = string("3+", null="3+", default=None, ignorable=True)
    client_id: str = string()
    client_host: str = string()
    rebalance_timeout: int = int32("1+", default=-1, ignorable=True)
    session_timeout: int = int32()
    subscription: bytes = binary()
    assignment: bytes = binary()


@message("value", key=2, versions="0-4", flexible="4+")
class GroupMetadataValue:
    """v1 rebalance_timeout; v2 current_state_timestamp; v3 group_instance_id; v4 flexible"""

    protocol_type: str = string()
    generation: int = int32()
    protocol: str | None = string(null="0+")
    leader: str | None = string(null="0+")
    current_state_timestamp: int = int64("2+", default=-1, ignorable=True)
    members: list[MemberMetadata] = array(MemberMetadata)
