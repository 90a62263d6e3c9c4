"""Voters of the metadata quorum: Add-, Remove- and UpdateRaftVoter."""

from barnabas.base.ids import Uuid
from barnabas.protocol.schema.fields import array, boolean, int16, int32, nested, string, uint16, uuid
from barnabas.protocol.schema.struct import request, response, struct


@struct
class Listener:
    name: str = string()
    host: str = string()
    port: int = uint16()


@request(80, versions="0-1", flexible="0+", listeners="controller broker")
class AddRaftVoterRequest:
    """v1 ack_when_committed"""

    cluster_id: str | None = string(null="0+")
    timeout_ms: int = int32()
    voter_id: int = int32()
    voter_directory_id: Uuid = uuid()
    listeners: list[Listener] = array(Listener)
    ack_when_committed: bool = boolean("1+", default=True)


@response(80, versions="0-1", flexible="0+")
class AddRaftVoterResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(null="0+")


@request(81, versions="0", flexible="0+", listeners="controller broker")
class RemoveRaftVoterRequest:
    cluster_id: str | None = string(null="0+")
    voter_id: int = int32()
    voter_directory_id: Uuid = uuid()


@response(81, versions="0", flexible="0+")
class RemoveRaftVoterResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(null="0+")


@struct
class KRaftVersionFeature:
    min_supported_version: int = int16()
    max_supported_version: int = int16()


@request(82, versions="0", flexible="0+", listeners="controller")
class UpdateRaftVoterRequest:
    cluster_id: str | None = string(null="0+")
    current_leader_epoch: int = int32()
    voter_id: int = int32()
    voter_directory_id: Uuid = uuid()
    listeners: list[Listener] = array(Listener)
    k_raft_version_feature: KRaftVersionFeature = nested(KRaftVersionFeature)


@struct
class CurrentLeader:
    leader_id: int = int32(default=-1)
    leader_epoch: int = int32(default=-1)
    host: str = string()
    port: int = int32()


@response(82, versions="0", flexible="0+")
class UpdateRaftVoterResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    current_leader: CurrentLeader | None = nested(CurrentLeader, tag=0)
