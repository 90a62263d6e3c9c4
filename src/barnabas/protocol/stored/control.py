"""Keys and values of control records: transaction markers, leader changes, snapshot ends, voters."""

from barnabas.base.ids import Uuid
from barnabas.protocol.schema.fields import array, int16, int32, int64, nested, string, uint16, uuid
from barnabas.protocol.schema.struct import message, struct


@message("data", versions="0", flexible="none")
class ControlRecordTypeSchema:
    type: int = int16()


@message("data", versions="0", flexible="none")
class EndTxnMarker:
    coordinator_epoch: int = int32()


@struct
class LeaderChangeMessageVoter:
    voter_id: int = int32()
    voter_directory_id: Uuid = uuid("1+")


@message("data", versions="0-1", flexible="0+")
class LeaderChangeMessage:
    """v1 voter_directory_id"""

    version: int = int16()
    leader_id: int = int32()
    voters: list[LeaderChangeMessageVoter] = array(LeaderChangeMessageVoter)
    granting_voters: list[LeaderChangeMessageVoter] = array(LeaderChangeMessageVoter)


@message("data", versions="0", flexible="0+")
class SnapshotHeaderRecord:
    version: int = int16()
    last_contained_log_timestamp: int = int64()


@message("data", versions="0", flexible="0+")
class SnapshotFooterRecord:
    version: int = int16()


@message("data", versions="0", flexible="0+")
class KRaftVersionRecord:
    version: int = int16()
    k_raft_version: int = int16()


@struct
class Endpoint:
    name: str = string()
    host: str = string()
    port: int = uint16()


@struct
class KRaftVersionFeature:
    min_supported_version: int = int16()
    max_supported_version: int = int16()


@struct
class VotersRecordVoter:
    voter_id: int = int32()
    voter_directory_id: Uuid = uuid()
    endpoints: list[Endpoint] = array(Endpoint)
    k_raft_version_feature: KRaftVersionFeature = nested(KRaftVersionFeature)


@message("data", versions="0", flexible="0+")
class VotersRecord:
    version: int = int16()
    voters: list[VotersRecordVoter] = array(VotersRecordVoter)
