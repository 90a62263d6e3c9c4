"""Records of __share_group_state."""

from barnabas.base.ids import Uuid
from barnabas.protocol.schema.fields import array, int8, int16, int32, int64, string, uuid
from barnabas.protocol.schema.struct import message, struct


@message("key", key=0, versions="0", flexible="none")
class ShareSnapshotKey:
    group_id: str = string()
    topic_id: Uuid = uuid()
    partition: int = int32()


@struct
class StateBatch:
    first_offset: int = int64()
    last_offset: int = int64()
    delivery_state: int = int8()
    delivery_count: int = int16()


@message("value", key=0, versions="0", flexible="0+")
class ShareSnapshotValue:
    snapshot_epoch: int = int32()
    state_epoch: int = int32()
    leader_epoch: int = int32()
    start_offset: int = int64()
    delivery_complete_count: int = int32(default=-1, tag=0)
    create_timestamp: int = int64()
    write_timestamp: int = int64()
    state_batches: list[StateBatch] = array(StateBatch)


@message("key", key=1, versions="0", flexible="none")
class ShareUpdateKey:
    group_id: str = string()
    topic_id: Uuid = uuid()
    partition: int = int32()


@message("value", key=1, versions="0", flexible="0+")
class ShareUpdateValue:
    snapshot_epoch: int = int32()
    leader_epoch: int = int32()
    start_offset: int = int64()
    delivery_complete_count: int = int32(default=-1, tag=0)
    state_batches: list[StateBatch] = array(StateBatch)
